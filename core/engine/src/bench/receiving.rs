//! The checks of a benchmark's load at every node.

use alloc::vec;
use alloc::vec::Vec;

use wire::Time;
use wire::bench::{Load, Measured, Plan, Report};

/// The messages received so far.
#[derive(Clone, Debug)]
pub(super) struct Receiving {
    /// By sender, in the plan's order: the number that is to come next.
    next: Vec<u64>,
    received: Vec<u64>,
    order: u64,
    corrupt: u64,
    disordered: u64,
    first: Option<Time>,
    last: Time,
}

impl Receiving {
    pub fn new(plan: &Plan) -> Receiving {
        let nothing = vec![0; plan.senders.len()];
        Receiving {
            next: nothing.clone(),
            received: nothing,
            order: 0,
            corrupt: 0,
            disordered: 0,
            first: None,
            last: Time::ZERO,
        }
    }

    /// A message is delivered; `place` is that of the member that sent it.
    pub fn take(&mut self, now: Time, place: Option<usize>, load: &Load) {
        self.first.get_or_insert(now);
        self.last = now;
        // A position-dependent hash: the same messages in another order have another.
        let word = u64::from(load.place) << 56 ^ load.number;
        self.order = (self.order.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Some(place) = place.filter(|place| *place == usize::from(load.place)) else {
            self.corrupt += 1;
            return;
        };
        self.received[place] += 1;
        if load.number != self.next[place] {
            self.disordered += 1;
        }
        self.next[place] = load.number.wrapping_add(1);
        if !load.is_right() {
            self.corrupt += 1;
        }
    }

    pub fn total(&self) -> u64 {
        self.received.iter().sum()
    }

    pub fn report(&self, id: u32, measured: Option<Measured>) -> Report {
        Report {
            id,
            received: self.received.clone(),
            order: self.order,
            corrupt: self.corrupt,
            disordered: self.disordered,
            span: self.last.since(self.first.unwrap_or(self.last)),
            measured,
        }
    }
}
