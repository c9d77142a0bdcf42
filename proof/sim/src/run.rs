//! One seed, from its draws to its verdict.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use wire::Time;
use wire::ordered::Style;

use crate::check::{Verdict, Violation};
use crate::draw::Draw;
use crate::options::{Options, World};
use crate::{cluster, interruptions, links, rings, stores};

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

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The first violation, if any.
    pub verdict: Verdict,
    /// The hash of the whole stream of events.
    pub hash: u64,
    /// What happened, in numbers.
    pub summary: Summary,
}

/// A run in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// How long it took, in virtual time.
    pub virtual_time: Time,
    /// Happenings.
    pub steps: u64,
    /// Datagrams between nodes.
    pub datagrams: u64,
    /// Calls that were answered by the service.
    pub answered: u64,
    /// Calls that ended otherwise.
    pub failed: u64,
    /// Requests executed, over all replicas.
    pub executed: u64,
    /// Lives that ended.
    pub deaths: u64,
    /// States that were transferred.
    pub transfers: u64,
    /// Primaries that were moved, as somebody was told.
    pub moves: u64,
    /// Calls between groups that ended at a replica.
    pub nested: u64,
    /// Ends of such calls that were ordered once more than needed, as each replica of the callee saw it.
    pub nested_copies: u64,
    /// Changes of style, as somebody was told.
    pub restyles: u64,
    /// Services that calls killed.
    pub kills: u64,
    /// Answers that say that a call is poisonous.
    pub refusals: u64,
    /// Programs that died, of calls or otherwise.
    pub falls: u64,
    /// Replicas that went on with another program.
    pub revived: u64,
    /// Replicas that were taken out because their services hung.
    pub demotions: u64,
    /// Replicas of deployed programs that changed over to another program.
    pub upgrades: u64,
    /// Upgrades that were taken back because the new program did not serve.
    pub undone: u64,
    /// Steps of each operation of a script, undisturbed.
    pub steps_of: [u64; 4],
    /// Runs in which whoever led died after such a step.
    pub interrupted: u64,
    /// Steps after which the promise does not cover that.
    pub uncovered: u64,
    /// Disks that were replaced because they had rotted.
    pub rotten: u64,
    /// Nodes that left because their disks were full.
    pub full: u64,
    /// Orders of backups that nodes obeyed, over all nodes.
    pub ranks: u64,
    /// Calls that hosts with too much to do refused.
    pub refused: u64,
    /// Histories of clients for which the checker would have taken too long.
    pub undecided: u64,
    /// Calls for which a second replica was asked, in worlds that came to their end.
    pub hedges: u64,
    /// Replies that brought what another had brought.
    pub copies: u64,
    /// Calls that clients sent again although they may have been executed.
    pub retries: u64,
}

impl Summary {
    /// Adds another run's numbers.
    pub fn add(&mut self, other: &Summary) {
        self.virtual_time.0 += other.virtual_time.0;
        self.steps += other.steps;
        self.datagrams += other.datagrams;
        self.answered += other.answered;
        self.failed += other.failed;
        self.executed += other.executed;
        self.deaths += other.deaths;
        self.transfers += other.transfers;
        self.moves += other.moves;
        self.nested += other.nested;
        self.nested_copies += other.nested_copies;
        self.restyles += other.restyles;
        self.demotions += other.demotions;
        self.kills += other.kills;
        self.refusals += other.refusals;
        self.falls += other.falls;
        self.revived += other.revived;
        self.upgrades += other.upgrades;
        self.undone += other.undone;
        self.steps_of.iter_mut().zip(other.steps_of).for_each(|(all, steps)| *all += steps);
        self.interrupted += other.interrupted;
        self.rotten += other.rotten;
        self.full += other.full;
        self.uncovered += other.uncovered;
        self.ranks += other.ranks;
        self.refused += other.refused;
        self.undecided += other.undecided;
        self.hedges += other.hedges;
        self.copies += other.copies;
        self.retries += other.retries;
    }
}

