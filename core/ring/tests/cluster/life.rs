//! The outputs of one life of a node, and the knobs of all.

use bytes::Bytes;
use steadfast_ring::{Configuration, Delivery, Event, Level, Planted, Timing};
use wire::{Member, RingId, Time};

use super::{micros, millis};

/// An output of one life of a node, in order.
#[derive(Clone, Debug)]
pub enum Seen {
    Configuration(Configuration),
    Delivery(Delivery),
    Held {
        ring: RingId,
        majority: u64,
        all: u64,
    },
    Confirmed {
        ring: RingId,
        round: u64,
        upto: u64,
    },
    /// It handed in its message of this number.
    Multicast(usize),
}

#[derive(Debug)]
pub struct Life {
    pub member: Member,
    pub seen: Vec<Seen>,
    pub events: Vec<(Time, Event)>,
    pub sent: Vec<Bytes>,
    pub levels: Vec<Level>,
    pub alive: bool,
}

/// Timers five times as quick as by default: a seed covers more in less virtual time.
pub fn quick() -> Timing {
    Timing {
        token_timeout: millis(20),
        token_timeout_max: millis(80),
        heartbeat: millis(5),
        heartbeat_max: millis(25),
        token_retransmit: millis(2),
        ack_wait: micros(1_000),
        want_retry: micros(1_000),
        join_interval: millis(2),
        suspect_wait: millis(4),
        consensus_timeout: millis(10),
        beacon_interval: millis(20),
        hold_off_max: millis(400),
        slow_limit: millis(100),
    }
}

#[derive(Clone)]
pub struct Tune {
    pub timing: Timing,
    pub window: usize,
    pub turn: usize,
    pub accelerated: usize,
    pub parking: bool,
    pub slow_share: u32,
    pub planted: Planted,
}

impl Default for Tune {
    fn default() -> Self {
        Tune {
            timing: quick(),
            window: 64,
            turn: 16,
            accelerated: 8,
            parking: true,
            slow_share: 50,
            planted: Planted::default(),
        }
    }
}
