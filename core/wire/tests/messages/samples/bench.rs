//! The plan and the results of a benchmark.

use wire::bench::{Measured, Pacing, Plan, Report, Until};
use wire::histogram::Times;
use wire::ring::Level;
use wire::{Duration, NodeId};

use super::RING;

pub fn plan() -> Plan {
    Plan {
        id: 0xb5,
        ring: RING,
        senders: vec![NodeId(1), NodeId(3)],
        size: 1_024,
        count: 300,
        warm: 20,
        span: Duration::from_secs(5),
        level: Level::Safe,
        pacing: Pacing::Window(17),
        until: Until::Echo,
    }
}

pub fn report() -> Report {
    let times = |min| Times { min, max: 0x500, buckets: vec![(0x81, 2), (0x82, 1)] };
    Report {
        id: 0xb5,
        received: vec![300, 299],
        order: 0x77,
        corrupt: 1,
        disordered: 2,
        span: Duration::from_millis(5),
        measured: Some(Measured {
            send: times(0x31),
            own: times(0x32),
            all: times(0x33),
            echo: times(0x34),
            late: Duration::from_nanos(0x35),
        }),
    }
}
