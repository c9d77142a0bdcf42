//! Calls and answers in order of time, of which some are taken out and put back.

use wire::Time;

/// Neighbours in the list.
#[derive(Clone, Copy, Default)]
struct Links {
    before: usize,
    after: usize,
}

/// Places 1 and up, in an order of their own; 0 is the head.
pub(crate) struct List(Vec<Links>);

impl List {
    /// These places, by time. At one time the lower come first.
    pub(crate) fn new(mut events: Vec<(Time, usize)>) -> List {
        events.sort_unstable();
        let mut list = vec![Links::default(); 1 + events.len()];
        let mut last = 0;
        for (_, at) in events {
            list[last].after = at;
            list[at].before = last;
            last = at;
        }
        list[0].before = last;
        List(list)
    }

    /// The place behind this one; 0: none.
    pub(crate) fn after(&self, at: usize) -> usize {
        self.0[at].after
    }

    pub(crate) fn unlink(&mut self, at: usize) {
        let Links { before, after } = self.0[at];
        self.0[before].after = after;
        self.0[after].before = before;
    }

    /// In the reverse order of unlinking, each item has its old neighbours again (Knuth, *Dancing
    /// links*, 2000).
    pub(crate) fn relink(&mut self, at: usize) {
        let Links { before, after } = self.0[at];
        self.0[before].after = at;
        self.0[after].before = at;
    }
}
