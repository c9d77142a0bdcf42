//! The calls that clients draw.

use std::collections::BTreeMap;

use bytes::Bytes;
use client::CallError;
use history::Model;
use history::models::{Register, RegisterCall};
use wire::client::Access;
use wire::{ClientId, Duration, GroupId, MethodId};

use crate::check::linearizable::Begun;
use crate::draw::Draw;
use crate::options::{GroupPlan, Load};
use crate::registers::{KEYS, READ, VALUES, pack, unpack};
use crate::service::{APPEND, FAIL, MISSING, RELAY, arguments};

/// A call that is not made yet.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The group that is called.
    pub group: String,
    /// The method that is called.
    pub method: MethodId,
    /// The arguments.
    pub body: Bytes,
    /// Its effect on the state.
    pub access: Access,
    /// Its deadline.
    pub timeout: Duration,
}

impl Draft {
    /// A call that changes the group's state.
    pub fn append(group: &str, rest: &[u8], timeout: Duration) -> Draft {
        let (method, body) = (APPEND, arguments(7, rest));
        Draft { group: group.into(), method, body, access: Access::Change, timeout }
    }

    /// The calls of a group that must succeed when all is healed. One of them reads this register.
    pub fn demanded(group: &GroupPlan, key: u64, timeout: Duration) -> Vec<Draft> {
        let access = if group.reads() { Access::Read } else { Access::Change };
        let (read, word) = pack(&RegisterCall::Read(key));
        let word = Bytes::copy_from_slice(&word.to_le_bytes());
        let rest = arguments(7, b"after the storm");
        let relay = group.callee.as_ref().map(|_| (RELAY, rest.clone(), Access::Change));
        let calls = [(APPEND, rest, Access::Change), (read, word, access)].into_iter().chain(relay);
        // It waits for other groups, with less than its own time, or behind calls that do: where a
        // round takes long, the plain timeout is too short.
        let timeout = if group.callee.is_some() { timeout * 3 } else { timeout };
        let name = || group.name.clone();
        calls
            .map(|(method, body, access)| Draft { group: name(), method, body, access, timeout })
            .collect()
    }

    /// The register of which its reply says what it held.
    pub fn register(&self) -> Option<(GroupId, u64)> {
        let word = <[u8; 8]>::try_from(&self.body[..]).ok()?;
        unpack(self.method, u64::from_le_bytes(word))
            .filter(|call| !matches!(call, RegisterCall::Write(..)))
            .map(|call| (GroupId::of(&self.group), Register.key(&call)))
    }
}

/// A read that its group orders is in the history, like any other call.
pub fn as_executed(begun: Begun, group: &GroupPlan) -> Begun {
    let access = if group.orders_reads() { Access::Change } else { begun.access };
    Begun { access, ..begun }
}

/// The calls of one client, and its knowledge of registers.
pub struct Drafts {
    /// Distinguishes its values from other clients'.
    mine: u64,
    /// The word that it wrote last.
    written: u64,
    /// The values that it saw last in each group's registers.
    seen: BTreeMap<(GroupId, u64), u64>,
}

impl Drafts {
    /// Those of this client.
    pub fn new(client: ClientId) -> Drafts {
        Drafts { mine: client.0 % (VALUES >> 10), written: 0, seen: BTreeMap::new() }
    }

    /// The next call, as the load says, and the group.
    pub fn next<'a>(
        &mut self,
        groups: &'a [GroupPlan],
        load: &Load,
        draw: &mut Draw,
    ) -> (Draft, &'a GroupPlan) {
        let plan = &groups[draw.count(0, groups.len() - 1)];
        let reads = plan.reads();
        let long = if draw.one_in(8) { load.body } else { load.body.min(64) };
        let filling = draw.between(0, long as u64) as u32;
        let rest = vec![draw.bits() as u8; draw.count(0, long)];
        let method = draw.pick(&[APPEND, APPEND, APPEND, APPEND, APPEND, APPEND, FAIL, MISSING]);
        let timeout = draw.pick(&[load.timeout, load.timeout * 4, load.longest]);
        let (method, body) = match draw.one_in(2) {
            true => self.register(GroupId::of(&plan.name), draw),
            false => (method, arguments(filling, &rest)),
        };
        let relays = plan.callee.is_some() && draw.one_in(2);
        let (method, body) = match relays {
            true => (RELAY, arguments(filling, &rest)),
            false => (method, body),
        };
        let age = Access::Stale { max_age_ms: draw.pick(&[1, 10, 50, 200]) };
        // Where reads are ordered they stand in the service's history, and one replica alone that
        // answered one would have another history than the others.
        let stale = if plan.orders_reads() { Access::Read } else { age };
        let ways = [Access::Change, Access::Read, Access::Read, stale, stale];
        let access = if method == READ && reads { draw.pick(&ways) } else { Access::Change };
        (Draft { group: plan.name.clone(), method, body, access, timeout }, plan)
    }

    /// A call of a register. No two clients write the same value, and each writes it once.
    fn register(&mut self, group: GroupId, draw: &mut Draw) -> (MethodId, Bytes) {
        let key = draw.between(0, KEYS - 1);
        let old = self.seen.get(&(group, key)).copied().unwrap_or_default();
        self.written = (self.written % (1 << 10) + 1) | self.mine << 10;
        let call = match draw.between(0, 4) {
            0 | 1 => RegisterCall::Read(key),
            2 | 3 => RegisterCall::Write(key, self.written),
            _ => RegisterCall::Swap { key, old, new: self.written },
        };
        let (method, word) = pack(&call);
        (method, Bytes::copy_from_slice(&word.to_le_bytes()))
    }

    /// A call whose reply says what this register held has ended.
    pub fn saw(&mut self, register: Option<(GroupId, u64)>, result: &Result<Bytes, CallError>) {
        if let (Some(register), Ok(bytes)) = (register, result)
            && let Some(held) = bytes.last_chunk::<8>()
        {
            self.seen.insert(register, u64::from_le_bytes(*held));
        }
    }
}
