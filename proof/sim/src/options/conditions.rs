//! The draws of a cluster's surroundings: its load, clocks, network and faults.

use wire::Duration;

use super::world::World;
use crate::clock::Clock;
use crate::draw::Draw;
use crate::faults::{FaultKind, FaultPlan};
use crate::network::Weather;

/// Seconds of the Unix epoch at which simulations start.
const EPOCH: u64 = 1_800_000_000;

/// How often replicas are compared, and how often the state of one becomes another.
#[derive(Clone, Copy, Debug)]
pub struct ComparePlan {
    /// Between two comparisons of a group.
    pub every: Duration,
    /// Between two drifts, on average.
    pub drifts: Option<Duration>,
}

/// The work of clients.
#[derive(Clone, Debug)]
pub struct Load {
    /// How many clients.
    pub clients: usize,
    /// Calls that one client has under way at a time.
    pub parallel: usize,
    /// Pause between calls, at most.
    pub think: Duration,
    /// Shortest deadline.
    pub timeout: Duration,
    /// Longest, while faults happen.
    pub longest: Duration,
    /// Largest body and reply.
    pub body: usize,
    /// Calls of one client while faults happen.
    pub calls: usize,
}

/// Lets a drawn number flow into its unit.
pub(super) trait Pipe: Sized {
    fn pipe<T>(self, into: impl FnOnce(Self) -> T) -> T {
        into(self)
    }
}

impl Pipe for u64 {}

pub(super) fn load(draw: &mut Draw) -> Load {
    Load {
        clients: draw.count(1, 6),
        parallel: draw.pick(&[1, 1, 2, 4, 8]),
        think: draw.pick(&[1, 5, 20, 100]).pipe(Duration::from_millis),
        timeout: draw.pick(&[30, 100, 400, 2_000]).pipe(Duration::from_millis),
        longest: Duration::from_secs(10),
        body: draw.pick(&[40, 40, 300, 3_000, 20_000]),
        calls: draw.pick(&[20, 40, 80]),
    }
}

pub(super) fn clock(draw: &mut Draw) -> Clock {
    let second = 1_000_000_000;
    Clock {
        start: draw.between(0, 1_000_000 * second),
        wall: EPOCH * second + draw.between(0, 20 * second),
        drift_ppm: draw.between(0, 1_000) as i64 - 500,
    }
}

pub(super) fn weather(draw: &mut Draw) -> Weather {
    let rates = |draw: &mut Draw, rates: &[u64]| if draw.one_in(2) { draw.pick(rates) } else { 0 };
    Weather {
        loss: rates(draw, &[1, 5, 20, 50, 120]),
        duplicate: rates(draw, &[1, 10, 100]),
        reorder: rates(draw, &[5, 50, 200]),
        spike: rates(draw, &[1, 5, 20]),
        ghost: rates(draw, &[1, 10]),
        // The longest makes a recovery last long enough to be interrupted.
        latency: draw.pick(&[20, 50, 50, 200, 200, 2_500]).pipe(Duration::from_micros),
        jitter: draw.pick(&[5, 30, 200]).pipe(Duration::from_micros),
        longest: draw.pick(&[5, 50, 300]).pipe(Duration::from_millis),
        pace: Duration::ZERO,
    }
}

pub(super) fn fault_plan(draw: &mut Draw, world: World) -> FaultPlan {
    let mut kinds: Vec<(FaultKind, u64)> = Vec::new();
    for kind in FaultKind::ALL {
        let exists = world.is_cluster() || kind.concerns_rings();
        if draw.one_in(2) && exists {
            kinds.push((kind, draw.pick(&[1, 1, 3, 10])));
        }
    }
    FaultPlan {
        kinds: if draw.one_in(10) { Vec::new() } else { kinds },
        every: draw.pick(&[10, 30, 100, 300, 600]).pipe(Duration::from_millis),
        phase: draw.pick(&[600, 1_200, 2_000]).pipe(Duration::from_millis),
        longest: draw.pick(&[20, 60, 150, 700]).pipe(Duration::from_millis),
    }
}
