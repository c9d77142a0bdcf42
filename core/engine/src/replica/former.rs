//! A replica that is to be given another state keeps its own until its service has read that
//! (`docs/protocol/group.md`, "The former copy").
//!
//! The replica is set aside as it is, and a successor waits for the state. Both have one service,
//! which keeps what it has until it has read the other state. If that never comes, because its
//! donors are gone or it cannot be read, the replica goes on where it was.

use alloc::vec::Vec;

use super::work::ServiceLink;
use super::{Mode, Replica};

impl Replica {
    /// Everything that it was given is executed, ordered and judged: its service's state is that of
    /// its history.
    pub(super) fn is_at_rest(&self) -> bool {
        matches!(self.mode, Mode::Live)
            && self.is_drained()
            && self.gate.queue.is_empty()
            && self.gate.withheld.is_none()
            && self.primary.is_empty()
            && self.calls.is_empty()
            && !self.ballots.voting.as_ref().is_some_and(|voting| voting.deviates)
    }

    /// Puts a successor into its place, and returns it as it is. `None`: it is in the midst of
    /// something, so nobody could say what its service's state is.
    pub(crate) fn set_aside(&mut self) -> Option<Replica> {
        if !self.is_at_rest() {
            return None;
        }
        let mut successor = Replica::new(self.group, self.style, self.keeps, self.planted);
        successor.service = self.service.handed_on();
        successor.lead.follow(&self.lead);
        Some(core::mem::replace(self, successor))
    }

    /// Its service has the state of the replica that was set aside.
    pub(crate) fn holds_former(&self) -> bool {
        self.service.holds_former
    }

    /// The replica that was set aside can go on: the service has not been given another state.
    pub(crate) fn can_resume(&self, former: &Replica) -> bool {
        let is_reading = match self.mode {
            Mode::Restoring { transfer, .. } => !self.has_failed(transfer),
            _ => false,
        };
        self.holds_former()
            && !is_reading
            && !self.has_state()
            && self.service.told == former.service.told
    }

    /// The replica that was set aside goes on.
    pub(crate) fn resume(&mut self, mut former: Replica) {
        former.service.next_ticket = self.service.next_ticket;
        former.lead.follow(&self.lead);
        *self = former;
        // Votes of an earlier component are void.
        self.close_votes();
        self.transfers.given = Vec::new();
        self.transfers.outgoing.clear();
    }
}

impl ServiceLink {
    /// The service goes on under a successor, which leaves it the state that it has.
    fn handed_on(&self) -> ServiceLink {
        let ServiceLink { told, runs, starts, next_ticket, .. } = *self;
        let mut link = ServiceLink::new(told);
        (link.runs, link.starts, link.next_ticket) = (runs, starts, next_ticket);
        (link.used, link.holds_former) = (true, true);
        link
    }
}
