//! Repeats the experiments of the papers with real processes on this machine, beside the papers'
//! own figures.

mod flare;
mod interceptor;
mod jgroup;
mod redundancy;
mod registry;
mod star;
mod stheno;
mod strategies;
mod study;

use std::process::ExitCode;

use harness::Entry;

/// The experiments. None knows of another.
const EXPERIMENTS: &[Entry] = &[
    Entry::of::<study::Options>(),
    Entry::of::<flare::Options>(),
    Entry::of::<strategies::Options>(),
    Entry::of::<interceptor::Options>(),
    Entry::of::<jgroup::Options>(),
    Entry::of::<registry::Options>(),
    Entry::of::<redundancy::Options>(),
    Entry::of::<stheno::Options>(),
    Entry::of::<star::Options>(),
];

fn main() -> ExitCode {
    let about = "Repeats the experiments of the papers, beside the papers' own figures";
    harness::main("steadfast-papers", about, EXPERIMENTS)
}
