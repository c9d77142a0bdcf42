//! The kinds of clients that are compared, the group that they call, and the orders of their
//! processes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use steadfast::{Client, Policy, Refresh, Strategy};

use harness::Outcome;
use harness::process::Role;

/// The experiment's name.
pub const NAME: &str = "interceptor";

/// The group that has a replica at every node, and the one that has one alone.
pub const GROUP: &str = "stateless";
pub const ALONE: &str = "stateless-alone";

pub const NODES: u32 = 3;

/// The pairs that are compared: the targets alone; all that the client is; and two of one kind,
/// whose difference is the limit of this measurement.
pub const PAIRS: [(Kind, Kind, &str); 3] = [
    (Kind::Proactive, Kind::Static, "targets that are kept up to date"),
    (Kind::Proactive, Kind::Bare, "all that the client is"),
    (Kind::Static, Kind::Static, "nothing: the same twice"),
];

/// Bytes of request and reply.
pub const SIZE: usize = 64;

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

/// The orders of a process of this experiment.
#[derive(Serialize, Deserialize)]
pub enum Orders {
    /// To make some calls, and to do nothing more.
    Reside(Kind, Vec<SocketAddr>),
    /// To be a client's machine that is answered without any node, for so many calls.
    Step(Kind, u64),
}

impl Orders {
    /// A process that follows them.
    pub fn role(self) -> Outcome<Role> {
        Role::own(NAME, self)
    }
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Bare, Kind::Static, Kind::Proactive];

    /// As in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bare => "bare",
            Kind::Static => "static",
            Kind::Proactive => "proactive",
        }
    }

    /// The group that it calls: its targets are as many as this kind has.
    pub fn group(self) -> &'static str {
        if self == Kind::Proactive { GROUP } else { ALONE }
    }

    pub fn policy(self) -> Policy {
        match self {
            Kind::Proactive => Policy::default(),
            Kind::Static | Kind::Bare => {
                Policy::default().strategy(Strategy::Static).refresh(Refresh::None)
            }
        }
    }

    /// A client of this kind that is not bare.
    pub fn connect(self, nodes: &[SocketAddr]) -> Outcome<Client> {
        Ok(Client::builder().policy(self.policy()).connect(nodes)?)
    }
}
