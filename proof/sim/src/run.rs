//! One seed, from its draws to its verdict.

use crate::draw::Draw;
use crate::options::{Options, World};
use crate::{channels, cluster, forest, interruptions, jobs, links, rings, stores, systems};

pub use crate::outcome::{Outcome, Summary};
pub use crate::panics::{catch_panics, guarded};
pub use crate::plant::Plant;

/// How a seed is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// In this kind of world only; else the seed decides.
    pub world: Option<World>,
    /// Print everything that happens.
    pub aloud: bool,
    /// With this mistake planted.
    pub plant: Plant,
    /// The mistake decides what the seed draws, as ever, and is not made.
    pub spared: bool,
}

/// The world in which a seed is run if nobody says otherwise: every fourth is one of bare rings,
/// and every eighth of those has two networks; every 32nd is one of a store, every 32nd a cluster
/// with disks, every 32nd one of jobs, and every 32nd one of channels.
pub fn world_of(seed: u64) -> World {
    match (seed % 4, seed % 32) {
        (_, 31) => World::Links,
        (_, 30) => World::Stores,
        (_, 29) => World::Disks,
        (_, 28) => World::Jobs,
        (_, 27) => World::Channels,
        (3, _) => World::Rings,
        _ => World::Cluster,
    }
}

/// Runs one seed.
pub fn run_seed(seed: u64, settings: Settings) -> Outcome {
    let plant = if settings.spared { Plant::default() } else { settings.plant };
    if settings.world == Some(World::Interruptions) {
        return interruptions::run(seed, plant, settings.aloud);
    }
    let mut draw = Draw::new(seed);
    if settings.world == Some(World::Forest) || settings.plant.world() == Some(World::Forest) {
        return forest::run(&mut draw, plant, settings.aloud);
    }
    if settings.world == Some(World::Cells) || settings.plant.world() == Some(World::Cells) {
        return systems::run(&mut draw, plant, settings.aloud);
    }
    let options = Options::draw(&mut draw, settings.world.unwrap_or_else(|| world_of(seed)));
    let options = options.all_of(settings.plant.style());
    let options = if settings.plant.is_managed() { options.with_manager(seed) } else { options };
    let options = if settings.plant.is_placed() { options.with_deployment(seed) } else { options };
    let options = if settings.plant.is_of_hangs() { options.with_hangs(seed) } else { options };
    if settings.aloud {
        println!("seed {seed}: {options:#?}");
    }
    match options.world {
        World::Cluster
        | World::Disks
        | World::Everything
        | World::Interruptions
        | World::Decay
        | World::Poison
        | World::Versions
        | World::Growth
        | World::Gateways => cluster::run(options, &mut draw, plant, settings.aloud),
        World::Rings => rings::run(options, &mut draw, plant, settings.aloud),
        World::Links => links::run(&mut draw, plant, settings.aloud),
        World::Stores => stores::run(&mut draw, plant, settings.aloud),
        World::Jobs => jobs::run(&mut draw, plant, settings.aloud),
        World::Channels => channels::run(&mut draw, plant, settings.aloud),
        World::Cells => systems::run(&mut draw, plant, settings.aloud),
        World::Forest => forest::run(&mut draw, plant, settings.aloud),
    }
}
