//! `[[replica]]`: a replica of a service that is built into the program.

use serde::{Deserialize, Serialize};
use wire::Lane;
use wire::ordered::{AckLevel, Durability, GroupOptions, Style};

/// Where a replica's handlers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Execution {
    /// On a thread of the replica's own: a slow handler delays nobody but its own group.
    #[default]
    Thread,
    /// Only for stateless groups: on three threads, each with a service of its own, for normal,
    /// critical and alarm calls (priorities 0 to 99, 100 to 199, 200 to 255). So an alarm waits
    /// behind no normal call.
    Lanes,
    /// On the data-plane thread: saves two hand-overs between threads (some 50 µs), but a handler
    /// that takes longer than some microseconds delays everything, in the end the ring's token.
    Inline,
}

impl Execution {
    /// The number of threads that run handlers alone.
    pub const fn threads(self) -> usize {
        match self {
            Execution::Thread => 1,
            Execution::Lanes => Lane::ALL.len(),
            Execution::Inline => 0,
        }
    }
}

/// A replica of a service that is built into the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaConfig {
    /// The group's name.
    pub group: String,
    /// The service's name, for the program to look up.
    pub service: String,
    /// How the group is replicated.
    #[serde(default)]
    pub style: Style,
    /// The nodes that must have a request before its reply may leave; `None`: the default. A
    /// stateless group has no such level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack: Option<AckLevel>,
    /// Where the group is kept.
    #[serde(default)]
    pub durability: Durability,
    /// Where handlers run.
    #[serde(default)]
    pub execution: Execution,
}

impl ReplicaConfig {
    /// Options on which all replicas of its group must agree.
    pub fn options(&self) -> GroupOptions {
        let ack = self.ack.unwrap_or(GroupOptions::default().ack);
        GroupOptions { style: self.style, ack, durability: self.durability }
    }
}
