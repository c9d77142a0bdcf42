//! Measures a cluster of real processes on this machine.
//!
//! The processes of an experiment are this program once more, started with a hidden command, so
//! that one binary is all it takes. They end with the one that started them.

mod allocations;
mod allocator;
mod bad_input;
mod blackbox;
mod caller;
mod child;
mod cluster;
mod crowd;
mod disk;
mod echo;
mod failover;
mod fan;
mod figures;
mod flare;
mod floors;
mod growth;
mod hosts;
mod idle;
mod interceptor;
mod jgroup;
mod latency;
mod lateness;
mod load;
mod machine;
mod outsider;
mod plot;
mod poison;
mod protect;
mod quota;
mod redundancy;
mod registry;
mod ring;
mod scale;
mod scenario;
mod slow;
mod study;
mod style;
mod suspicion;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// How experiments fail: told to a person, and the run ends.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// Measures a cluster of real processes on this machine.
#[derive(Debug, Parser)]
#[command(name = "steadfast-lab")]
struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    /// Latency of a semi-active call at each level, in turns with UDP and TCP echoes.
    Latency(latency::Options),
    /// How many calls a second a group answers when many clients call at once.
    Load(load::Options),
    /// The longest gap that a client at 1 kHz sees when the primary's node is killed or stopped.
    Failover(failover::Options),
    /// Whether nodes are suspected wrongly while other programs take all processors.
    Suspicion(suspicion::Options),
    /// A node with too little processor time: what the others can send, its exclusion with the reason, its return.
    Slow(slow::Options),
    /// The ring itself: latency and throughput by size, senders, level and pace, parked and classic.
    Ring(ring::Options),
    /// Memory that a call and a message ask for, in every process on their way.
    Allocations(allocations::Options),
    /// A record on the disk: the store's append beside a bare write and sync, lone and many at a time.
    Disk(disk::Options),
    /// The floors of this machine: round trips, wake-ups, a system call, AES-GCM.
    Machine(floors::Options),
    /// CPU, wake-ups, datagrams and memory of a cluster that nobody calls.
    Idle(idle::Options),
    /// What thousands of sessions and groups cost a node: memory, and CPU while nobody calls.
    Crowd(crowd::Options),
    /// Faults strike real processes while clients record what they see: is it linearizable?
    Blackbox(blackbox::Options),
    /// Requests that kill the programs that execute them, and the end of all programs or nodes: is it linearizable?
    Poison(poison::Options),
    /// Truncated and mutated bytes at every port of a node while a client calls.
    Badinput(bad_input::Options),
    /// The time of a view change after one crash, by the number of nodes.
    Growth(growth::Options),
    /// What one host's loss costs the manager, by the number of nodes and groups: its time, and bytes told.
    Scale(scale::Options),
    /// Cut cables, deaf and mute hosts, random loss, two networks: checked on real sockets in network namespaces.
    Hosts(scenario::Options),
    /// The latency study of the FT-CORBA paper: groups that call groups, measured beside its equations (1) to (7).
    Study(study::Options),
    /// FLARe's experiments: processors fail, and clients go where there is room, or where a list written beforehand sends them.
    Flare(flare::Options),
    /// FLARe 4.5: what a client's targets cost while nothing fails, a call and in memory.
    Interceptor(interceptor::Options),
    /// Jgroup's experiments: 7 to 70 clients of four servers that crash and return, by how clients learn of it.
    Jgroup(jgroup::Options),
    /// How long a dead member stays in the registry, by notification, lease and both, and their traffic.
    Registry(registry::Options),
    /// How long a deployed group has too few replicas, when nodes and programs are killed at random and nobody helps.
    Redundancy(redundancy::Options),
    /// A million datagrams of somebody without the cluster key, who owns the network.
    Outsider(outsider::Options),
    /// A process of an experiment.
    #[command(hide = true)]
    Child(child::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().experiment {
        Experiment::Latency(options) => latency::run(&options),
        Experiment::Load(options) => load::run(&options),
        Experiment::Failover(options) => failover::run(&options),
        Experiment::Slow(options) => slow::run(&options),
        Experiment::Ring(options) => ring::run(&options),
        Experiment::Suspicion(options) => suspicion::run(&options),
        Experiment::Allocations(options) => allocations::run(&options),
        Experiment::Disk(options) => disk::run(&options),
        Experiment::Machine(options) => floors::run(&options),
        Experiment::Idle(options) => idle::run(&options),
        Experiment::Crowd(options) => crowd::run(&options),
        Experiment::Blackbox(options) => blackbox::run(&options),
        Experiment::Poison(options) => poison::run(&options),
        Experiment::Badinput(options) => bad_input::run(&options),
        Experiment::Growth(options) => growth::run(&options),
        Experiment::Scale(options) => scale::run(&options),
        Experiment::Hosts(options) => scenario::run(&options),
        Experiment::Study(options) => study::run(&options),
        Experiment::Flare(options) => flare::run(&options),
        Experiment::Interceptor(options) => interceptor::run(&options),
        Experiment::Jgroup(options) => jgroup::run(&options),
        Experiment::Registry(options) => registry::run(&options),
        Experiment::Redundancy(options) => redundancy::run(&options),
        Experiment::Outsider(options) => outsider::run(&options),
        Experiment::Child(options) => child::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("steadfast-lab: {error}");
            ExitCode::FAILURE
        }
    }
}
