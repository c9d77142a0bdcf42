//! The world of systems of cells as they are: each cell is a whole cluster, with its ring, its book
//! and its groups, and each node has a router. Links between cells break, whole cells fall silent,
//! and callers of one cell call groups of another.

use wire::Time;

use crate::draw::Draw;
use crate::outcome::{Outcome, Summary};
use crate::plant::Plant;
use crate::trace::{Trace, mix};

mod faults;
mod links;
mod options;
mod settled;
mod world;

use options::Options;
use world::System;

/// Runs one seed of this world.
pub fn run(draw: &mut Draw, plant: Plant, aloud: bool) -> Outcome {
    let (options, cells) = Options::draw(draw);
    let trace = Trace::new(aloud);
    trace.say(Time::ZERO, || format!("{options:#?}"));
    let mut system = System::new(options, cells, draw, trace, plant);
    let verdict = crate::run::guarded(|| system.run());
    let mut hash = system.trace.hash();
    let mut summary = Summary { steps: system.trace.steps(), ..Summary::default() };
    for cell in system.cells {
        let outcome = cell.outcome(Ok(()));
        hash = mix(hash, outcome.hash);
        let virtual_time = summary.virtual_time.max(outcome.summary.virtual_time);
        summary.add(&outcome.summary);
        summary.virtual_time = virtual_time;
    }
    Outcome { verdict, hash, summary }
}
