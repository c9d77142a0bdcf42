//! The machines of nodes as the fabric drives them.

use bytes::Bytes;
use engine::Stack;
use ring::Ring;
use wire::ring::{Datagram, Message};
use wire::{NodeId, RingId, Time};

use crate::options::CLUSTER_ID;

/// A machine as the fabric drives it.
pub trait Process {
    /// A datagram came.
    fn datagram(&mut self, now: Time, bytes: &Bytes);
    /// The host of this node says that nobody listens there.
    fn unreachable(&mut self, now: Time, node: NodeId);
    /// A timer is due.
    fn timeout(&mut self, now: Time);
    /// When the next timer is due.
    fn next_timeout(&self) -> Option<Time>;
    /// Panics if something inside contradicts itself.
    fn check(&self);
}

/// A bare ring, and the datagrams of rings that the network brought to it: checkers want to know
/// who can have what.
pub struct Listener {
    /// The machine.
    pub ring: Ring,
    /// Ring and sequence number of each datagram of data that came, until they are taken.
    pub heard: Vec<(RingId, u64)>,
}

impl Listener {
    fn hear(&mut self, now: Time, bytes: &Bytes) {
        let Ok(datagram) = Datagram::decode(CLUSTER_ID, wire::versions::RING, bytes) else {
            return;
        };
        if let Message::Data(data) = &datagram.message {
            let origin = data.origin.map(|origin| (origin.ring, origin.sequence));
            self.heard.extend([(data.ring, data.sequence)].into_iter().chain(origin));
        }
        self.ring.handle_message(now, datagram);
    }
}

/// All machines have the same verbs; only datagrams come to them in another form.
macro_rules! process {
    ($process:ty, $datagram:path, $it:ident => $machine:expr) => {
        impl Process for $process {
            fn datagram(&mut self, now: Time, bytes: &Bytes) {
                $datagram(self, now, bytes);
            }

            fn unreachable(&mut self, now: Time, node: NodeId) {
                let $it = self;
                $machine.handle_unreachable(now, node);
            }

            fn timeout(&mut self, now: Time) {
                let $it = self;
                $machine.handle_timeout(now);
            }

            fn next_timeout(&self) -> Option<Time> {
                let $it = self;
                $machine.next_timeout()
            }

            fn check(&self) {
                let $it = self;
                $machine.check_invariants();
            }
        }
    };
}

process!(Stack<Ring>, Stack::handle_datagram, stack => stack);
process!(Listener, Listener::hear, listener => listener.ring);
