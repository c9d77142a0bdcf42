//! A system in which nothing is broken any more: it is one tree again.

use super::world::System;

impl System {
    /// Returns something that the system lacks.
    pub(super) fn lacks(&self) -> Option<String> {
        for (cell, cluster) in self.cells.iter().enumerate() {
            let path = cluster.path();
            let Some(seat) = cluster.seat() else { return Some(format!("{path} has no seat")) };
            let Some(parent) = self.options.parents[cell] else { continue };
            let parent = &self.cells[parent];
            let Some(above) = parent.seat() else { return Some("a cell has no seat".into()) };
            let (book, above) = (cluster.book(seat), parent.book(above));
            if book.above().first().is_none_or(|it| it.path != *parent.path()) {
                let above = book.above();
                return Some(format!("{path} is attached to {above:?}, and not to its parent"));
            }
            let known = above.child(path);
            if known != Some(book.epoch()) {
                return Some(format!(
                    "{path} has {}, and its parent knows {known:?}",
                    book.epoch()
                ));
            }
            if book.report().is_some() {
                return Some(format!("the parent of {path} does not know all its exports"));
            }
            let linked = cluster.linked(seat);
            if !linked.contains(parent.path()) {
                return Some(format!("the seat of {path} has links to {linked:?} alone"));
            }
            let mut names: Vec<_> = book.above().iter().map(|place| &place.path).collect();
            names.sort_unstable();
            names.dedup();
            if names.len() != book.above().len() {
                return Some(format!("above {path} a cell is twice: {:?}", book.above()));
            }
        }
        let root = &self.cells[0];
        let known = root.book(root.seat()?).picture().names as usize;
        // One group is exported by all cells.
        let names = self.cells.len() + 1;
        (known != names).then(|| format!("the root knows {known} names of {names}"))
    }
}
