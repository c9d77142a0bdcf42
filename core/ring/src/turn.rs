//! The state that an installed ring keeps from one event to the next.

use alloc::boxed::Box;

use wire::histogram::Histogram;
use wire::ring::Pulse;
use wire::{Duration, Time};

use crate::Config;
use crate::acks::{Asking, Lookout};
use crate::bug::Bug;
use crate::stalls::Stalls;

/// The state of the present turn, this node's or another's.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Datagrams sent in this turn, those that were sent again among them.
    pub sent: usize,
    /// Those of them that wait to leave: the token may overtake the last ones.
    pub burst: usize,
    /// How much was sent, and for how much of it acknowledgements were asked.
    pub asking: Asking,
    /// The same, where the token always circulates.
    pub lookout: Lookout,
    /// The signs of life of a resting token.
    pub heart: Heart,
    /// The progress of this node's requests for the token.
    pub want: Want,
    /// When to send, or to ask for, the stable point: safe messages wait for it.
    pub safe_at: Option<Time>,
    /// The token came, and nothing that was sent since shows it.
    pub unseen: bool,
    /// The members that keep this node from sending.
    pub stalls: Stalls,
    /// The rounds by which reads learn that a majority is still in the ring.
    pub confirming: Confirming,
    /// How long the token was away each time, where it always circulates.
    pub rotations: Option<Histogram>,
}

impl Turn {
    pub fn new(members: usize, now: Time) -> Self {
        Turn {
            sent: 0,
            burst: 0,
            asking: Asking::default(),
            lookout: Lookout::default(),
            heart: Heart::default(),
            want: Want::default(),
            safe_at: None,
            unseen: false,
            stalls: Stalls::new(members, now),
            confirming: Confirming::default(),
            rotations: None,
        }
    }
}

/// Rounds of questions in one ring.
#[derive(Debug, Default)]
pub(crate) struct Confirming {
    /// The last that was begun, from 1.
    pub round: u64,
    /// It is under way.
    pub asking: bool,
    /// Somebody waits for the next.
    pub wanted: bool,
    /// The members that have answered, one bit each, and the furthest that any of them has got.
    pub by: u64,
    pub upto: u64,
    /// The first number that this node gave out since the question began. A member that has it was
    /// in the ring after the question.
    pub first: Option<u64>,
    /// When to ask the silent members again, and how often that was done.
    pub at: Option<Time>,
    pub times: u32,
}

impl Confirming {
    /// This node has just given out this number.
    pub fn sent(&mut self, sequence: u64) {
        if self.asking {
            self.first.get_or_insert(sequence);
        }
    }
}

/// A member's knowledge of the signs of life of a resting token, its own or another's.
#[derive(Debug, Default)]
pub(crate) struct Heart {
    /// When the next sign is due, or the last one should be back.
    pub at: Option<Time>,
    /// When the pulse left home that is not back yet.
    pub under_way: Option<Time>,
    /// How long the token rests between two signs. Members that wait for them know it.
    pub interval: Duration,
    /// Hop and number of the newest pulse seen or sent.
    pub newest: (u64, u64),
    /// The newest pulse of another member, and when it came.
    pub sign: Option<Box<(Pulse, Time)>>,
}

impl Heart {
    /// The token comes to rest, or rests on: from now on it shows itself.
    pub fn rest(&mut self, now: Time, config: &Config) {
        if self.at.is_none() {
            self.interval = config.timing.heartbeat;
            self.at = Some(now + self.interval);
        }
    }

    /// The token does not rest any more, or something was sent: the next rest begins from the
    /// start.
    pub fn stir(&mut self) {
        self.at = None;
        self.under_way = None;
    }

    /// Takes the newest pulse of another member. Returns when the one before came, if that had gone
    /// round before this one was sent: home begins the next only then, while nothing is sent and
    /// the token stays. Pulses that ask who has the last data promise a shorter rest, and prove
    /// nothing of the one before.
    pub fn follow(&mut self, now: Time, pulse: &Pulse, config: &Config) -> Option<Time> {
        let sign = (*pulse, now);
        let Some(last) = &mut self.sign else {
            self.sign = Some(Box::new(sign));
            return None;
        };
        let (before, at) = core::mem::replace(&mut **last, sign);
        let next = Duration::from_micros(pulse.next);
        let one_rest = (before.home, before.hop, before.sequence, before.next)
            == (pulse.home, pulse.hop, pulse.sequence, pulse.next);
        let follows = before.number.checked_add(1) == Some(pulse.number);
        (one_rest && follows && next > config.timing.heartbeat).then_some(at)
    }

    /// The interval that follows a pulse that came back.
    pub fn longer(&self, config: &Config) -> Duration {
        if config.planted.is(Bug::NeverStretch) {
            return self.interval;
        }
        (self.interval * 2).min(config.timing.rarest_heartbeat())
    }
}

/// The progress of this node's requests for the token.
#[derive(Debug, Default)]
pub(crate) struct Want {
    /// When to ask again.
    pub at: Option<Time>,
    /// How often it has asked in vain.
    pub times: u32,
    /// The token itself says it: this node set its bit as it passed the token on.
    pub told: bool,
}

impl Want {
    /// The token is here.
    pub fn fulfilled(&mut self) {
        *self = Want::default();
    }

    /// The token was passed on, and says that this node wants it again.
    pub fn told(&mut self) {
        *self = Want { told: true, ..Want::default() };
    }

    /// How long to wait for the token before asking again: each time twice as long, at most a
    /// heartbeat.
    pub fn timeout(&self, config: &Config) -> Duration {
        let timing = &config.timing;
        let doubled = timing.want_retry * (1 << self.times.min(16));
        doubled.min(timing.heartbeat.max(timing.want_retry))
    }
}
