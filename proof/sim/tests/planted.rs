//! The checkers find what is planted. All of it takes `--bugs` in release; here is a share.
#![cfg(feature = "planted-bugs")]

use steadfast_sim::campaign::Campaign;
use steadfast_sim::plants::{find, named};
use steadfast_sim::run::Settings;
use steadfast_sim::run::catch_panics;

/// Mistakes that a few dozen seeds find.
const QUICK: [&str; 22] = [
    "ring::SkipRetransmission",
    "ring::SkipRecovery",
    "ring::EveryByBestLink",
    "ring::KeepDeadLink",
    "engine::ForgetSessions",
    "engine::ExecuteRetries",
    "engine::OwnRandom",
    "engine::DropBacklog",
    "client::RetryAsNew",
    "engine::ActiveAtOnce",
    "engine::OwnNestedNumber",
    "engine::NestedNotRepeated",
    "engine::MixAnswers",
    "client::HedgeAnew",
    "engine::KeepDeviant",
    "engine::AwaitVotes",
    "engine::ForgetSessionsOfCheckpoint",
    "engine::CutTooEarly",
    "manager::PlaceTwice",
    "store::AcknowledgeFull",
    "manager::ForgetDrains",
    "manager::TakeForDone",
];

#[test]
fn a_share_of_the_planted_mistakes_is_found() {
    catch_panics();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    for name in QUICK {
        // Others may be named after it.
        let chosen = named(Some(name)).into_iter().find(|(known, _)| known == name);
        let (_, plant) = chosen.unwrap_or_else(|| panic!("nothing is called {name}"));
        let settings = Settings::default();
        let campaign = Campaign { first: 0, seeds: 150, jobs, failures: 1, settings };
        let found = find(plant, &campaign);
        assert!(found.is_some(), "{name} was not found in 150 seeds");
    }
}
