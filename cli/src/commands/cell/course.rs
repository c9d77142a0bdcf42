//! The way of a call to another cell, as far as the asked node's cell knows it.

use admin::cell::CellStatus;
use cells::{Cell, Path};
use serde::Serialize;

/// The first step of the way, and its reason.
#[derive(Debug, Serialize)]
pub(super) struct Course {
    from: Path,
    to: Path,
    /// The next cell of the way; `None`: there is none now.
    next: Option<Path>,
    reason: String,
    /// The asked node has a link to that cell.
    is_linked: bool,
}

impl Course {
    pub(super) fn new(status: &CellStatus, book: &Cell, to: &Path) -> Course {
        let own = book.path();
        let (next, reason) = way(book, to);
        let is_linked =
            next.as_ref().is_some_and(|next| status.neighbours.iter().any(|it| it.cell == *next));
        Course { from: own.clone(), to: to.clone(), next, reason, is_linked }
    }

    pub(super) fn text(&self) -> String {
        let Course { from, to, next, reason, is_linked } = self;
        let Some(next) = next.as_ref().filter(|next| *next != from) else {
            return format!("{from} to {to}: {reason}\n");
        };
        let link = match is_linked {
            true => "this node has a link to it",
            false => "another node of this cell may have a link to it; this one has none",
        };
        format!("{from} to {to}: by {next}, for {reason}; {link}\n")
    }
}

/// The next cell of the way, and the reason for it.
fn way(book: &Cell, to: &Path) -> (Option<Path>, String) {
    let own = book.path();
    if to == own {
        return (Some(own.clone()), "it is the same cell, and the call stays there".into());
    }
    if !to.is_of_system(own) {
        let why = format!("no way: the cell is of another system than {own}");
        return (None, why);
    }
    let within = book.children().map(|(path, _)| path).filter(|path| to.is_within(path));
    if let Some(child) = within.max_by_key(|path| path.depth()) {
        let why = if child == to { "it is attached here" } else { "it is within that cell" };
        return (Some(child.clone()), why.into());
    }
    match book.above().first() {
        Some(parent) if to.is_below(own) => {
            let why = "no cell attached here leads there, and it may be attached further up";
            (Some(parent.path.clone()), why.into())
        }
        Some(parent) => (Some(parent.path.clone()), "it is not below this cell".into()),
        None if book.is_root() => {
            let why = "no way now: no attached cell leads there (`steadfast cell tree`)";
            (None, why.into())
        }
        None => (None, "no way now: this cell is not attached (`steadfast cell tree`)".into()),
    }
}

#[cfg(test)]
mod tests {
    use cells::{Attachment, Command, Epoch, Place};
    use wire::Time;

    use super::*;

    fn path(text: &str) -> Path {
        text.parse().unwrap()
    }

    #[test]
    fn the_nearest_attached_cell_below_leads_down_and_the_parent_everywhere_else() {
        let mut book = Cell::new(path("a.porto"));
        let next = |book: &Cell, to: &str| way(book, &path(to)).0.map(|next| next.to_string());
        assert_eq!(next(&book, "a.porto").as_deref(), Some("a.porto"));
        assert_eq!(next(&book, "porto"), None, "it is not attached");
        assert_eq!(next(&book, "lisboa"), None);
        let place = |text: &str| Place { path: path(text), at: Vec::new() };
        let attach = |text: &str| {
            Command::Attach(Attachment {
                place: place(text),
                epoch: Epoch(0),
                founded: 1,
                nodes: 3,
            })
        };
        let rise = Command::Rise { epoch: Epoch(9), seen: 0, above: vec![place("porto")] };
        for command in [rise, attach("x.a.porto"), attach("z.y.a.porto")] {
            book.apply(Time(7_000), command).unwrap();
        }
        for (to, by) in [
            ("x.a.porto", "x.a.porto"),
            ("deep.x.a.porto", "x.a.porto"),
            ("z.y.a.porto", "z.y.a.porto"),
            ("y.a.porto", "porto"),
            ("b.porto", "porto"),
        ] {
            assert_eq!(next(&book, to).as_deref(), Some(by), "{to}");
        }
    }
}
