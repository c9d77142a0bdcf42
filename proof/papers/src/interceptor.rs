//! The cost of a client's targets while nothing fails (`flare.txt`, section 4.5, figures 6b and
//! 6c): a call, and the memory of a client's process.
//!
//! There are three kinds of clients: one with everything (proactive, three targets), the same
//! client with one fixed target, and a bare one: a socket and frames, with neither deadline nor
//! There are three kinds of clients: one with everything (proactive, three targets), the same
//! client with one fixed target, and a bare one. The bare client is a socket and frames, with
//! neither deadline nor second target. Two at a time call in turns, so that other load of the
//! machine strikes both.

use steadfast::NodeId;

use harness::cluster::{Cluster, Plan};
use harness::{Experiment, Outcome, Run, machine};
use serde_json::Value;

mod bare;
mod findings;
mod instructions;
mod kind;
mod memory;
mod pair;
mod steps;

use findings::Found;
use kind::{ALONE, GROUP, NODES, Orders, PAIRS};

/// FLARe 4.5: what a client's targets cost while nothing fails, a call and in memory.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Calls of each of two clients that are compared; the paper's were 50,000.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(100..))]
    calls: u64,
    /// Processes of each kind whose memory is looked at.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    processes: u64,
}

impl Experiment for Options {
    const NAME: &'static str = kind::NAME;
    const SMOKE: &'static str = "--calls 100 --processes 1";

    fn run(&self, run: &Run) -> Outcome<()> {
        let machine = machine::description();
        let cluster = Cluster::start(Plan { alone: &[ALONE], ..Plan::of(NODES, NODES, &[GROUP]) })?;
        // All calls go to one server: the first, which has the other group alone.
        let first = NodeId(1);
        if cluster.view(GROUP).primary != Some(first) {
            cluster.node(first)?.move_primary(GROUP, first)?;
        }
        let clients = cluster.clients();
        let warm = run.sized(pair::WARM, 5);
        let calls =
            PAIRS.map(|(kind, than, _)| pair::measure(self.calls, warm, &clients, (kind, than)));
        let calls = calls.into_iter().collect::<Outcome<_>>()?;
        let memory = memory::measure(self.processes, &clients)?;
        drop(cluster);
        run.found(&Found {
            machine,
            calls,
            memory,
            steps: steps::measure(self.calls),
            instructions: instructions::measure(run.sized([2_000, 22_000], [0, 20]))?,
        });
        Ok(())
    }

    fn live(orders: Value) -> Outcome<()> {
        match serde_json::from_value(orders)? {
            Orders::Reside(kind, nodes) => memory::reside(kind, &nodes),
            Orders::Step(kind, calls) => {
                steps::step(kind, calls);
                Ok(())
            }
        }
    }
}
