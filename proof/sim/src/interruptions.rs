//! The world of interruptions: each operation has one undisturbed run, and one for each of its
//! steps in which the leader dies right after that step.

use crate::cluster::{self, Operation, Script};
use crate::draw::Draw;
use crate::options::{Options, World};
use crate::run::{Outcome, Plant, Summary};
use crate::trace::mix;

/// Steps after which somebody dies, at most: an upgrade of three replicas has some twenty.
const MOST: u64 = 60;

/// Runs one seed of this world.
pub fn run(seed: u64, plant: Plant, aloud: bool) -> Outcome {
    let mut all = Outcome { verdict: Ok(()), hash: 0, summary: Summary::default() };
    for operation in Operation::ALL {
        let undisturbed = one(&mut all, (seed, operation, None), plant, aloud);
        if aloud {
            println!("{operation:?}: {undisturbed} steps");
        }
        for step in 1..=undisturbed.min(MOST) {
            if all.verdict.is_err() {
                return all;
            }
            one(&mut all, (seed, operation, Some(step)), plant, aloud);
        }
    }
    all
}

/// Adds a run to `all`. How many steps it had.
fn one(
    all: &mut Outcome,
    (seed, operation, after): (u64, Operation, Option<u64>),
    plant: Plant,
    aloud: bool,
) -> u64 {
    if all.verdict.is_err() {
        return 0;
    }
    let mut draw = Draw::new(seed);
    let script = Script { operation, after, seed };
    let options = Options::draw(&mut draw, World::Everything).scripted(script);
    if aloud {
        println!("seed {seed}, {script:?}: {options:#?}");
    }
    let outcome = cluster::run(options, &mut draw, plant, aloud);
    let steps = outcome.summary.steps_of.iter().sum();
    // The steps of disturbed runs carry no information.
    let steps_of = if after.is_none() { outcome.summary.steps_of } else { Default::default() };
    all.hash = mix(all.hash, outcome.hash);
    all.summary.add(&Summary { steps_of, ..outcome.summary });
    all.verdict = outcome.verdict.map_err(|mut violation| {
        let when =
            after.map_or("undisturbed".into(), |step| format!("who leads dies after step {step}"));
        violation.text = format!("{operation:?}, {when}: {}", violation.text);
        violation
    });
    steps
}
