//! What a client's targets cost while nothing fails (`flare.txt`, section 4.5, figures 6b and 6c):
//! a call, and the memory of a client's process.
//!
//! There are three kinds of clients: one with everything (proactive, three targets), the same
//! client with one fixed target, and a bare one: a socket and frames, with neither deadline nor
//! second target. Two at a time call in turns, so that whatever the machine does meanwhile strikes
//! both.

use std::net::SocketAddr;

use steadfast::admin::Client as Admin;
use steadfast::{Client, NodeId, Policy, Refresh, Strategy};

use harness::cluster::{Cluster, Plan};
use harness::{Experiment, Outcome, Run, machine};
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod bare;
mod findings;
mod instructions;
mod memory;
mod pair;
mod steps;

use findings::Found;

/// The group that has a replica at every node, and the one that has one alone.
const GROUP: &str = "stateless";
const ALONE: &str = "stateless-alone";

const NODES: u32 = 3;

/// What is set beside what: the targets alone; all that the client is; and two of one kind, whose
/// difference is what can be told apart here.
const PAIRS: [(Kind, Kind, &str); 3] = [
    (Kind::Proactive, Kind::Static, "targets that are kept up to date"),
    (Kind::Proactive, Kind::Bare, "all that the client is"),
    (Kind::Static, Kind::Static, "nothing: the same twice"),
];

/// Bytes of request and reply.
const SIZE: usize = 64;

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

/// A kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A socket and frames.
    Bare,
    /// A client that has one target, and learns of no other.
    Static,
    /// A client by default: three targets, of which two are connected, and servers that tell of
    /// newer ones.
    Proactive,
}

/// What a process of this experiment is told.
#[derive(Serialize, Deserialize)]
enum Orders {
    /// To make some calls, and to do nothing more.
    Reside(Kind, Vec<SocketAddr>),
    /// To be a client's machine that is answered without any node, for so many calls.
    Step(Kind, u64),
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Bare, Kind::Static, Kind::Proactive];

    /// As in tables.
    fn name(self) -> &'static str {
        match self {
            Kind::Bare => "bare",
            Kind::Static => "static",
            Kind::Proactive => "proactive",
        }
    }

    /// The group that it calls: its targets are as many as this kind has.
    fn group(self) -> &'static str {
        if self == Kind::Proactive { GROUP } else { ALONE }
    }

    fn policy(self) -> Policy {
        match self {
            Kind::Proactive => Policy::default(),
            Kind::Static | Kind::Bare => {
                Policy { strategy: Strategy::Static, refresh: Refresh::None, ..Policy::default() }
            }
        }
    }

    /// A client of this kind that is not bare.
    fn connect(self, nodes: &[SocketAddr]) -> Outcome<Client> {
        let policy = self.policy();
        let builder = Client::builder().strategy(policy.strategy).refresh(policy.refresh);
        Ok(builder.connect(nodes)?)
    }
}

impl Experiment for Options {
    const NAME: &'static str = "interceptor";
    const SMOKE: &'static str = "--calls 100 --processes 1";

    fn run(&self, run: &Run) -> Outcome<()> {
        let machine = machine::description();
        let cluster = Cluster::start(Plan { alone: &[ALONE], ..Plan::of(NODES, NODES, &[GROUP]) })?;
        // All calls go to one server: the first, which has the other group alone.
        let first = NodeId(1);
        if cluster.view(GROUP).primary != Some(first) {
            Admin::connect(cluster.admin(first))?.move_primary(GROUP, first)?;
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
