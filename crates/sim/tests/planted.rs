//! The checkers find what is planted. All of it takes `--bugs` in release; here is a share.
#![cfg(feature = "planted-bugs")]

use steadfast_sim::campaign::Campaign;
use steadfast_sim::plants::{find, named};
use steadfast_sim::run::Settings;
use steadfast_sim::run::catch_panics;

/// Mistakes that a few dozen seeds find.
const QUICK: [&str; 18] = [
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
];

#[test]
fn a_share_of_the_planted_mistakes_is_found() {
    catch_panics();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    for name in QUICK {
        let chosen = named(Some(name));
        assert_eq!(chosen.len(), 1, "{name}");
        let settings = Settings::default();
        let campaign = Campaign { first: 0, seeds: 150, jobs, failures: 1, settings };
        let found = find(chosen[0].1, &campaign);
        assert!(found.is_some(), "{name} was not found in 150 seeds");
    }
}
