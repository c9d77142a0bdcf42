//! One node's part: what it seals, what it opens, and whom it has met.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce as AeadNonce};
use wire::{ClusterId, Member, NodeId, Secret, Time};

use crate::Refused;
use crate::bug::{Bug, Planted};
use crate::contact::Contact;
use crate::counters::Counters;
use crate::derive::{ClusterKey, Entropy};
use crate::envelope::{Envelope, HEADER, MAX_SEALED, OVERHEAD, TAG, is_sealed};
use crate::keys::{Keys, NoSuchKey};
use crate::opener::{Life, Standing};
use crate::peer::Peer;
use crate::sealer::{Exhausted, Sealer};

/// Contact messages that wait to be sent. Polled after every batch of datagrams, of which each
/// asks for one at most.
const MAX_CONTACTS: usize = 256;

/// The configuration with which a node seals and opens.
#[derive(Clone, Debug)]
pub struct Config {
    /// The cluster.
    pub cluster: ClusterId,
    /// This node, in this life.
    pub me: Member,
    /// The nodes, as configured.
    pub nodes: Vec<NodeId>,
    /// The cluster's keys.
    pub keys: Keys,
    /// Random bytes of this life alone, from the system.
    pub seed: Secret,
}

/// A contact message, sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedContact {
    /// The receiver.
    pub to: NodeId,
    /// The bytes.
    pub bytes: [u8; Contact::LENGTH + OVERHEAD],
    /// It answers the node's challenge: the receiver opens only datagrams sent from here on.
    /// Datagrams sent just before are worth sending again.
    pub answers: bool,
}

/// The machine. See the head of the crate.
pub struct Seal {
    cluster: ClusterId,
    me: Member,
    keys: Keys,
    sealer: Sealer,
    peers: Vec<Peer>,
    entropy: Entropy,
    contacts: VecDeque<(NodeId, Contact)>,
    counters: Counters,
    planted: Planted,
}

impl Seal {
    /// A life of a node that begins now.
    pub fn new(config: Config) -> Seal {
        let Config { cluster, me, nodes, keys, seed } = config;
        let mut entropy = Entropy::new(&seed);
        let salt = u64::from_le_bytes(entropy.draw());
        let sealer = Sealer::new(cluster, me, salt, keys.sealing());
        let mut seal = Seal {
            cluster,
            me,
            keys,
            sealer,
            peers: Vec::new(),
            entropy,
            contacts: VecDeque::with_capacity(MAX_CONTACTS),
            counters: Counters::default(),
            planted: Planted::default(),
        };
        seal.set_nodes(&nodes);
        seal
    }

    /// Opens what these nodes seal, and nothing from others. Nodes that stay are known as before.
    pub fn set_nodes(&mut self, nodes: &[NodeId]) {
        self.peers.retain(|peer| nodes.contains(&peer.node));
        for node in nodes.iter().filter(|node| **node != self.me.node) {
            let Err(at) = self.peers.binary_search_by_key(node, |peer| peer.node) else { continue };
            let mut peer = Peer::new(self.cluster, *node, &mut self.entropy);
            peer.opener.planted = self.planted;
            self.peers.insert(at, peer);
        }
    }

    /// Makes this mistake from now on.
    pub fn plant(&mut self, planted: Planted) {
        self.planted = planted;
        self.peers.iter_mut().for_each(|peer| peer.opener.planted = planted);
    }

