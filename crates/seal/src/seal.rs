//! One node's part: what it seals, what it opens, and whom it has met.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce as AeadNonce};
use wire::{ClusterId, Duration, Member, NodeId, Secret, Time};

use crate::Refused;
use crate::contact::{Contact, Nonce};
use crate::derive::{ClusterKey, Entropy};
use crate::envelope::{Envelope, HEADER, MAX_SEALED, OVERHEAD, TAG, is_sealed};
use crate::keys::{Keys, NoSuchKey};
use crate::opener::{Life, Opener, Standing};
use crate::sealer::{Exhausted, Sealer};

/// A challenge is not answered for longer than this: a recording of an answer is worth nothing
/// after it. Many times what a loaded network takes for a round trip.
const CHALLENGE_LIFE: Duration = Duration::from_secs(1);

/// Pause before a node that is silent is challenged again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// A challenge that comes again within this time, by another link or from a recording, is not
/// answered again. Shorter than any node's pause.
const SAME_CHALLENGE: Duration = Duration::from_micros(500);

/// Contact messages that wait to be sent. Polled after every batch of datagrams, of which each
/// asks for one at most.
const MAX_CONTACTS: usize = 256;

/// What a node seals and opens with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The cluster.
    pub cluster: ClusterId,
    /// This node, in this life.
    pub me: Member,
    /// All configured nodes.
    pub nodes: Vec<NodeId>,
    /// The cluster's keys.
    pub keys: Keys,
    /// Random bytes of this life alone, from the system.
    pub seed: Secret,
}

/// A contact message, sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedContact {
    /// Whom to send it to.
    pub to: NodeId,
    /// The bytes.
    pub bytes: [u8; Contact::LENGTH + OVERHEAD],
    /// It answers the node's challenge: only what is sent to it from here on is opened there. What
    /// was sent just before is worth sending again.
    pub answers: bool,
}

/// What was done with datagrams. All counts are since the node's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams sealed.
    pub sealed: u64,
    /// Datagrams opened.
    pub opened: u64,
    /// Contact messages opened.
    pub contacts_in: u64,
    /// Contact messages sealed.
    pub contacts_out: u64,
    /// Lives of other nodes that proved to be going on.
    pub met: u64,
    /// [`Refused::Malformed`].
    pub malformed: u64,
    /// [`Refused::Plain`].
    pub plain: u64,
    /// [`Refused::UnknownKey`].
    pub unknown_key: u64,
    /// [`Refused::Stranger`] and [`Refused::Misaddressed`].
    pub misaddressed: u64,
    /// [`Refused::Forged`].
    pub forged: u64,
    /// [`Refused::Duplicate`].
    pub duplicates: u64,
    /// [`Refused::Replayed`] and [`Refused::Stale`].
    pub replayed: u64,
    /// [`Refused::Unmet`].
    pub unmet: u64,
}

struct Peer {
    node: NodeId,
    opener: Opener,
    challenge: Nonce,
    challenged_first: Option<Time>,
    /// When it may be challenged again, and the pause after that.
    challenge_at: Time,
    pause: Duration,
    /// The life that was given an answer last: it takes what this node sends.
    answered: Option<Life>,
    last_answers: [Option<(Nonce, Time)>; 4],
}

/// The machine. See the head of the crate.
pub struct Seal {
    me: Member,
    keys: Keys,
    sealer: Sealer,
    peers: Vec<Peer>,
    entropy: Entropy,
    contacts: VecDeque<(NodeId, Contact)>,
    counters: Counters,
}

impl Seal {
    /// A life of a node that begins now.
    pub fn new(config: Config) -> Seal {
        let Config { cluster, me, nodes, keys, seed } = config;
        let mut entropy = Entropy::new(&seed);
        let salt = u64::from_le_bytes(entropy.draw());
        let sealer = Sealer::new(cluster, me, salt, keys.sealing());
        let others = nodes.into_iter().filter(|&node| node != me.node);
        let peer = |node| Peer {
            node,
            opener: Opener::new(cluster, node),
            challenge: Nonce(entropy.draw()),
            challenged_first: None,
            challenge_at: Time::ZERO,
            pause: FIRST_PAUSE,
            answered: None,
            last_answers: [None; 4],
        };
        let mut peers: Vec<Peer> = others.map(peer).collect();
        peers.sort_by_key(|peer| peer.node);
        let contacts = VecDeque::with_capacity(MAX_CONTACTS);
        Seal { me, keys, sealer, peers, entropy, contacts, counters: Counters::default() }
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
            || envelope.to != Envelope::ALL && envelope.to != self.me.node
        {
            return Err(Refused::Misaddressed);
        }
        let index = self.place(envelope.sender.node).ok_or(Refused::Stranger)?;
        let peer = &mut self.peers[index];
        let (standing, opened) = peer.opener.open(envelope, &self.keys, decrypt)?;
        if let Standing::Unmet { first: true } = standing {
            // Somebody new: it is not to wait for what its predecessor's silence has led to.
            (peer.challenge_at, peer.pause) = (now, FIRST_PAUSE);
        }
        if let Some(contact) = Contact::decode(opened) {
            // An answer to everybody answers nobody.
            if envelope.to != self.me.node {
                return Err(Refused::Misaddressed);
            }
            self.handle_contact(now, index, envelope, contact);
            return Ok(false);
        }
        if standing == Standing::Met {
            return Ok(true);
        }
        self.challenge(now, index);
        Err(Refused::Unmet)
    }

