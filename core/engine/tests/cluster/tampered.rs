//! A sequencer that does one thing wrong at one node, to show that a benchmark sees it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use wire::Payload;

use bytes::Bytes;
use steadfast_engine::ordering::{InProcess, Level, Ordering, Output, Refused, Sequencer};
use wire::{Malformed, Member, NodeId, RingId, Time};

use crate::base::Base;

/// The fault in the next large message that the node is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A bit of it is another.
    Flip,
    /// It comes after the one that follows it.
    Late,
    /// It does not come.
    Lose,
}

/// Where and what, until it has been done.
pub type Plant = Rc<Cell<Option<(NodeId, Wrong)>>>;

/// A node's end of a sequencer that errs.
pub struct Tampered {
    inner: InProcess,
    me: Member,
    plant: Plant,
    ready: VecDeque<Output>,
    held_back: Option<Output>,
}

impl Tampered {
    /// Passes an output on, with the fault in it.
    fn tamper(&mut self, output: Output) {
        let Output::Deliver(mut delivery) = output else {
            return self.ready.push_back(output);
        };
        let large = delivery.payload.len() > 40;
        if let Some(late) = self.held_back.take_if(|_| large) {
            self.ready.push_back(Output::Deliver(delivery));
            return self.ready.push_back(late);
        }
        let planted = self.plant.get().filter(|(node, _)| large && *node == self.me.node);
        match planted.map(|(_, wrong)| wrong) {
            Some(Wrong::Flip) => {
                let mut bytes = delivery.payload.to_vec();
                *bytes.last_mut().expect("it is large") ^= 4;
                delivery.payload = bytes.into();
                self.ready.push_back(Output::Deliver(delivery));
            }
            Some(Wrong::Late) => self.held_back = Some(Output::Deliver(delivery)),
            Some(Wrong::Lose) => {}
            None => return self.ready.push_back(Output::Deliver(delivery)),
        }
        self.plant.set(None);
    }
}

impl Base for Tampered {
    type Shared = (Sequencer, Plant);

    fn shared() -> Self::Shared {
        (InProcess::shared(), Plant::default())
    }

    fn start(shared: &Self::Shared, now: Time, me: Member, nodes: Vec<NodeId>) -> Tampered {
        let (sequencer, plant) = shared;
        let inner = InProcess::start(sequencer, now, me, nodes);
        let plant = plant.clone();
        Tampered { inner, me, plant, ready: VecDeque::new(), held_back: None }
    }

    fn components(shared: &Self::Shared, now: Time, components: &[Vec<NodeId>]) {
        InProcess::components(&shared.0, now, components);
    }
}

impl Ordering for Tampered {
    fn handle_datagram(&mut self, now: Time, bytes: &Bytes) -> Result<(), Malformed> {
        self.inner.handle_datagram(now, bytes)
    }

    fn handle_unreachable(&mut self, now: Time, node: NodeId) {
        self.inner.handle_unreachable(now, node);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.inner.handle_timeout(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.inner.next_timeout()
    }

    fn multicast(&mut self, now: Time, payload: Payload, level: Level) -> Result<(), Refused> {
        self.inner.multicast(now, payload, level)
    }

    fn confirm(&mut self, now: Time) -> Option<u64> {
        self.inner.confirm(now)
    }

    fn leave(&mut self, now: Time) {
        self.inner.leave(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        while let Some(output) = self.inner.poll_output() {
            self.tamper(output);
        }
        self.ready.pop_front()
    }

    fn id(&self) -> RingId {
        self.inner.id()
    }

    fn members(&self) -> &[Member] {
        self.inner.members()
    }

    fn reached(&self, ring: RingId, member: Member) -> u64 {
        self.inner.reached(ring, member)
    }

    fn stored(&self, ring: RingId, member: Member) -> u64 {
        self.inner.stored(ring, member)
    }

    fn reached_before(&self, ring: RingId, member: Member) -> u64 {
        self.inner.reached_before(ring, member)
    }

    fn stored_before(&self, ring: RingId, member: Member) -> u64 {
        self.inner.stored_before(ring, member)
    }

    fn tell_stored(&mut self, now: Time, ring: RingId, upto: u64) {
        self.inner.tell_stored(now, ring, upto);
    }

    fn ask_stored(&mut self, now: Time) {
        self.inner.ask_stored(now);
    }

    fn state_name(&self) -> &'static str {
        self.inner.state_name()
    }

    fn queued(&self) -> usize {
        self.inner.queued()
    }

    fn check_invariants(&self) {
        self.inner.check_invariants();
    }
}
