//! An order that the test writes.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use wire::Payload;

use bytes::Bytes;
use wire::{Malformed, Member, NodeId, RingId, Time};

use crate::ordering::{Level, Ordering, Output, Refused};

/// The test writes the order. The node's own multicasts are kept, and ordered by nobody.
#[derive(Default)]
pub(super) struct Scripted {
    pub script: VecDeque<Output>,
    /// Messages that the node has multicast.
    pub multicast: Vec<Bytes>,
    /// Positions of the members that do not have all messages.
    pub reached: BTreeMap<NodeId, u64>,
    /// Positions on the members' disks; this node's own reports, and how often it asked.
    pub stored: BTreeMap<NodeId, u64>,
    pub told: u64,
    pub asked: u32,
    /// Requested rounds of questions.
    pub rounds: u64,
}

impl Ordering for Scripted {
    fn handle_datagram(&mut self, _: Time, _: &Bytes) -> Result<(), Malformed> {
        Err(Malformed::Magic)
    }

    fn handle_unreachable(&mut self, _: Time, _: NodeId) {}

    fn handle_timeout(&mut self, _: Time) {}

    fn next_timeout(&self) -> Option<Time> {
        None
    }

    fn multicast(&mut self, _: Time, payload: Payload, _: Level) -> Result<(), Refused> {
        self.multicast.push(payload.whole());
        Ok(())
    }

    fn confirm(&mut self, _: Time) -> Option<u64> {
        self.rounds += 1;
        Some(self.rounds)
    }

    fn leave(&mut self, _: Time) {}

    fn poll_output(&mut self) -> Option<Output> {
        self.script.pop_front()
    }

    fn id(&self) -> RingId {
        RingId::default()
    }

    fn members(&self) -> &[Member] {
        &[]
    }

    fn reached(&self, _: RingId, member: Member) -> u64 {
        self.reached.get(&member.node).copied().unwrap_or(u64::MAX)
    }

    fn stored(&self, _: RingId, member: Member) -> u64 {
        self.stored.get(&member.node).copied().unwrap_or(0)
    }

    fn reached_before(&self, _: RingId, _: Member) -> u64 {
        0
    }

    fn stored_before(&self, _: RingId, _: Member) -> u64 {
        0
    }

    fn tell_stored(&mut self, _: Time, _: RingId, upto: u64) {
        self.told = upto;
    }

    fn ask_stored(&mut self, _: Time) {
        self.asked += 1;
    }

    fn state_name(&self) -> &'static str {
        "operational"
    }

    fn queued(&self) -> usize {
        0
    }

    fn check_invariants(&self) {}
}
