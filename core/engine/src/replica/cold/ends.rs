//! The ends of nested calls are part of a cold passive group's log. So a second execution of a
//! request gives its handler the same ends (`docs/protocol/nested.md`).

mod acting;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wire::ClientId;
use wire::limits::LOGGED_END;
use wire::ordered::{NestedEnd, Request};

use crate::replica::Child;

/// The ends in a log.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    /// By call, and by the last request that was in the log when it came; with its place in the
    /// order.
    kept: BTreeMap<(Child, u64), (NestedEnd, u64)>,
    /// The last request of the log that is this call.
    parents: BTreeMap<(ClientId, u64), u64>,
    bytes: usize,
}

fn bytes_of(end: &NestedEnd) -> usize {
    end.end.size() + LOGGED_END
}

impl Ends {
    /// This request has this number in the log.
    pub(super) fn logged(&mut self, request: &Request, number: u64) {
        self.parents.insert((request.client, request.number), number);
    }

    /// An end comes, behind this request.
    pub(super) fn put(&mut self, end: NestedEnd, after: u64, sequence: u64) {
        // An end that no handler of the log can ask for is of no use.
        let Some(parent) = self.parents.get(&(end.client, end.number)) else { return };
        let child = (end.client, end.number, end.call);
        // Several requests may be this call. The first end behind the executed one counts.
        if self.first(child, *parent).is_none() {
            self.bytes += bytes_of(&end);
            self.kept.insert((child, after), (end, sequence));
        }
    }

    /// The log has the request that makes this call.
    fn concerns(&self, end: &NestedEnd) -> bool {
        self.parents.contains_key(&(end.client, end.number))
    }

    /// The first end of this call behind the request that makes it.
    fn first(&self, child: Child, parent: u64) -> Option<&(NestedEnd, u64)> {
        let behind = (child, parent)..=(child, u64::MAX);
        self.kept.range(behind).next().map(|(_, end)| end)
    }

    /// The log begins after this request. Those whose ends came before it were, too.
    pub(super) fn cut(&mut self, number: u64) {
        self.kept.retain(|(_, after), _| *after > number);
        self.parents.retain(|_, parent| *parent > number);
        self.bytes = self.kept.values().map(|(end, _)| bytes_of(end)).sum();
    }

    /// All, as a transfer brings them.
    pub(super) fn export(&self) -> Vec<(u64, NestedEnd)> {
        self.kept.iter().map(|((_, after), (end, _))| (*after, end.clone())).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A new component numbers anew, and all that was ordered before is held.
    fn renumber(&mut self) {
        self.kept.values_mut().for_each(|(_, sequence)| *sequence = 0);
    }

    pub(super) fn check_invariants(&self) {
        let bytes: usize = self.kept.values().map(|(end, _)| bytes_of(end)).sum();
        assert_eq!(bytes, self.bytes, "the bytes of the log's ends are counted");
    }
}
