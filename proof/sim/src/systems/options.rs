//! The draws of a seed.

use cells::Shape;
use wire::{Duration, NodeId};

use crate::celled::{address, tree};
use crate::cluster::CellPlan;
use crate::draw::Draw;
use crate::options::Options as Cluster;

/// Callers of one cell's groups, at most.
const CALLERS: usize = 2;

/// The draws.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// The place of each cell's parent.
    pub(super) parents: Vec<Option<usize>>,
    /// One way between cells, at least and at most.
    pub(super) latency: (Duration, Duration),
    /// How long faults happen.
    pub(super) phase: Duration,
    /// Between two faults of ways and of whole cells, on average.
    pub(super) pause: Duration,
    /// The longest of them.
    pub(super) longest: Duration,
}

impl Options {
    /// Draws the system, and the cluster of each cell.
    pub(super) fn draw(draw: &mut Draw) -> (Options, Vec<Cluster>) {
        let mut own = draw.fork();
        let count = own.pick(&[2, 2, 3, 3, 4, 6]);
        let cells = tree(count, own.count(1, 3));
        let shape = if own.one_in(4) { Shape::Mesh } else { Shape::Tree };
        let ms = |least: u64, most: u64, draw: &mut Draw| {
            Duration::from_micros(draw.between(least * 1_000, most * 1_000))
        };
        let least = ms(0, 5, &mut own);
        let options = Options {
            parents: cells.iter().map(|(_, parent)| *parent).collect(),
            latency: (least, least + ms(0, 10, &mut own)),
            phase: ms(1_500, 6_000, &mut own),
            pause: own.pick(&[200, 600, 2_000, 60_000]).into_ms(),
            longest: own.pick(&[100, 600, 4_000]).into_ms(),
        };
        let nodes: Vec<usize> = cells.iter().map(|_| own.pick(&[1, 2, 3, 3, 3, 4, 5])).collect();
        let links_of = |cell: usize| {
            let nodes = (1..=nodes[cell] as u32).map(NodeId);
            nodes.map(|node| address(cell, node)).collect()
        };
        let mut cluster = |index: usize| {
            let (path, parent) = &cells[index];
            let mut home = |_| {
                let cell = own.count(0, cells.len() - 1);
                (cell, nodes[cell])
            };
            let homes: Vec<_> = (0..CALLERS).map(&mut home).collect();
            let plan = CellPlan {
                index,
                path: path.clone(),
                parents_at: parent.map(links_of).unwrap_or_default(),
                shape,
                exports: vec!["group-0".into(), format!("of-{index}")],
                homes,
            };
            Cluster::of_cell(nodes[index], plan, options.phase, &mut own)
        };
        let clusters = (0..cells.len()).map(&mut cluster).collect();
        (options, clusters)
    }
}

trait IntoMs {
    fn into_ms(self) -> Duration;
}

impl IntoMs for u64 {
    fn into_ms(self) -> Duration {
        Duration::from_millis(self)
    }
}
