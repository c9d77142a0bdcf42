//! The report on the calls that a group's services died of.

use serde::{Deserialize, Serialize};
use wire::ordered::Poison;
use wire::{ClientId, MethodId, NodeId, Time};

use crate::hex::hex;

/// The answer to [`Request::Poisoned`](crate::Request::Poisoned).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoisonedAnswer {
    /// The node.
    pub node: NodeId,
    /// The group.
    pub group: String,
    /// The calls that are kept, the oldest first.
    pub calls: Vec<PoisonedCall>,
}

/// A call that services died of, and that nobody executes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoisonedCall {
    /// Which call of the group's history, from 1.
    pub number: u64,
    /// The client whose call it is.
    pub client: ClientId,
    /// Which of the client's calls.
    pub call: u64,
    /// The method.
    pub method: MethodId,
    /// The arguments are JSON.
    pub json: bool,
    /// Ordered time of the call.
    pub time: Time,
    /// Where services died of it.
    pub nodes: Vec<NodeId>,
    /// Bytes of the arguments.
    pub size: u64,
    /// Only the first of them are kept.
    pub truncated: bool,
    /// The kept part of the arguments, in hexadecimal digits.
    pub arguments_hex: String,
}

impl From<&Poison> for PoisonedCall {
    fn from(poison: &Poison) -> Self {
        PoisonedCall {
            number: poison.number,
            client: poison.client,
            call: poison.call,
            method: poison.method,
            json: poison.json,
            time: poison.time,
            nodes: poison.nodes.clone(),
            size: poison.size,
            truncated: poison.size > poison.body.len() as u64,
            arguments_hex: hex(&poison.body),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_are_not_all_kept_are_said_to_be_cut() {
        let poison = |size| Poison {
            number: 5,
            client: ClientId(7),
            call: 9,
            method: MethodId(3),
            json: true,
            time: Time(1),
            nodes: vec![NodeId(1), NodeId(3)],
            size,
            body: b"[1]".to_vec(),
        };
        let whole = PoisonedCall::from(&poison(3));
        assert_eq!((whole.truncated, &whole.arguments_hex[..]), (false, "5b315d"));
        assert!(PoisonedCall::from(&poison(4)).truncated);
        let json = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<PoisonedCall>(&json).unwrap(), whole);
    }
}
