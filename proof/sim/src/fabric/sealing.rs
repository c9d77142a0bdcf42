//! What is between a process and the network where datagrams are sealed: as in a node's transport, each life seals what it sends,
//! opens what comes, and meets the others' lives by contacts.

use bytes::Bytes;
use seal::{ClusterKey, Envelope, Keys, Seal};
use wire::{Member, NodeId, NodeSet, Secret, Time};

use super::{Fabric, What, node_id, place_of};
use crate::check::sealed::Sealed;
use crate::check::{Verdict, Violation};
use crate::draw::Draw;
use crate::network::Place;
use crate::options::CLUSTER_ID;
use crate::outsider::{Outsider, Sent};
use crate::process::Process;
use crate::run::Plant;

/// The keys, the outsider, and who looks that he does not matter.
pub(super) struct Sealing {
    nodes: Vec<NodeId>,
    /// What outlives a life at each host.
    pub(super) files: Vec<Keys>,
    plant: Plant,
    draw: Draw,
    outsider: Outsider,
    check: Sealed,
    verdict: Verdict,
}

/// What one life seals and opens with.
pub(super) struct Veil {
    pub(super) seal: Seal,
    /// What was sent last to a node, by place, while it did not know this life yet.
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
        self.plant.into_seal(&mut seal);
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

impl<P: Process, X> Fabric<P, X> {
    /// From now on datagrams are sealed, and an outsider acts upon so many of 1,000.
    pub fn seal(&mut self, outsider: u64, plant: Plant, draw: &mut Draw) {
        let nodes: Vec<NodeId> = (0..self.hosts.len()).map(node_id).collect();
        self.sealing = Some(Box::new(Sealing {
            files: vec![Keys::single(ClusterKey::new(1, secret(draw))); nodes.len()],
            outsider: Outsider::new(outsider, nodes.len(), draw.fork()),
            nodes,
            plant,
            draw: draw.fork(),
            check: Sealed::default(),
            verdict: Ok(()),
        }));
    }

    /// Objects if something was opened that must not be.
    pub fn sealed(&self) -> Verdict {
        self.sealing.as_ref().map_or(Ok(()), |sealing| sealing.verdict.clone())
    }

    /// A life begins to seal.
    pub(super) fn put_on(&mut self, node: usize) {
        let (me, now) = (self.member(node), self.now());
        let veil = self.sealing.as_mut().map(|sealing| sealing.veil(me, now));
        self.hosts[node].veil = veil;
    }

    /// What leaves in place of this datagram. `None`: its sender has gone meanwhile.
    pub(super) fn send_sealed(&mut self, from: usize, to: NodeSet, plain: &Bytes) {
        let (now, local) = (self.now(), self.local(from));
        let Some(veil) = &mut self.hosts[from].veil else { return };
        let bytes = veil.write(local, to, plain);
        if let Some(sealing) = &mut self.sealing {
            sealing.check.sealed(now, &bytes);
        }
        self.put(from, to, &bytes);
        for to in to.iter() {
            self.provoke(from, to, &bytes, plain);
        }
        self.contact(from);
    }

    /// The outsider has seen it.
    fn provoke(&mut self, from: Place, to: Place, sealed: &Bytes, plain: &Bytes) {
        let Some(sealing) = &mut self.sealing else { return };
        let Some(sent) = sealing.outsider.sees(from, to, sealed, plain) else { return };
        let Sent { from, to, bytes, after } = sent;
        if from != to {
            let at = self.now() + after;
            self.queue.push(at, What::Outsider(from, to, bytes));
        }
    }

    /// What sealing has to say itself.
    fn contact(&mut self, node: usize) {
        while let Some(contact) =
            self.hosts[node].veil.as_mut().and_then(|veil| veil.seal.poll_contact())
        {
            let place = place_of(contact.to);
            let bytes = Bytes::copy_from_slice(&contact.bytes);
            self.put(node, NodeSet::one(place), &bytes);
            self.provoke(node, place, &bytes, &bytes);
            let veil = self.hosts[node].veil.as_mut().expect("it has just spoken");
            // It has been answered: what comes behind it is opened.
            if let Some(last) = veil.unheard[place].take_if(|_| contact.answers) {
                self.send_sealed(node, NodeSet::one(place), &last);
            }
        }
    }

    /// What a datagram holds. `None`: it is worth nothing, or concerns sealing alone.
    pub(super) fn unseal(&mut self, node: usize, bytes: &Bytes) -> Option<Bytes> {
        let (me, local) = (self.member(node), self.local(node));
        let veil = self.hosts[node].veil.as_mut()?;
        let mut buffer = bytes.to_vec();
        let opened = veil.seal.open(local, &mut buffer).ok().flatten();
        self.contact(node);
        let range = opened?;
        let sealing = self.sealing.as_mut()?;
        if let Err(violation) = sealing.check.opened(me, bytes) {
            sealing.verdict = sealing.verdict.clone().and(Err::<(), Violation>(violation));
            return None;
        }
        Some(Bytes::from(buffer).slice(range))
    }
}
