//! The options of the experiment, and its cells.

use std::time::Duration;

use harness::sites::Site;
use harness::system::{Place, System};

/// A cell of the third level, the one above it, and the root.
pub(super) const LEAF: &str = "a.a.porto";
pub(super) const INNER: &str = "a.porto";
pub(super) const ROOT: &str = "porto";

/// The tree of the smallest size.
pub(super) const SMALL: [(&str, usize); 4] = [(ROOT, 3), (INNER, 3), ("b.porto", 3), (LEAF, 3)];

/// A cluster of no system, to compare with.
pub(super) const ALONE: (&str, usize) = ("alone.porto", 3);

/// Joins, faults, calls and cost of a system of cells.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The parts of the experiment; all if none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) part: Vec<Part>,
    /// One way between two cells, in milliseconds.
    #[arg(long, default_value_t = 10.0)]
    pub(super) delay_ms: f64,
    /// How often each node and cell joins, and each fault strikes.
    #[arg(long, default_value_t = 30)]
    pub(super) times: usize,
    /// Calls, one at a time, to each cell.
    #[arg(long, default_value_t = 500)]
    pub(super) calls: usize,
    /// How long an idle system is watched.
    #[arg(long, default_value_t = 30)]
    pub(super) seconds: u64,
    #[command(flatten)]
    pub(super) place: Place,
}

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Part {
    /// A node, and a whole cell of the third level, from the start of its processes.
    Join,
    /// The seat of a cell is killed, or silent.
    Seat,
    /// All nodes of an inner cell are silent.
    Lost,
    /// One call at a time, by the number of links on its way.
    Carried,
    /// One call at a time to another cell's node, by callers of another cell and of that one.
    Direct,
    /// A name is found in another cell.
    Find,
    /// Nobody calls.
    Idle,
}

impl Options {
    pub(super) fn delay(&self) -> Duration {
        Duration::from_secs_f64(self.delay_ms / 1e3)
    }
}

/// Cells to call from the leaf, with the links on the way to each.
pub(super) fn targets(system: &System) -> Vec<(usize, Site)> {
    let all = [(0, LEAF), (1, INNER), (2, ROOT), (3, "b.porto"), (4, "a.b.porto")];
    all.into_iter().filter_map(|(hops, path)| Some((hops, system.site(path).ok()?))).collect()
}
