//! Seals datagrams on their way from the stack to the sockets, and opens them on their way in.
//! Without a key it changes nothing.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use seal::{Envelope, Seal, SealedContact};
use wire::{NodeId, NodeList, NodeSet, Time};

use admin::status::SealStatus;

/// The room of transport that knows the cluster's keys.
pub(crate) struct Sealing {
    seal: Option<Box<Seal>>,
    nodes: NodeList,
    /// The last datagram sent to a node, by place, while it did not know this life yet.
    unheard: Vec<Option<Bytes>>,
}

impl fmt::Debug for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.seal.is_some() { "Sealing(on)" } else { "Sealing(off)" })
    }
}

impl Sealing {
    /// Seals with `seal`. `None`: everything stays as it is.
    pub fn new(seal: Option<Seal>) -> Sealing {
        Sealing { seal: seal.map(Box::new), nodes: NodeList::new(&[]), unheard: Vec::new() }
    }

    /// Seals for these nodes from now on, also for those that have gone and may ask.
    pub fn set_nodes(&mut self, list: &NodeList) {
        let nodes: Vec<NodeId> = list.seats().map(|(node, _)| node).collect();
        self.unheard.resize(nodes.len(), None);
        if let Some(seal) = &mut self.seal {
            seal.set_nodes(&nodes);
        }
        self.nodes = list.clone();
    }

    /// The machine, if there are keys.
    pub fn seal(&mut self) -> Option<&mut Seal> {
        self.seal.as_deref_mut()
    }

    /// Appends what is to be sent to `to` for this datagram. False if nothing can be sent.
    pub fn write(&mut self, now: Time, to: NodeSet, datagram: &Bytes, out: &mut Vec<u8>) -> bool {
        let Some(seal) = &mut self.seal else {
            out.extend_from_slice(datagram);
            return true;
        };
        let mut places = to.iter();
        let envelope_to = match (places.next(), places.next()) {
            (Some(one), None) => self.nodes.node(one),
            _ => Envelope::ALL,
        };
        for place in to.iter() {
            let node = self.nodes.node(place);
            if !seal.is_in_touch(node) {
                seal.greet(now, node);
                self.unheard[place] = Some(datagram.clone());
            }
        }
        seal.seal(envelope_to, datagram, out).is_ok()
    }

    /// Where in these bytes the ring's datagram is, once they are opened. `None`: it is worth
    /// nothing, or concerns this room alone.
    pub fn open(&mut self, now: Time, bytes: &mut [u8]) -> Option<Range<usize>> {
        match &mut self.seal {
            Some(seal) => seal.open(now, bytes).ok().flatten(),
            None => Some(0..bytes.len()),
        }
    }

    /// The next message of this room's own to send, with the place of its receiver.
    pub fn poll_contact(&mut self) -> Option<(usize, SealedContact)> {
        let contact = self.seal.as_mut()?.poll_contact()?;
        let place = self.nodes.seat(contact.to)?;
        Some((place, contact))
    }

    /// Takes the datagram that the node at this place could not open, to send it once more.
    pub fn take_unheard(&mut self, place: usize) -> Option<Bytes> {
        self.unheard[place].take()
    }

    /// The counts, and the key in use. `None`: nothing is sealed.
    pub fn status(&self) -> Option<SealStatus> {
        self.seal.as_deref().map(SealStatus::new)
    }
}
