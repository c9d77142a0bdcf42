//! A system in which nothing has been broken for a while: it is one tree again.

use std::collections::BTreeSet;

use super::world::Forest;
use crate::check::{Verdict, demand};

const WELL: &str = "the system is one tree again";

impl Forest {
    /// Every cell is attached to its parent, and what is exported is known above.
    pub(super) fn check_settled(&self) -> Verdict {
        for model in &self.cells {
            let path = &model.path;
            demand(model.seat().is_some(), WELL, || format!("{path} has no seat"))?;
            let Some(parent) = model.parent.map(|parent| &self.cells[parent]) else { continue };
            let (book, above) = (&model.book, &parent.book);
            demand(book.above().first().is_some_and(|it| it.path == parent.path), WELL, || {
                format!("{path} is attached to {:?}, and not to {}", book.above(), parent.path)
            })?;
            demand(above.child(path) == Some(book.epoch()), WELL, || {
                let known = above.child(path);
                format!("{path} has {}, and {} knows {known:?}", book.epoch(), parent.path)
            })?;
            demand(book.report().is_none(), WELL, || {
                format!("{} does not know all exports of {path}", parent.path)
            })?;
            let seat = model.seat().expect("it was there");
            let linked = model.neighbours(seat);
            demand(linked.contains(&parent.path), WELL, || {
                format!("the seat of {path} has links to {linked:?} alone")
            })?;
            let mut names = BTreeSet::new();
            let mut places = book.above().iter();
            demand(
                places.all(|place| names.insert(&place.path)),
                "no cell is above itself",
                || format!("above {path} are {:?}", book.above()),
            )?;
        }
        let known = self.cells[0].book.picture().names;
        let names = (self.cells.len() + 1).min(cells::limits::MAX_NAMES);
        demand(known as usize == names, "exports are known above", || {
            format!("the root knows {known} names of {names}")
        })
    }
}
