//! The draws of a seed: knobs, troubles, and how lives end.

use store::{Config, Owner};
use wire::{Duration, NodeId};

use crate::disk::Troubles;
use crate::draw::Draw;
use crate::options::CLUSTER_ID;
use crate::run::Plant;

/// The draws of a seed.
#[derive(Clone, Debug)]
pub struct Options {
    pub config: Config,
    pub troubles: Troubles,
    /// Lives that end before all heals.
    pub lives: usize,
    /// The longest life.
    pub life: Duration,
    /// The longest time that the disk takes for something.
    pub slowest: Duration,
    /// Pause between records.
    pub think: Duration,
    /// Bytes of the longest record.
    pub longest: usize,
    pub strands: u64,
    /// How a life ends, each as often as it is named.
    pub ends: Vec<End>,
    /// Restarts at which bits rot, per 1,000.
    pub rot: u64,
    /// Restarts at which an old manifest comes back, per 1,000.
    pub old: u64,
    /// Lives in which the disk is full, per 1,000.
    pub full: u64,
    /// Snapshots that are asked for are taken.
    pub obliging: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process dies.
    Kill,
    /// The host loses power.
    Power,
    /// The store is closed.
    Close,
    /// The host loses power after a rest.
    Rest,
}

impl Options {
    pub fn draw(draw: &mut Draw, plant: Plant) -> Options {
        let mut faults = draw.fork();
        let sometimes = |faults: &mut Draw, rates: &[u64]| match faults.one_in(2) {
            true => faults.pick(rates),
            false => 0,
        };
        let batch = draw.pick(&[2_000, 8_000, 30_000]);
        let segment = draw.pick(&[1, 2, 4, 8]) * ((batch as u64).div_ceil(4_096) + 5) * 4_096;
        let owner = Owner { cluster: CLUSTER_ID, node: NodeId(1) };
        let mut config = Config::new(owner, draw.bits());
        (config.segment, config.batch) = (segment, batch);
        config.reserve = segment.max(draw.pick(&[0, 30_000, 200_000]));
        config.keep = draw.count(1, 6);
        config.delay = Duration::from_micros(draw.pick(&[0, 0, 300]));
        config.mark_after = Duration::from_millis(draw.pick(&[1, 10, 100]));
        config.retry = Duration::from_millis(draw.pick(&[5, 50]));
        config.planted = plant.store;
        let kinds = [End::Kill, End::Power, End::Close, End::Rest];
        let many = faults.count(1, kinds.len());
        let ends = faults.distinct(many, kinds.len()).into_iter().map(|kind| kinds[kind]).collect();
        Options {
            config,
            troubles: Troubles {
                unsynced: sometimes(&mut faults, &[2, 10, 40]),
                refused: sometimes(&mut faults, &[0, 1, 5]),
                spoilt: sometimes(&mut faults, &[20, 200]),
                copies: faults.one_in(4),
            },
            lives: draw.count(2, 16),
            life: Duration::from_millis(draw.pick(&[2, 20, 100])),
            slowest: Duration::from_micros(draw.pick(&[50, 500, 500, 5_000])),
            think: Duration::from_micros(draw.pick(&[20, 100, 1_000])),
            longest: draw.pick(&[40, 400, 1_500]),
            strands: draw.pick(&[1, 2, 3, 4, 40]),
            ends,
            rot: sometimes(&mut faults, &[50, 200, 500]),
            old: sometimes(&mut faults, &[50, 200]),
            full: sometimes(&mut faults, &[100, 400]),
            obliging: draw.permille(800),
        }
    }
}
