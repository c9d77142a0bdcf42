//! The datagrams that this node has sent again: each is asked for many times while it is on its
//! way.

use alloc::vec;
use alloc::vec::Vec;

use wire::{Duration, Time};

#[derive(Debug)]
pub(super) struct Repairs {
    /// For each member, when something was sent to it again, and up to which number: a burst of
    /// acknowledgements names the same losses many times.
    resent: Vec<(Time, u64)>,
    /// The datagrams that were sent to all at the token's last visit.
    served: Vec<u64>,
}

impl Repairs {
    pub fn new(members: usize) -> Repairs {
        Repairs { resent: vec![(Time::ZERO, 0); members], served: Vec::new() }
    }

    /// Keeps the datagrams that are to be sent to a member that misses them. The rest is on its
    /// way, for `span`.
    pub fn select(&mut self, now: Time, span: Duration, member: usize, missing: &mut Vec<u64>) {
        let (at, upto) = self.resent[member];
        let upto = if now < at + span { upto } else { 0 };
        missing.retain(|sequence| *sequence > upto);
        if let Some(last) = missing.iter().max() {
            self.resent[member] = (now, upto.max(*last));
        }
    }

    /// These are served at this visit of the token. A datagram that was served at the last visit,
    /// too, is asked for anew: the member that misses it does not hear this node, and others have
    /// to see the request.
    pub fn serve(&mut self, held: &[u64], missing: &mut Vec<u64>) {
        missing.extend(held.iter().filter(|sequence| self.served.contains(sequence)));
        self.served.clear();
        self.served.extend_from_slice(held);
    }
}
