//! One other node: what it seals, and how far each has proved to the other that its life goes on.

use wire::{ClusterId, Duration, NodeId, Time};

use crate::contact::{Contact, Nonce};
use crate::derive::Entropy;
use crate::envelope::Envelope;
use crate::opener::{Life, Opener};

/// A challenge is not answered for longer than this: a recording of an answer is worth nothing
/// after it. Many times what a loaded network takes for a round trip.
const CHALLENGE_LIFE: Duration = Duration::from_secs(1);

/// Pause before a node that is silent is challenged again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// A challenge that comes again within this time, by another link or from a recording, is not
/// answered again. Shorter than any node's pause.
const SAME_CHALLENGE: Duration = Duration::from_micros(500);

pub(crate) struct Peer {
    pub node: NodeId,
    pub opener: Opener,
    /// One for all messages until it is answered or too old, so that a repeat that overtakes an
    /// answer does not spoil it.
    challenge: Nonce,
    challenged_first: Option<Time>,
    /// When it may be challenged again, and the pause after that.
    challenge_at: Time,
    pause: Duration,
    /// The life that was given an answer last: it takes what this node sends.
    answered: Option<Life>,
    last_answers: [Option<(Nonce, Time)>; 4],
}

impl Peer {
    /// Nothing is known of the node yet.
    pub fn new(cluster: ClusterId, node: NodeId, entropy: &mut Entropy) -> Peer {
        Peer {
            node,
            opener: Opener::new(cluster, node),
            challenge: Nonce(entropy.draw()),
            challenged_first: None,
            challenge_at: Time::ZERO,
            pause: FIRST_PAUSE,
            answered: None,
            last_answers: [None; 4],
        }
    }

    /// Each has proved to the other that its life goes on, as far as is known here.
    pub fn is_in_touch(&self) -> bool {
        self.answered.is_some() && self.answered == self.opener.life()
    }

    /// Somebody new is there, and is not to wait for what its predecessor's silence has led to.
    pub fn hurry(&mut self, now: Time) {
        (self.challenge_at, self.pause) = (now, FIRST_PAUSE);
    }

    /// The challenge to send, unless the last one was sent a moment ago.
    pub fn challenge_if_due(&mut self, now: Time, entropy: &mut Entropy) -> Option<Contact> {
        if now < self.challenge_at {
            return None;
        }
        self.challenge_at = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Some(Contact { challenge: Some(self.challenge(now, entropy)), answer: None })
    }

    /// An answer came in this envelope. True if its life has thereby proved to be going on.
    pub fn take_answer(
        &mut self,
        now: Time,
        envelope: &Envelope,
        answer: Nonce,
        entropy: &mut Entropy,
    ) -> bool {
        let fresh = self.challenged_first.is_some_and(|first| now.since(first) <= CHALLENGE_LIFE);
        if answer != self.challenge || !fresh || self.opener.life() == Some(Life::of(envelope)) {
            return false;
        }
        self.opener.meet(envelope);
        self.renew(entropy);
        self.hurry(now);
        true
    }

    /// The answer to a life that has sent this challenge, unless it was answered a moment ago.
    pub fn answer(
        &mut self,
        now: Time,
        life: Life,
        challenge: Nonce,
        entropy: &mut Entropy,
    ) -> Option<Contact> {
        if !self.is_to_answer(challenge, now) {
            return None;
        }
        // A former life's challenge comes late, or from a recording: that life receives nothing any
        // more.
        if self.answered.is_none_or(|known| known.incarnation <= life.incarnation) {
            self.answered = Some(life);
        }
        // It has to prove itself too: then both know each other after three messages.
        let is_met = self.opener.life() == Some(life);
        let mine = (!is_met).then(|| self.challenge(now, entropy));
        Some(Contact { challenge: mine, answer: Some(challenge) })
    }

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
