//! What a client's targets cost while nothing fails (`flare.txt`, section 4.5, figures 6b and 6c): a call, and the memory of a client's process.
//!
//! There are three kinds of clients: one with everything (proactive, three targets), the same client with one fixed target, and a bare one: a
//! socket and frames, with neither deadline nor second target. Two at a time call in turns, so that whatever the machine does meanwhile
//! strikes both.

use std::net::SocketAddr;

use steadfast::admin::Client as Admin;
use steadfast::{Client, NodeId, Policy, Refresh, Strategy};

use crate::cluster::{Cluster, Plan};
use crate::{Outcome, machine};

mod bare;
mod findings;
mod instructions;
mod memory;
mod pair;
mod steps;

use findings::Findings;
pub use memory::{Orders as Resident, serve as reside};
pub use steps::{Orders as Steps, serve as step};

/// The group that has a replica at every node, and the one that has one alone.
const GROUP: &str = "stateless";
const ALONE: &str = "stateless-alone";

const NODES: u32 = 3;

/// What is set beside what: the targets alone; all that the client is; and two of one kind, whose difference is what can be told apart here.
const PAIRS: [(Kind, Kind, &str); 3] = [
    (Kind::Proactive, Kind::Static, "targets that are kept up to date"),
    (Kind::Proactive, Kind::Bare, "all that the client is"),
    (Kind::Static, Kind::Static, "nothing: the same twice"),
];

/// Bytes of request and reply.
const SIZE: usize = 64;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Calls of each of two clients that are compared; the paper's were 50,000.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(100..))]
    calls: u64,
    /// Processes of each kind whose memory is looked at.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    processes: u64,
    /// One JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// A kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// A socket and frames.
    Bare,
    /// A client that has one target, and learns of no other.
    Static,
    /// A client by default: three targets, of which two are connected, and servers that tell of newer ones.
    Proactive,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Bare, Kind::Static, Kind::Proactive];

    /// As in options and tables.
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

pub fn run(options: &Options) -> Outcome<()> {
    let machine = machine::description();
    let cluster = Cluster::start(Plan {
        nodes: NODES,
        replicas: NODES,
        groups: &[GROUP],
        alone: &[ALONE],
        ..Plan::default()
    })?;
    // All calls go to one server: the first, which has the other group alone.
    let first = NodeId(1);
    if cluster.view(GROUP).primary != Some(first) {
        Admin::connect(cluster.admin(first))?.move_primary(GROUP, first)?;
    }
    let clients = cluster.clients();
    let calls = PAIRS.map(|(kind, than, _)| pair::measure(options.calls, &clients, (kind, than)));
    let calls = calls.into_iter().collect::<Outcome<_>>()?;
    let memory = memory::measure(options.processes, &clients)?;
    drop(cluster);
    let found = Findings {
        machine,
        calls,
        memory,
        steps: steps::measure(options.calls),
        instructions: instructions::measure()?,
    };
    if options.json {
        println!("{}", found.json());
    } else {
        found.print();
    }
    Ok(())
}
