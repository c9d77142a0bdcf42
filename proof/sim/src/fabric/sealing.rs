//! The layer between a process and the network where datagrams are sealed. As in a node's
//! transport, each life seals its datagrams, opens those that arrive, and meets the others' lives
//! by contacts.

mod in_fabric;

use bytes::Bytes;
use seal::{Envelope, Keys, Seal};
use wire::{Member, NodeId, NodeSet, Secret, Time};

use super::{node_id, place_of};
use crate::check::Verdict;
use crate::check::sealed::Sealed;
use crate::draw::Draw;
use crate::options::CLUSTER_ID;
use crate::outsider::Outsider;
use crate::run::Plant;

/// The keys, the outsider, and the checker of his effect.
pub(super) struct Sealing {
    nodes: Vec<NodeId>,
    /// The keys that outlive a life at each host.
    pub(super) files: Vec<Keys>,
    plant: Plant,
    draw: Draw,
    outsider: Outsider,
    check: Sealed,
    verdict: Verdict,
}

/// The seal of one life.
pub(super) struct Veil {
    pub(super) seal: Seal,
    /// The last datagram sent to each node, by place, while that node did not know this life yet.
    unheard: Vec<Option<Bytes>>,
}

pub(super) fn secret(draw: &mut Draw) -> Secret {
    let mut bytes = [0; Secret::LENGTH];
    bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&draw.bits().to_le_bytes()));
    Secret::new(bytes)
}

impl Sealing {
    fn veil(&mut self, me: Member, now: Time) -> Veil {
        let file = self.files[place_of(me.node)].clone();
        let (nodes, keys) = (self.nodes.clone(), file);
        let unheard = vec![None; nodes.len()];
        let seed = secret(&mut self.draw);
        let config = seal::Config { cluster: CLUSTER_ID, me, nodes, keys, seed };
        self.check.born(me, now);
        let mut seal = Seal::new(config);
        seal.plant(self.plant.seal);
        Veil { seal, unheard }
    }
}

impl Veil {
    fn write(&mut self, now: Time, to: NodeSet, datagram: &Bytes) -> Bytes {
        let mut places = to.iter();
        let envelope_to = match (places.next(), places.next()) {
            (Some(one), None) => node_id(one),
            _ => Envelope::ALL,
        };
        for place in to.iter() {
            if !self.seal.is_in_touch(node_id(place)) {
                self.seal.greet(now, node_id(place));
                self.unheard[place] = Some(datagram.clone());
            }
        }
        let mut bytes = Vec::new();
        self.seal.seal(envelope_to, datagram, &mut bytes).expect("a run is short");
        bytes.into()
    }
}
