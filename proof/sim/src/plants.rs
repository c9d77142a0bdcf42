//! The mistakes that can be planted, and how soon a checker finds each.

use crate::campaign::{Campaign, run};
use crate::check::Violation;
use crate::run::{Outcome, Plant, Settings, run_seed};

/// A planted mistake must be found within so many seeds.
pub const WITHIN: u64 = 4_000;

/// All mistakes of the machines by name.
#[cfg(feature = "planted-bugs")]
pub fn all() -> Vec<(String, Plant)> {
    let none = Plant::default();
    // The tests of these machines have scenarios for the rest.
    let ring = ring::Bug::all()
        .filter(|bug| ![ring::Bug::OF_RECOVERY, ring::Bug::OF_SUSPICION].concat().contains(bug))
        .map(|bug| (format!("ring::{bug:?}"), Plant { ring: Some(bug).into(), ..none }));
    let engine = engine::Bug::all()
        .map(|bug| (format!("engine::{bug:?}"), Plant { engine: Some(bug), ..none }));
    let seal = seal::Bug::all()
        .map(|bug| (format!("seal::{bug:?}"), Plant { seal: Some(bug).into(), ..none }));
    let store = store::Bug::all()
        .map(|bug| (format!("store::{bug:?}"), Plant { store: Some(bug).into(), ..none }));
    let client = client::Bug::all()
        .map(|bug| (format!("client::{bug:?}"), Plant { client: Some(bug).into(), ..none }));
    let manager = manager::Bug::all()
        .filter(|bug| !manager::Bug::OF_UPGRADES.contains(bug))
        .map(|bug| (format!("manager::{bug:?}"), Plant { manager: Some(bug).into(), ..none }));
    let job = job::Bug::all()
        .map(|bug| (format!("job::{bug:?}"), Plant { job: Some(bug).into(), ..none }));
    let image = image::Bug::all()
        .map(|bug| (format!("image::{bug:?}"), Plant { image: Some(bug).into(), ..none }));
    let channel = channel::Bug::all()
        .map(|bug| (format!("channel::{bug:?}"), Plant { channel: Some(bug).into(), ..none }));
    let cells = [cells::Bug::CARRIERS, cells::Bug::SESSIONS]
        .into_iter()
        .flatten()
        .copied()
        .map(|bug| (format!("cells::{bug:?}"), Plant { cells: Some(bug), ..none }));
    let whole = ring.chain(engine).chain(seal).chain(store).chain(client).chain(manager);
    whole.chain(job).chain(image).chain(channel).chain(cells).collect()
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

/// Seeds that found mistakes, a line each: `mistake seed`. `steadfast-sim --bugs --record` writes
/// it.
pub const RECORD: &str = include_str!("../planted.txt");

/// The seed that found this mistake when the record was written.
pub fn recorded(name: &str) -> Option<u64> {
    let mut lines = RECORD.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(known, _)| *known == name)?.1.parse().ok()
}

/// How a mistake was found.
#[derive(Clone, Debug)]
pub struct Find {
    /// Seeds run until then, this one included.
    pub seeds: u64,
    /// The seed.
    pub seed: u64,
    /// The checker's finding.
    pub violation: Violation,
}

/// Runs this seed, then the campaign's, as [`find`] does.
pub fn find_again(plant: Plant, campaign: &Campaign, seed: u64) -> Option<Find> {
    let alone = Campaign { first: seed, seeds: 1, jobs: 1, ..*campaign };
    find(plant, &alone).or_else(|| find(plant, campaign))
}

/// Runs the campaign's seeds with this mistake planted until a checker objects to it: to a seed of
/// which it has nothing to say without the mistake.
pub fn find(plant: Plant, campaign: &Campaign) -> Option<Find> {
    let world = plant.world().or(campaign.settings.world);
    let settings = Settings { plant, world, ..campaign.settings };
    let campaign = Campaign { failures: 1, settings, ..*campaign };
    let spared = Settings { spared: true, ..settings };
    first_own(
        &campaign,
        |campaign| run(campaign, &()).failed,
        |seed| run_seed(seed, spared).verdict.is_ok(),
    )
}

/// The first of the seeds that fail which is well by itself.
fn first_own(
    campaign: &Campaign,
    failed: impl Fn(&Campaign) -> Vec<(u64, Outcome)>,
    is_well: impl Fn(u64) -> bool,
) -> Option<Find> {
    let end = campaign.first + campaign.seeds;
    let mut first = campaign.first;
    loop {
        let rest = Campaign { first, seeds: end - first, ..*campaign };
        let (seed, outcome) = failed(&rest).into_iter().next()?;
        if is_well(seed) {
            let violation = outcome.verdict.err()?;
            return Some(Find { seeds: seed - campaign.first + 1, seed, violation });
        }
        first = seed + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Violation;
    use crate::run::Summary;

    #[test]
    fn a_seed_that_fails_without_the_mistake_proves_nothing() {
        let settings = Settings::default();
        let campaign = Campaign { first: 1, seeds: 20, jobs: 1, failures: 1, settings };
        let failed = |rest: &Campaign| {
            let seeds = rest.first..rest.first + rest.seeds;
            let failing = seeds.filter(|seed| [3, 4, 9].contains(seed)).take(rest.failures);
            let violation = Violation { property: "any", text: String::new() };
            let outcome = Outcome { verdict: Err(violation), hash: 0, summary: Summary::default() };
            failing.map(|seed| (seed, outcome.clone())).collect::<Vec<_>>()
        };
        let find = |is_well: &dyn Fn(u64) -> bool| {
            first_own(&campaign, failed, is_well).map(|find| (find.seed, find.seeds))
        };
        assert_eq!(find(&|_| true), Some((3, 3)));
        assert_eq!(find(&|seed| seed > 4), Some((9, 9)));
        assert_eq!(find(&|_| false), None);
    }
}
