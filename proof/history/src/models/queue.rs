//! Queues: first in, first out.

use std::collections::VecDeque;

use crate::Model;

/// Queues by key, empty at the beginning. A push or pop whose end is not known is the hard case: an
/// entry may come late, or be lost with an unknown pop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue;

/// A call of a queue. The first number is its key. The answer is the entry that a pop took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueCall {
    /// To take this at its end.
    Push(u64, u64),
    /// To give up its first entry, if it has one.
    Pop(u64),
}

impl Model for Queue {
    type Key = u64;
    type Call = QueueCall;
    type Reply = Option<u64>;
    type State = VecDeque<u64>;

    fn key(&self, call: &QueueCall) -> u64 {
        match *call {
            QueueCall::Push(key, _) | QueueCall::Pop(key) => key,
        }
    }

    fn initial(&self, _: &u64) -> VecDeque<u64> {
        VecDeque::new()
    }

    fn execute(&self, state: &mut VecDeque<u64>, call: &QueueCall) -> Option<u64> {
        match *call {
            QueueCall::Push(_, entry) => {
                state.push_back(entry);
                None
            }
            QueueCall::Pop(_) => state.pop_front(),
        }
    }

    fn is_read(&self, call: &QueueCall, reply: Option<&Option<u64>>) -> bool {
        matches!((call, reply), (QueueCall::Pop(_), Some(None)))
    }

    fn tell(&self, call: &QueueCall, reply: Option<&Option<u64>>) -> String {
        match (call, reply) {
            (QueueCall::Push(_, entry), _) => format!("push {entry}"),
            (QueueCall::Pop(_), Some(Some(entry))) => format!("pop → {entry}"),
            (QueueCall::Pop(_), Some(None)) => "pop → nothing".into(),
            (QueueCall::Pop(_), None) => "pop".into(),
        }
    }
}
