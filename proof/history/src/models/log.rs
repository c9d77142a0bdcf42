//! Logs that only grow.

use crate::Model;

/// Logs by key, empty at the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log;

/// A call of a log. The first number is its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCall {
    /// To take this as its last entry.
    Append(u64, u64),
    /// All that it has.
    Read(u64),
}

/// A log's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogReply {
    /// How long it is, with the entry that was appended.
    Length(u64),
    /// All that it has.
    All(Vec<u64>),
}

impl Model for Log {
    type Key = u64;
    type Call = LogCall;
    type Reply = LogReply;
    type State = Vec<u64>;

    fn key(&self, call: &LogCall) -> u64 {
        match *call {
            LogCall::Append(key, _) | LogCall::Read(key) => key,
        }
    }

    fn initial(&self, _: &u64) -> Vec<u64> {
        Vec::new()
    }

    fn execute(&self, state: &mut Vec<u64>, call: &LogCall) -> LogReply {
        match *call {
            LogCall::Append(_, entry) => {
                state.push(entry);
                LogReply::Length(state.len() as u64)
            }
            LogCall::Read(_) => LogReply::All(state.clone()),
        }
    }

    /// Without a copy of the log for each answer that does not fit.
    fn step(&self, state: &Vec<u64>, call: &LogCall, reply: Option<&LogReply>) -> Option<Vec<u64>> {
        let fits = match (call, reply) {
            (_, None) => true,
            (LogCall::Append(..), Some(LogReply::Length(length))) => {
                *length == state.len() as u64 + 1
            }
            (LogCall::Read(_), Some(LogReply::All(all))) => all == state,
            _ => false,
        };
        fits.then(|| {
            let mut next = state.clone();
            self.execute(&mut next, call);
            next
        })
    }

    fn is_read(&self, call: &LogCall, _: Option<&LogReply>) -> bool {
        matches!(call, LogCall::Read(_))
    }

    fn tell(&self, call: &LogCall, reply: Option<&LogReply>) -> String {
        let asked = match call {
            LogCall::Append(_, entry) => format!("append {entry}"),
            LogCall::Read(_) => "read".into(),
        };
        match reply {
            None => asked,
            Some(LogReply::Length(length)) => format!("{asked} → #{length}"),
            // The end is what differs.
            Some(LogReply::All(all)) if all.len() > 4 => {
                format!("{asked} → {} with .. {:?}", all.len(), &all[all.len() - 3..])
            }
            Some(LogReply::All(all)) => format!("{asked} → {all:?}"),
        }
    }
}
