//! Every mistake that can be planted breaks a promise, and the checkers see it.
#![cfg(feature = "planted-bugs")]
#![allow(missing_docs)]

mod cluster;

use std::panic;

use cluster::Tune;
use cluster::detection::{LOADS, silent_host};
use cluster::micros;
use cluster::slow::{defaults, nobody_is_slow, slow_reader};
use steadfast_ring::{Bug, Timing};

fn found_within(bug: Bug, seeds: u64) {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let found = (0..seeds).find_map(|seed| {
        let tune = Tune { planted: Some(bug).into(), ..Tune::default() };
        let failure = panic::catch_unwind(move || match bug {
            Bug::ForgetObligations => drop(cluster::promise::run(tune)),
            Bug::GreedyHolder => cluster::fairness::run(seed, tune),
            Bug::CopyIsNews => {
                let timing = Timing::default();
                cluster::detection::late_copies(seed, Tune { timing, window: 256, ..tune });
            }
            Bug::UnansweredHeartbeat | Bug::HideTheSilent | Bug::ShortPulse => {
                let load = LOADS[seed as usize % LOADS.len()];
                let _ = silent_host(seed, 3, load, Tune { window: 256, ..tune });
            }
            Bug::ForgiveTheSlow => {
                let parking = seed.is_multiple_of(2);
                let tune = Tune { planted: Some(bug).into(), parking, ..defaults() };
                let _ = slow_reader(3, 1, micros(300), tune);
            }
            Bug::BlameTheLast => {
                nobody_is_slow(3, 1, 16, Tune { planted: Some(bug).into(), ..defaults() });
            }
            _ => drop(cluster::swarming::run(seed, tune)),
        })
        .err()?;
        let text = failure.downcast_ref::<String>().cloned();
        let text = text.or_else(|| failure.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Some((seed, text.unwrap_or_default()))
    });
    panic::set_hook(hook);
    let (seed, text) = found.unwrap_or_else(|| panic!("{bug:?} not found in {seeds} seeds"));
    println!("{bug:?}: seed {seed}: {}", text.lines().take(3).collect::<Vec<_>>().join(" "));
}

#[test]
fn every_planted_bug_is_found() {
    let simulated =
        [Bug::OF_SHAPES, Bug::OF_LINKS, Bug::OF_IDLENESS, Bug::OF_READS, Bug::OF_VERSIONS].concat();
    for bug in Bug::all().filter(|bug| !simulated.contains(bug)) {
        if std::env::var("BUG").is_ok_and(|name| name != format!("{bug:?}")) {
            continue;
        }
        found_within(bug, 600);
    }
}
