//! Large states go by streams beside the order: these take their time, and some break.

use bytes::Bytes;
use engine::Transfer;
use wire::{Duration, Incarnation, NodeId};

use super::{Cluster, Extra};
use crate::fabric::place_of;

/// Until a stream has reached the node that has the state, and until the state is there.
const LEAST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_millis(20);

/// While faults happen, one in so many breaks although both nodes live.
const BREAKS: u64 = 8;

impl Cluster {
    /// A node opens a stream.
    pub(super) fn fetch(&mut self, node: usize, transfer: Transfer, from: NodeId) {
        let life = self.fabric.hosts[node].incarnation;
        let wait = self.load.span(LEAST, LONGEST);
        let from = place_of(from);
        self.fabric.later(wait, Extra::Fetching { transfer, node, life, from });
    }

    /// The stream is there: the other node gives the state that it has then, if it can.
    pub(super) fn give(
        &mut self,
        transfer: Transfer,
        (node, life): (usize, Incarnation),
        from: usize,
    ) {
        let breaks = !self.course.is_calm() && self.load.one_in(BREAKS);
        let joined = self.fabric.network.joined(node, from);
        let giver = &self.fabric.hosts[from];
        let stack = giver.process.as_ref().filter(|_| joined && giver.runs() && !breaks);
        let state = stack.and_then(|stack| stack.offered(transfer)).map(wire::Payload::whole);
        self.summary.streams += u64::from(state.is_some());
        let at = self.fabric.now() + self.load.span(LEAST, LONGEST);
        self.fabric.deliver(at, node, Extra::Fetched(transfer, state, life));
    }

    /// The stream has ended. Its reader's life may be over by then.
    pub(super) fn fetched(
        &mut self,
        node: usize,
        transfer: Transfer,
        state: Option<Bytes>,
        life: Incarnation,
    ) {
        let now = self.fabric.local(node);
        let host = &mut self.fabric.hosts[node];
        if let Some(stack) = host.process.as_mut().filter(|_| host.incarnation == life) {
            stack.handle_fetched(now, transfer, state);
        }
    }
}
