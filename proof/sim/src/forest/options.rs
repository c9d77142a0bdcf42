//! The draws of a seed.

use cells::Shape;
use wire::Duration;

use crate::draw::Draw;

/// So much happens at one moment of one system, and no more.
pub(super) const AT_ONCE: u64 = 1_000_000;

/// A stopped process is looked at so often.
pub(super) const STOPPED: Duration = Duration::from_millis(5);

/// After all has begun, or healed, all is well within this time.
pub(super) const SETTLE: Duration = Duration::from_millis(4_500);

/// Every fault is over after this time.
pub(super) const HEALED: Duration = Duration::from_secs(5);

/// Calls under way end within this time.
pub(super) const ENDED: Duration = Duration::from_secs(4);

/// Carriers that are modelled of each cell.
pub(super) const CARRIERS: u32 = 3;

/// The draws.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cells.
    pub cells: usize,
    /// Cells below one.
    pub fan_out: usize,
    /// The overlay.
    pub shape: Shape,
    /// Nodes of a cell, its carriers included.
    pub nodes: u16,
    /// One way between cells, at least and at most.
    pub latency: (Duration, Duration),
    /// How long faults happen.
    pub phase: Duration,
    /// Between two faults, on average.
    pub pause: Duration,
    /// Between two calls or questions of the whole system, on average.
    pub load: Duration,
    pub(super) faults_over: bool,
    pub(super) load_over: bool,
}

impl Options {
    pub(super) fn draw(draw: &mut Draw) -> Options {
        let cells = draw.between(2, 12) as usize;
        let ms = |least: u64, most: u64, draw: &mut Draw| {
            Duration::from_micros(draw.between(least * 1_000, most * 1_000))
        };
        let least = ms(0, 5, draw);
        Options {
            cells,
            fan_out: draw.between(1, 4) as usize,
            shape: if draw.one_in(4) { Shape::Mesh } else { Shape::Tree },
            nodes: 3,
            latency: (least, least + ms(0, 10, draw)),
            phase: Duration::from_secs(draw.between(5, 20)),
            pause: ms(100, 3_000, draw),
            load: ms(2, 40, draw),
            faults_over: false,
            load_over: false,
        }
    }

    /// A large system: so many peers in cells of 16, so many faults in ten virtual minutes.
    pub fn large(peers: usize, faults: u64) -> Options {
        let minutes = Duration::from_secs(600);
        Options {
            cells: peers.div_ceil(16),
            fan_out: 20,
            shape: Shape::Tree,
            nodes: 16,
            latency: (Duration::from_millis(1), Duration::from_millis(10)),
            phase: minutes,
            pause: minutes / u32::try_from(faults.max(1)).unwrap_or(u32::MAX),
            load: Duration::from_millis(20),
            faults_over: false,
            load_over: false,
        }
    }
}