    /// As [`Sealer::seal`].
    ///
    /// # Errors
    /// As [`Sealer::seal`].
    pub fn seal(
        &mut self,
        to: NodeId,
        datagram: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Exhausted> {
        self.counters.sealed += 1;
        self.sealer.seal(to, datagram, out)
    }

    /// As [`Sealer::seal_in_place`].
    ///
    /// # Errors
    /// As [`Sealer::seal_in_place`].
    pub fn seal_in_place(&mut self, to: NodeId, buffer: &mut [u8]) -> Result<(), Exhausted> {
        self.counters.sealed += 1;
        self.sealer.seal_in_place(to, buffer)
    }

    /// Opens a datagram where it lies. The range is that of the ring's datagram in the buffer;
    /// `None` if it was a contact message, which concerns nobody else.
    ///
    /// # Errors
    /// Why it is worth nothing. The buffer's contents are of no use then.
    pub fn open(&mut self, now: Time, buffer: &mut [u8]) -> Result<Option<Range<usize>>, Refused> {
        let envelope = self.read(buffer)?;
        let range = HEADER..buffer.len() - TAG;
        let (header, rest) = buffer.split_at_mut(HEADER);
        let (body, tag) = rest.split_at_mut(rest.len() - TAG);
        let (header, tag) = (&*header, &*tag);
        let is_for_ring = self.take(now, &envelope, |key, nonce| {
            let opened = key.open_in_place_separate_tag(nonce, Aad::from(header), tag, body);
            opened.ok().map(|opened| &*opened)
        })?;
        Ok(is_for_ring.then_some(range))
    }

    /// Opens a datagram into `out`, of which it returns the part that is the ring's datagram: for
    /// who has to move the bytes anyway. Otherwise as [`Seal::open`].
    ///
    /// # Errors
    /// As [`Seal::open`].
    ///
    /// # Panics
    /// If `out` is shorter than the datagram less [`OVERHEAD`].
    pub fn open_into<'a>(
        &mut self,
        now: Time,
        datagram: &[u8],
        out: &'a mut [u8],
    ) -> Result<Option<&'a [u8]>, Refused> {
        let envelope = self.read(datagram)?;
        let (header, rest) = datagram.split_at(HEADER);
        let (body, tag) = rest.split_at(rest.len() - TAG);
        let out = &mut out[..body.len()];
        let is_for_ring = self.take(now, &envelope, |key, nonce| {
            key.open_separate_gather(nonce, Aad::from(header), body, tag, out).ok()?;
            Some(&*out)
        })?;
        Ok(is_for_ring.then_some(out))
    }

    fn read(&mut self, datagram: &[u8]) -> Result<Envelope, Refused> {
        let envelope = match Envelope::decode(datagram) {
            Some(_) if datagram.len() > MAX_SEALED => Err(Refused::Malformed),
            None if !is_sealed(datagram) && datagram.starts_with(b"SF") => Err(Refused::Plain),
            envelope => envelope.ok_or(Refused::Malformed),
        };
        envelope.inspect_err(|refused| self.counters.refused(*refused))
    }

    /// True if what was opened is for the ring.
    fn take<'a>(
        &mut self,
        now: Time,
        envelope: &Envelope,
        decrypt: impl FnOnce(&LessSafeKey, AeadNonce) -> Option<&'a [u8]>,
    ) -> Result<bool, Refused> {
        let taken = self.try_take(now, envelope, decrypt);
        match taken {
            Ok(true) => self.counters.opened += 1,
            Ok(false) => self.counters.contacts_in += 1,
            Err(refused) => self.counters.refused(refused),
        }
        taken
    }

    fn try_take<'a>(
        &mut self,
        now: Time,
        envelope: &Envelope,
        decrypt: impl FnOnce(&LessSafeKey, AeadNonce) -> Option<&'a [u8]>,
    ) -> Result<bool, Refused> {
        if envelope.sender.node == self.me.node
            || envelope.to != Envelope::ALL
                && envelope.to != self.me.node
                && !self.planted.is(Bug::OpenForOthers)
        {
            return Err(Refused::Misaddressed);
        }
        let index = self.place(envelope.sender.node).ok_or(Refused::Stranger)?;
        let peer = &mut self.peers[index];
        let (standing, opened) = peer.opener.open(envelope, &self.keys, decrypt)?;
        if let Standing::Unmet { first: true } = standing {
            peer.hurry(now);
        }
        if let Some(contact) = Contact::decode(opened) {
            // An answer to everybody answers nobody.
            if envelope.to != self.me.node {
                return Err(Refused::Misaddressed);
            }
            self.handle_contact(now, index, envelope, contact);
            return Ok(false);
        }
        if standing == Standing::Met || self.planted.is(Bug::TrustUnmet) {
            return Ok(true);
        }
        self.challenge(now, index);
        Err(Refused::Unmet)
    }

    fn handle_contact(&mut self, now: Time, index: usize, envelope: &Envelope, contact: Contact) {
        let Seal { peers, entropy, .. } = self;
        let peer = &mut peers[index];
        if let Some(answer) = contact.answer
            && peer.take_answer(now, envelope, answer, entropy)
        {
            self.counters.met += 1;
        }
        let answer = contact
            .challenge
            .and_then(|challenge| peer.answer(now, Life::of(envelope), challenge, entropy));
        self.push(index, answer);
    }

    /// Something is to be sent to a node: if it has not been met, now is the time.
    pub fn greet(&mut self, now: Time, node: NodeId) {
        if let Some(index) = self.place(node)
            && self.peers[index].opener.life().is_none()
        {
            self.challenge(now, index);
        }
    }

    fn challenge(&mut self, now: Time, index: usize) {
        let challenge = self.peers[index].challenge_if_due(now, &mut self.entropy);
        self.push(index, challenge);
    }

    fn push(&mut self, index: usize, contact: Option<Contact>) {
        if self.contacts.len() < MAX_CONTACTS {
            self.contacts.extend(contact.map(|contact| (self.peers[index].node, contact)));
        }
    }

    /// The next contact message to send. Ask after each batch of datagrams and after
    /// [`Seal::greet`], before what else there is to send.
    pub fn poll_contact(&mut self) -> Option<SealedContact> {
        let (to, contact) = self.contacts.pop_front()?;
        let mut bytes = [0; Contact::LENGTH + OVERHEAD];
        bytes[HEADER..HEADER + Contact::LENGTH].copy_from_slice(&contact.encode());
        self.sealer.seal_in_place(to, &mut bytes).ok()?;
        self.counters.contacts_out += 1;
        Some(SealedContact { to, bytes, answers: contact.answer.is_some() })
    }

    /// The node has been met, and takes what this node sends, as far as known. If not, what is
    /// sent to it now may be worth sending again after the next contact.
    pub fn is_in_touch(&self, node: NodeId) -> bool {
        self.place(node).is_some_and(|index| self.peers[index].is_in_touch())
    }

    /// The life of a node that has proved to be going on.
    pub fn met(&self, node: NodeId) -> Option<Member> {
        self.peers[self.place(node)?].opener.met()
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The cluster's keys as this node has them.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// From now on opens what is sealed with this key too. As [`Keys::add`].
    pub fn add_key(&mut self, key: ClusterKey) {
        let number = key.number();
        let replaces = self.keys.get(number).is_some_and(|old| old.secret() != key.secret());
        self.keys.add(key);
        for peer in &mut self.peers {
            if replaces {
                peer.opener.forget(number);
            }
            peer.opener.keep_only(&self.keys);
        }
    }

    /// From now on seals with the key of this number.
    ///
    /// # Errors
    /// It is not here.
    pub fn seal_with(&mut self, number: u8) -> Result<(), NoSuchKey> {
        self.keys.seal_with(number)?;
        if self.sealer.key() != number {
            self.sealer.use_key(self.keys.sealing());
        }
        Ok(())
    }

    /// From now on opens only what is sealed with the key that seals.
    pub fn retire_other_keys(&mut self) {
        self.keys.retire_others();
        self.peers.iter_mut().for_each(|peer| peer.opener.keep_only(&self.keys));
    }

    /// Forgets a key that does not seal.
    pub fn remove_key(&mut self, number: u8) {
        self.keys.remove(number);
        self.peers.iter_mut().for_each(|peer| peer.opener.keep_only(&self.keys));
    }

    fn place(&self, node: NodeId) -> Option<usize> {
        self.peers.binary_search_by_key(&node, |peer| peer.node).ok()
    }
}
