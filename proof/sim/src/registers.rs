//! The registers of the simulated service, which clients read and write, and by which they judge
//! it.
//!
//! The arguments of such a call are eight bytes, so that an entry of the log holds them whole.

use history::models::RegisterCall;
use wire::MethodId;

/// Returns the contents of a register.
pub const READ: MethodId = MethodId::of("read");
/// A register is to hold something else.
pub const WRITE: MethodId = MethodId::of("write");
/// It is to hold something else if it holds what is expected.
pub const SWAP: MethodId = MethodId::of("swap");

/// Registers of a group: few, so that clients meet in them.
pub const KEYS: u64 = 4;

/// Values are below this: two of them and a key are a word.
pub const VALUES: u64 = 1 << 28;

/// Whether this method is one of the registers'.
pub fn is_register(method: MethodId) -> bool {
    [READ, WRITE, SWAP].contains(&method)
}

/// The method and the arguments of a call.
pub fn pack(call: &RegisterCall) -> (MethodId, u64) {
    match *call {
        RegisterCall::Read(key) => (READ, key),
        RegisterCall::Write(key, value) => (WRITE, key | value << 36),
        RegisterCall::Swap { key, old, new } => (SWAP, key | old << 8 | new << 36),
    }
}

/// The call with these arguments.
pub fn unpack(method: MethodId, word: u64) -> Option<RegisterCall> {
    let (key, old, new) = (word % 256 % KEYS, word >> 8 & (VALUES - 1), word >> 36);
    match method {
        READ => Some(RegisterCall::Read(key)),
        WRITE => Some(RegisterCall::Write(key, new)),
        SWAP => Some(RegisterCall::Swap { key, old, new }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_word() {
        let value = VALUES - 1;
        for call in [
            RegisterCall::Read(3),
            RegisterCall::Write(2, value),
            RegisterCall::Swap { key: 1, old: value, new: 7 },
            RegisterCall::Swap { key: 1, old: 7, new: value },
        ] {
            let (method, word) = pack(&call);
            assert_eq!(unpack(method, word), Some(call));
        }
    }
}
