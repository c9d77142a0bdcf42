//! Counters.

use crate::Model;

/// Counters by key, zero at the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter;

/// A call of a counter. The first number is its key. The answer is the count afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterCall {
    /// To count this much more.
    Add(u64, u64),
    /// To return the count.
    Read(u64),
}

impl Model for Counter {
    type Key = u64;
    type Call = CounterCall;
    type Reply = u64;
    type State = u64;

    fn key(&self, call: &CounterCall) -> u64 {
        match *call {
            CounterCall::Add(key, _) | CounterCall::Read(key) => key,
        }
    }

    fn initial(&self, _: &u64) -> u64 {
        0
    }

    fn execute(&self, state: &mut u64, call: &CounterCall) -> u64 {
        if let CounterCall::Add(_, more) = *call {
            *state = state.wrapping_add(more);
        }
        *state
    }

    fn is_read(&self, call: &CounterCall, _: Option<&u64>) -> bool {
        matches!(call, CounterCall::Read(_))
    }

    fn tell(&self, call: &CounterCall, reply: Option<&u64>) -> String {
        let asked = match call {
            CounterCall::Add(_, more) => format!("add {more}"),
            CounterCall::Read(_) => "read".into(),
        };
        reply.map_or(asked.clone(), |reply| format!("{asked} → {reply}"))
    }
}
