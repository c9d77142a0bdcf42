//! Sealing on the way through the fabric.

use bytes::Bytes;
use seal::{ClusterKey, Keys};
use wire::{NodeId, NodeSet};

use super::{Sealing, secret};
use crate::check::sealed::Sealed;
use crate::check::{Verdict, Violation};
use crate::draw::Draw;
use crate::fabric::{Fabric, What, node_id, place_of};
use crate::network::Place;
use crate::outsider::{Outsider, Sent};
use crate::process::Process;
use crate::run::Plant;

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
    pub(in crate::fabric) fn put_on(&mut self, node: usize) {
        let (me, now) = (self.member(node), self.now());
        let veil = self.sealing.as_mut().map(|sealing| sealing.veil(me, now));
        self.hosts[node].veil = veil;
    }

    /// Sends the sealed form of this datagram, unless its sender has gone meanwhile.
    pub(in crate::fabric) fn send_sealed(&mut self, from: usize, to: NodeSet, plain: &Bytes) {
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

    /// Sends the contacts of the sealing layer itself.
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

    /// Returns the contents of a datagram. `None`: it is worth nothing, or concerns sealing alone.
    pub(in crate::fabric) fn unseal(&mut self, node: usize, bytes: &Bytes) -> Option<Bytes> {
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
