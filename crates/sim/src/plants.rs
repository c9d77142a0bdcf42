//! The mistakes that can be planted, and how soon a checker finds each.

use crate::campaign::{Campaign, run};
use crate::check::Violation;
use crate::run::{Plant, Settings};

/// A planted mistake must be found within so many seeds.
pub const WITHIN: u64 = 2_000;

/// All mistakes of ring, engine, seal, store and client by name.
#[cfg(feature = "planted-bugs")]
pub fn all() -> Vec<(String, Plant)> {
    let ring = ring::Bug::ALL
        .iter()
        .chain(&ring::Bug::OF_WAITING)
        .chain(&ring::Bug::OF_DETECTION)
        .chain(&ring::Bug::OF_SHAPES)
        .chain(&ring::Bug::OF_STALLS)
        .chain(&ring::Bug::OF_LINKS)
        .chain(&ring::Bug::OF_IDLENESS)
        .chain(&ring::Bug::OF_READS)
        .map(|&bug| (format!("ring::{bug:?}"), Plant { ring: Some(bug), ..Plant::default() }));
    let engine = engine::Bug::ALL
        .iter()
        .map(|&bug| (format!("engine::{bug:?}"), Plant { engine: Some(bug), ..Plant::default() }));
    let seal = seal::Bug::ALL
        .iter()
        .map(|&bug| (format!("seal::{bug:?}"), Plant { seal: Some(bug), ..Plant::default() }));
    let store = store::Bug::ALL
        .iter()
        .map(|&bug| (format!("store::{bug:?}"), Plant { store: Some(bug), ..Plant::default() }));
    let client = client::Bug::ALL
        .iter()
        .map(|&bug| (format!("client::{bug:?}"), Plant { client: Some(bug), ..Plant::default() }));
    ring.chain(engine).chain(seal).chain(store).chain(client).collect()
}

/// Without the feature `planted-bugs` the machines have none.
#[cfg(not(feature = "planted-bugs"))]
pub fn all() -> Vec<(String, Plant)> {
    Vec::new()
}

/// The mistakes whose name contains these words; all for none.
pub fn named(words: Option<&str>) -> Vec<(String, Plant)> {
    let wanted = words.unwrap_or_default().to_lowercase();
    all().into_iter().filter(|(name, _)| name.to_lowercase().contains(&wanted)).collect()
}

/// How a mistake was found.
#[derive(Clone, Debug)]
pub struct Find {
    /// Seeds run until then, this one included.
    pub seeds: u64,
    /// The seed.
    pub seed: u64,
    /// What the checker said.
    pub violation: Violation,
}

/// Runs the campaign's seeds with this mistake planted until a checker objects.
pub fn find(plant: Plant, campaign: &Campaign) -> Option<Find> {
    let world = plant.world().or(campaign.settings.world);
    let settings = Settings { plant, world, ..campaign.settings };
    let campaign = Campaign { failures: 1, settings, ..*campaign };
    let (seed, outcome) = run(&campaign, &()).failed.into_iter().next()?;
    let violation = outcome.verdict.err()?;
    Some(Find { seeds: seed - campaign.first + 1, seed, violation })
}
