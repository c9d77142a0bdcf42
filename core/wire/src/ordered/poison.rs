//! Poisonous calls, which kill the services that execute them (`docs/protocol/poison.md`).

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::codec::at_most;
use crate::limits::{MAX_DEATHS, MAX_POISON_BYTES, MAX_UPDATE_CALLS};
use crate::{ClientId, GroupId, Malformed, MethodId, NodeId, Time};

/// The progress of a service when it died or hung. Calls have their numbers in the group's history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Died {
    /// The last call that it had executed.
    pub executed: u64,
    /// The last call that it had received. It has answered none after `executed`.
    pub given: u64,
    /// Received and unanswered calls that are in no history yet, in order: client and number.
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

/// The trial of the next call: only the sender executes it, because a service may have died of it.
///
/// ```text
/// | node | deaths: count, each node | answered | beside |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The node that executes it.
    pub node: NodeId,
    /// The nodes where services died after they had received the call, in order of their deaths.
    pub deaths: Vec<NodeId>,
    /// One of these services may have answered the call.
    pub answered: bool,
    /// Another node's trial of the call has been silent for long, so this one runs beside it.
    pub beside: bool,
}

/// The number of calls that the sender's replica has executed. The others may now execute them too.
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
    /// The trial of the next call, if it needs one.
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

/// From here on, no replica executes this call of the group's history: services died of it.
///
/// ```text
/// | group | number | nodes: count, each node |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poisoned {
    /// Which group.
    pub group: GroupId,
    /// The call's number in the group's history, from 1.
    pub number: u64,
    /// The nodes where services died, in order.
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

/// Refuses numbers that no history reaches. The limit is so low that counting on from it cannot
/// overflow.
pub(super) fn check_number(number: u64) -> Result<(), Malformed> {
    if number < u64::MAX / 2 { Ok(()) } else { Err(Malformed::Field("number of a call")) }
}

/// A poisonous call, as its group keeps it for `steadfast poisoned`.
///
/// ```text
/// | number | client | call | method | json | time | nodes: count, each node | size | body |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poison {
    /// The call's number in the group's history, from 1.
    pub number: u64,
    /// The client that called.
    pub client: ClientId,
    /// The number of the client's call.
    pub call: u64,
    /// The method.
    pub method: MethodId,
    /// The arguments are JSON.
    pub json: bool,
    /// Ordered time of the call.
    pub time: Time,
    /// The nodes where services died, in order.
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
