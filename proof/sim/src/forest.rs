//! The world of cells: systems of many rings, whose links break and whose nodes die.
//!
//! Books and routers are the real machines. The ring under a cell is a model: one state, which takes
//! commands in one order, and a gap while a view changes. Whatever happens, a call to another cell is
//! executed once at most, answers are as old as they say, and what is left of the system is one tree
//! again soon.

use wire::Time;

use crate::draw::Draw;
use crate::outcome::{Outcome, Summary};
use crate::plant::Plant;
use crate::trace::Trace;

mod calls;
mod carrying;
mod cell;
mod faults;
mod happening;
mod options;
mod settled;
mod world;

pub use options::Options;
use world::Forest;

/// Runs one seed of this world.
pub fn run(draw: &mut Draw, plant: Plant, aloud: bool) -> Outcome {
    let options = Options::draw(draw);
    run_with(options, draw, plant, aloud)
}

/// Runs a system of so many cells.
pub fn run_with(options: Options, draw: &mut Draw, plant: Plant, aloud: bool) -> Outcome {
    let trace = Trace::new(aloud);
    trace.say(Time::ZERO, || format!("{options:#?}"));
    let mut forest = Forest::new(options, draw.fork(), trace, plant);
    let verdict = crate::run::guarded(|| forest.run());
    let summary = Summary {
        steps: forest.trace.steps(),
        answered: forest.calls.answered(),
        deaths: forest.faults,
        ..Summary::default()
    };
    Outcome { verdict, hash: forest.trace.hash(), summary }
}
