//! Registers: read, write, compare and set.

use crate::Model;

/// Registers by key, zero at the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Register;

/// A call of a register. The first number is its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterCall {
    /// To return the value.
    Read(u64),
    /// To hold this from now on.
    Write(u64, u64),
    /// To hold `new` from now on if it holds `old`.
    Swap {
        /// Which register.
        key: u64,
        /// The value that it must hold.
        old: u64,
        /// The value that it then holds.
        new: u64,
    },
}

/// A register's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterReply {
    /// The value. [`RegisterCall::Swap`] returns the value before it: it was swapped if that is
    /// `old`.
    Value(u64),
    /// It is written.
    Written,
}

impl Model for Register {
    type Key = u64;
    type Call = RegisterCall;
    type Reply = RegisterReply;
    type State = u64;

    fn key(&self, call: &RegisterCall) -> u64 {
        match *call {
            RegisterCall::Read(key)
            | RegisterCall::Write(key, _)
            | RegisterCall::Swap { key, .. } => key,
        }
    }

    fn initial(&self, _: &u64) -> u64 {
        0
    }

    fn execute(&self, state: &mut u64, call: &RegisterCall) -> RegisterReply {
        let held = *state;
        match *call {
            RegisterCall::Read(_) => {}
            RegisterCall::Write(_, value) => {
                *state = value;
                return RegisterReply::Written;
            }
            RegisterCall::Swap { old, new, .. } if old == held => *state = new,
            RegisterCall::Swap { .. } => {}
        }
        RegisterReply::Value(held)
    }

    fn is_read(&self, call: &RegisterCall, reply: Option<&RegisterReply>) -> bool {
        match (call, reply) {
            (RegisterCall::Read(_), _) => true,
            (RegisterCall::Swap { old, .. }, Some(RegisterReply::Value(held))) => old != held,
            _ => false,
        }
    }

    fn tell(&self, call: &RegisterCall, reply: Option<&RegisterReply>) -> String {
        match (*call, reply) {
            (RegisterCall::Read(_), Some(RegisterReply::Value(value))) => format!("read → {value}"),
            (RegisterCall::Read(_), _) => "read".into(),
            (RegisterCall::Write(_, value), _) => format!("write {value}"),
            (RegisterCall::Swap { old, new, .. }, Some(RegisterReply::Value(held))) => {
                let done = if *held == old { "done".into() } else { format!("no, {held}") };
                format!("swap {old} for {new} → {done}")
            }
            (RegisterCall::Swap { old, new, .. }, _) => format!("swap {old} for {new}"),
        }
    }
}