/// A mistake planted in the machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plant {
    /// In the ring.
    #[cfg(feature = "planted-bugs")]
    pub ring: Option<ring::Bug>,
    /// In the engine.
    #[cfg(feature = "planted-bugs")]
    pub engine: Option<engine::Bug>,
    /// In what seals.
    #[cfg(feature = "planted-bugs")]
    pub seal: Option<seal::Bug>,
    /// In the store.
    #[cfg(feature = "planted-bugs")]
    pub store: Option<store::Bug>,
    /// In clients.
    #[cfg(feature = "planted-bugs")]
    pub client: Option<client::Bug>,
    /// In the manager.
    #[cfg(feature = "planted-bugs")]
    pub manager: Option<manager::Bug>,
}

impl Plant {
    /// The world in which it shows, where there is but one.
    #[cfg(feature = "planted-bugs")]
    pub fn world(self) -> Option<World> {
        if self.seal.is_some() {
            return Some(World::Rings);
        }
        if self.store.is_some_and(|bug| store::Bug::OF_CLUSTERS.contains(&bug)) {
            return Some(World::Decay);
        }
        if self.store.is_some() {
            return Some(World::Stores);
        }
        if self.manager.is_some_and(|bug| manager::Bug::OF_LEADERS.contains(&bug)) {
            return Some(World::Interruptions);
        }
        let of_restyles = |bug| engine::Bug::OF_RESTYLES.contains(&bug);
        if self.is_managed() || self.is_placed() {
            return Some(World::Cluster);
        }
        if self.client.is_some() || self.style().is_some() || self.engine.is_some_and(of_restyles) {
            return Some(World::Cluster);
        }
        if self.engine.is_some_and(|bug| engine::Bug::OF_DISKS.contains(&bug)) {
            return Some(World::Disks);
        }
        if self.engine.is_some_and(|bug| engine::Bug::OF_POISON.contains(&bug)) {
            return Some(World::Poison);
        }
        if self.engine.is_some_and(|bug| engine::Bug::OF_VOTING.contains(&bug))
            || self.is_of_hangs()
        {
            return Some(World::Cluster);
        }
        let bug = self.ring?;
        if ring::Bug::OF_LINKS.contains(&bug) {
            return Some(World::Links);
        }
        if ring::Bug::OF_READS.contains(&bug) {
            return Some(World::Cluster);
        }
        // Bounds are tried in trials of bare rings.
        let bounds = [
            &ring::Bug::OF_WAITING[..],
            &ring::Bug::OF_DETECTION,
            &ring::Bug::OF_SHAPES,
            &ring::Bug::OF_STALLS,
        ];
        bounds.concat().contains(&bug).then_some(World::Rings)
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn world(self) -> Option<World> {
        None
    }

    /// It shows only where there is a manager.
    #[cfg(feature = "planted-bugs")]
    pub fn is_managed(self) -> bool {
        let of_ranks =
            |bug| engine::Bug::OF_RANKS.contains(&bug) || engine::Bug::OF_SHEDDING.contains(&bug);
        self.manager.is_some_and(|bug| manager::Bug::ALL.contains(&bug))
            || self.engine.is_some_and(of_ranks)
    }

    /// It shows only where services hang.
    #[cfg(feature = "planted-bugs")]
    pub fn is_of_hangs(self) -> bool {
        self.engine.is_some_and(|bug| engine::Bug::OF_HUNG.contains(&bug))
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn is_of_hangs(self) -> bool {
        false
    }

    /// It shows only where something is deployed.
    #[cfg(feature = "planted-bugs")]
    pub fn is_placed(self) -> bool {
        self.manager.is_some_and(|bug| manager::Bug::OF_PLACEMENT.contains(&bug))
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn is_placed(self) -> bool {
        false
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn is_managed(self) -> bool {
        false
    }

    /// The style of the groups in which it shows, where there is but one.
    #[cfg(feature = "planted-bugs")]
    pub fn style(self) -> Option<Style> {
        let bug = self.engine?;
        if engine::Bug::OF_WARM_PASSIVE.contains(&bug) {
            return Some(Style::WarmPassive);
        }
        engine::Bug::OF_COLD_PASSIVE.contains(&bug).then_some(Style::ColdPassive)
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn style(self) -> Option<Style> {
        None
    }

    /// Plants the mistake in a ring.
    #[cfg(feature = "planted-bugs")]
    pub fn into_ring(self, config: &mut ring::Config) {
        config.bug = self.ring;
    }

    /// Plants the mistake in a stack.
    #[cfg(feature = "planted-bugs")]
    pub fn into_engine(self, config: &mut engine::Config) {
        config.bug = self.engine;
    }

    /// Plants the mistake in a manager.
    #[cfg(feature = "planted-bugs")]
    pub fn into_manager(self, config: &mut manager::Config) {
        config.bug = self.manager;
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn into_manager(self, _: &mut manager::Config) {}

    /// A placer, with the mistake.
    #[cfg(feature = "planted-bugs")]
    pub fn placer(self) -> manager::placement::Placer {
        manager::placement::Placer::new(self.manager)
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn placer(self) -> manager::placement::Placer {
        manager::placement::Placer::new()
    }

    /// Plants the mistake in a client.
    #[cfg(feature = "planted-bugs")]
    pub fn into_session(self, session: &mut client::Session) {
        if let Some(bug) = self.client {
            session.plant(bug);
        }
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn into_session(self, _: &mut client::Session) {}

    /// Plants the mistake in what seals.
    #[cfg(feature = "planted-bugs")]
    pub fn into_seal(self, seal: &mut seal::Seal) {
        if let Some(bug) = self.seal {
            seal.plant(bug);
        }
    }

    /// Plants the mistake in a store.
    #[cfg(feature = "planted-bugs")]
    pub fn into_store(self, config: &mut store::Config) {
        config.bug = self.store;
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn into_store(self, _: &mut store::Config) {}

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn into_seal(self, _: &mut seal::Seal) {}

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn into_ring(self, _: &mut ring::Config) {}

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn into_engine(self, _: &mut engine::Config) {}
}

/// The world in which a seed is run if nobody says otherwise: every fourth is one of bare rings, and
/// every eighth of those has two networks; every 32nd is one of a store, and every 32nd a cluster with disks.
pub fn world_of(seed: u64) -> World {
    match (seed % 4, seed % 32) {
        (_, 31) => World::Links,
        (_, 30) => World::Stores,
        (_, 29) => World::Disks,
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
        | World::Poison => cluster::run(options, &mut draw, plant, settings.aloud),
        World::Rings => rings::run(options, &mut draw, plant, settings.aloud),
        World::Links => links::run(&mut draw, plant, settings.aloud),
        World::Stores => stores::run(&mut draw, plant, settings.aloud),
    }
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    /// A seed runs on this thread, whose panics are told as violations.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Keeps panics of machines under test quiet: they become violations of the seed that they
/// strike. All others are told as ever. To be called before the first seed.
pub fn catch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                return others(info);
            }
            PANIC.with(|panic| *panic.borrow_mut() = Some(info.to_string().replace('\n', " ")));
        }));
    });
}

/// Runs it; a panic inside is a violation.
pub fn guarded(run: impl FnOnce() -> Verdict) -> Verdict {
    GUARDED.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(false);
    outcome.unwrap_or_else(|payload| {
        let kept = PANIC.with(|panic| panic.borrow_mut().take());
        let said = payload.downcast_ref::<&str>().map(ToString::to_string);
        let text = kept.or(said).unwrap_or_else(|| "a machine panicked".into());
        Err(Violation { property: "invariants", text })
    })
}
