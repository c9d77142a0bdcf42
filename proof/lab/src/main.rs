//! Measures a cluster of real processes on this machine, and strikes it.

mod allocations;
mod bad_input;
mod beside;
mod blackbox;
mod cells;
mod cells_blackbox;
mod crowd;
mod cuts;
mod disk;
mod failover;
mod floors;
mod growth;
mod holders;
mod idle;
mod images;
mod joining;
mod keys;
mod lanes;
mod latency;
mod load;
mod many;
mod messages;
mod neighbour;
mod outsider;
mod poison;
mod qos;
mod ranks;
mod renewing;
mod ring;
mod rolling;
mod scale;
mod scenario;
mod sets;
mod slow;
mod states;
mod stubs;
mod suspicion;
mod versions;
mod ways_in;

use std::process::ExitCode;

use harness::Entry;

/// The experiments. None knows of another.
const EXPERIMENTS: &[Entry] = &[
    Entry::of::<latency::Options>(),
    Entry::of::<ways_in::Options>(),
    Entry::of::<load::Options>(),
    Entry::of::<failover::Options>(),
    Entry::of::<stubs::Options>(),
    Entry::of::<suspicion::Options>(),
    Entry::of::<slow::Options>(),
    Entry::of::<ring::Options>(),
    Entry::of::<allocations::Options>(),
    Entry::of::<disk::Options>(),
    Entry::of::<states::Options>(),
    Entry::of::<images::Options>(),
    Entry::of::<ranks::Options>(),
    Entry::of::<holders::Options>(),
    Entry::of::<messages::Options>(),
    Entry::of::<beside::Options>(),
    Entry::of::<floors::Options>(),
    Entry::of::<idle::Options>(),
    Entry::of::<crowd::Options>(),
    Entry::of::<blackbox::Options>(),
    Entry::of::<joining::Options>(),
    Entry::of::<keys::Options>(),
    Entry::of::<many::Options>(),
    Entry::of::<renewing::Options>(),
    Entry::of::<rolling::Options>(),
    Entry::of::<versions::Options>(),
    Entry::of::<poison::Options>(),
    Entry::of::<qos::Options>(),
    Entry::of::<neighbour::Options>(),
    Entry::of::<lanes::Options>(),
    Entry::of::<sets::Options>(),
    Entry::of::<bad_input::Options>(),
    Entry::of::<growth::Options>(),
    Entry::of::<scale::Options>(),
    Entry::of::<scenario::Options>(),
    Entry::of::<outsider::Options>(),
    Entry::of::<cells::Options>(),
    Entry::of::<cuts::Options>(),
    Entry::of::<cells_blackbox::Options>(),
];

fn main() -> ExitCode {
    let about = "Measures a cluster of real processes on this machine, and strikes it";
    harness::main("steadfast-lab", about, EXPERIMENTS)
}