    fn handle_contact(&mut self, now: Time, index: usize, envelope: &Envelope, contact: Contact) {
        let life = Life::of(envelope);
        let peer = &mut self.peers[index];
        let is_met = |peer: &Peer| peer.opener.life() == Some(life);
        if contact.answer == Some(peer.challenge) && !is_met(peer) && peer.is_challenged(now) {
            peer.opener.meet(envelope);
            peer.renew(&mut self.entropy);
            (peer.challenge_at, peer.pause) = (now, FIRST_PAUSE);
            self.counters.met += 1;
        }
        let Some(challenge) = contact.challenge else { return };
        if !peer.is_to_answer(challenge, now) {
            return;
        }
        peer.answered = Some(life);
        // It has to prove itself too: then both know each other after three messages.
        let mine = (!is_met(peer)).then(|| peer.challenge(now, &mut self.entropy));
        self.push(index, Contact { challenge: mine, answer: Some(challenge) });
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
        let peer = &mut self.peers[index];
        if now < peer.challenge_at {
            return;
        }
        peer.challenge_at = now + peer.pause;
        peer.pause = (peer.pause * 2).min(LONGEST_PAUSE);
        let challenge = Some(peer.challenge(now, &mut self.entropy));
        self.push(index, Contact { challenge, answer: None });
    }

    fn push(&mut self, index: usize, contact: Contact) {
        if self.contacts.len() < MAX_CONTACTS {
            self.contacts.push_back((self.peers[index].node, contact));
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
        self.place(node).is_some_and(|index| {
            let peer = &self.peers[index];
            peer.answered.is_some() && peer.answered == peer.opener.life()
        })
    }

    /// The life of a node that has proved to be going on.
    pub fn met(&self, node: NodeId) -> Option<Member> {
        self.peers[self.place(node)?].opener.met()
    }

    /// What was counted.
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

impl Peer {
    /// The challenge to send: one for all until it is answered or too old, so that a repeat that
    /// overtakes an answer does not spoil it.
    fn challenge(&mut self, now: Time, entropy: &mut Entropy) -> Nonce {
        if self.challenged_first.is_some_and(|first| now.since(first) > CHALLENGE_LIFE) {
            self.renew(entropy);
        }
        self.challenged_first.get_or_insert(now);
        self.challenge
    }

    fn renew(&mut self, entropy: &mut Entropy) {
        self.challenge = Nonce(entropy.draw());
        self.challenged_first = None;
    }

    fn is_challenged(&self, now: Time) -> bool {
        self.challenged_first.is_some_and(|first| now.since(first) <= CHALLENGE_LIFE)
    }

    /// False if it was answered a moment ago.
    fn is_to_answer(&mut self, challenge: Nonce, now: Time) -> bool {
        let recent = |(_, at): &&(Nonce, Time)| now.since(*at) < SAME_CHALLENGE;
        if self.last_answers.iter().flatten().filter(recent).any(|(nonce, _)| *nonce == challenge) {
            return false;
        }
        self.last_answers.rotate_right(1);
        self.last_answers[0] = Some((challenge, now));
        true
    }
}

impl Counters {
    fn refused(&mut self, refused: Refused) {
        *match refused {
            Refused::Malformed => &mut self.malformed,
            Refused::Plain => &mut self.plain,
            Refused::UnknownKey => &mut self.unknown_key,
            Refused::Stranger | Refused::Misaddressed => &mut self.misaddressed,
            Refused::Forged => &mut self.forged,
            Refused::Duplicate => &mut self.duplicates,
            Refused::Replayed | Refused::Stale => &mut self.replayed,
            Refused::Unmet => &mut self.unmet,
        } += 1;
    }
}
