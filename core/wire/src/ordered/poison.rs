//! Requests that kill whoever executes them (`docs/protocol/poison.md`).

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::codec::at_most;
use crate::limits::{MAX_DEATHS, MAX_POISON_BYTES, MAX_UPDATE_CALLS};
use crate::{ClientId, GroupId, Malformed, MethodId, NodeId, Time};

/// How far a service was when it died, or is when it hangs, in numbers of the calls of its group's history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Died {
    /// It had executed so many.
    pub executed: u64,
    /// It had been given the next ones up to this one, and has answered none of them.
    pub given: u64,
    /// What it had been given and has not answered, in order, of calls that are in no history yet: whose, and which of the client's.
    pub ahead: Vec<(ClientId, u64)>,
}

impl Died {
    /// Refuses numbers that no history reaches, and lists that are longer than their limit.
    pub(super) fn check(&self) -> Result<(), Malformed> {
        at_most(self.ahead.len(), MAX_UPDATE_CALLS, "calls ahead")?;
        check_number(self.executed)?;
        check_number(self.given)
    }
}

/// The sender executes the next call alone: others have died of it, or may have.
///
/// ```text
/// | node | deaths: count, each node | answered | beside |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Where it is executed.
    pub node: NodeId,
    /// Where services died that had been given it, in order.
    pub deaths: Vec<NodeId>,
    /// One of them may have answered it.
    pub answered: bool,
    /// Another tries it, and has been silent for long.
    pub beside: bool,
}

/// The sender's replica has executed so many of the group's calls, which the others may execute from here on.
///
/// ```text
/// | group | executed | trial: 0, or 1 and trial |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Which group.
    pub group: GroupId,
    /// Calls in the group's history that the sender has executed.
    pub executed: u64,
    /// The next call is tried.
    pub trial: Option<Trial>,
}

impl Progress {
    /// Refuses lists that are longer than their limits, and numbers that no history reaches.
    pub(super) fn checked(self) -> Result<Progress, Malformed> {
        at_most(self.trial.as_ref().map_or(0, |trial| trial.deaths.len()), MAX_DEATHS, "deaths")?;
        check_number(self.executed)?;
        Ok(self)
    }
}

/// This call of the group's history is executed by nobody from here on: each service that executed it died.
///
/// ```text
/// | group | number | nodes: count, each node |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poisoned {
    /// Which group.
    pub group: GroupId,
    /// Which call of the group's history, from 1.
    pub number: u64,
    /// Where services died, in order.
    pub nodes: Vec<NodeId>,
}

impl Poisoned {
    /// Refuses lists that are longer than their limits, and numbers that no history reaches.
    pub(super) fn checked(self) -> Result<Poisoned, Malformed> {
        at_most(self.nodes.len(), MAX_DEATHS, "nodes")?;
        check_number(self.number)?;
        if self.number == 0 {
            return Err(Malformed::Field("poisoned number"));
        }
        Ok(self)
    }
}

/// Far above what any history reaches, far below what counting on from it could overflow.
pub(super) fn check_number(number: u64) -> Result<(), Malformed> {
    if number < u64::MAX / 2 { Ok(()) } else { Err(Malformed::Field("number of a call")) }
}

/// A call that killed whoever executed it, as a group keeps it for people.
///
/// ```text
/// | number | client | call | method | json | time | nodes: count, each node | size | body |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poison {
    /// Which call of the group's history, from 1.
    pub number: u64,
    /// Whose call.
    pub client: ClientId,
    /// Which of the client's calls.
    pub call: u64,
    /// The method.
    pub method: MethodId,
    /// The arguments are JSON.
    pub json: bool,
    /// Ordered time of the call.
    pub time: Time,
    /// Where services died, in order.
    pub nodes: Vec<NodeId>,
    /// Bytes of the arguments.
    pub size: u64,
    /// The arguments, at most the first [`MAX_POISON_BYTES`] of them.
    pub body: Vec<u8>,
}

impl Poison {
    /// Refuses lists that are longer than their limits.
    pub(super) fn check(&self) -> Result<(), Malformed> {
        at_most(self.nodes.len(), MAX_DEATHS, "nodes")?;
        at_most(self.body.len(), MAX_POISON_BYTES, "body")
    }
}
