//! The service that every simulated group runs: a log of its own calls, and their hash; and
//! registers.
//!
//! Its state is its history: a replica's state, or a reply, shows which calls led to
//! it. Every reply names its place in the history and the hash of the history up to there. The
//! registers' contents follow from the history, too.

use bytes::Bytes;
use engine::{NestedError, ServiceOutcome};
use wire::client::Refusal;
use wire::ordered::MERGE;
use wire::{ClientId, MethodId, Random, Time};

use history::models::RegisterCall;

use crate::registers::{KEYS, READ, SWAP, WRITE, is_register, unpack};
use crate::trace::{digest, mix};

/// Calls the next group first, and then does as [`APPEND`]; the error of that call is its own.
pub const RELAY: MethodId = MethodId::of("relay");
/// Appends an entry and replies with its place, the history's hash, and a filling.
pub const APPEND: MethodId = MethodId::of("append");
/// As [`APPEND`], but the reply is the service's own error.
pub const FAIL: MethodId = MethodId::of("fail");
/// A method that the service does not have: its calls are in the history and are refused.
pub const MISSING: MethodId = MethodId::of("missing");

/// One executed call, as the replica saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The client.
    pub client: ClientId,
    /// The number of its call.
    pub number: u64,
    /// Ordered time.
    pub time: Time,
    /// The first of the call's random numbers.
    pub random: u64,
    /// The method.
    pub method: MethodId,
    /// The arguments: see [`identity`].
    pub body: u64,
    /// Bytes of filling that the arguments ask for.
    pub filling: u32,
    /// The result of the nested call: 0 if none was made, [`FAILED`] if it has no reply, else a
    /// hash of the reply.
    pub came: u64,
}

/// A call of another group has no reply.
pub const FAILED: u64 = 1;

/// The word that represents the reply of another group.
pub fn came_of(outcome: &Result<Bytes, NestedError>) -> u64 {
    outcome.as_ref().map_or(FAILED, |bytes| digest(bytes) | 2)
}

/// Bytes of a snapshot before the entries: their count and their hash.
const HEAD: usize = 16;
/// Bytes of one entry in a snapshot.
const ENTRY: usize = 56;
/// Bytes of a reply before the filling.
pub const REPLY: usize = 24;

/// The service's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Everything executed, in order.
    pub entries: Vec<Entry>,
    /// The hash of the entries.
    pub digest: u64,
    registers: [u64; KEYS as usize],
    padding: usize,
    /// So many entries have been told to backups, or came from elsewhere.
    told: usize,
    /// The number of the group's newest view: no state.
    pub viewed: u64,
}

/// The arguments of a call: how much filling the reply shall have, and some bytes.
pub fn arguments(filling: u32, rest: &[u8]) -> Bytes {
    let mut body = filling.to_le_bytes().to_vec();
    body.extend_from_slice(rest);
    body.into()
}

/// The word that represents arguments in an entry: their hash; for a register's call the arguments
/// themselves; for a merge the hash of the other history, whose state has it as its second word.
pub fn identity(method: MethodId, body: &[u8]) -> u64 {
    if method == MERGE {
        let word = body.get(8..16).and_then(|word| word.first_chunk());
        return word.copied().map_or(0, u64::from_le_bytes);
    }
    match <[u8; 8]>::try_from(body) {
        Ok(word) if is_register(method) => u64::from_le_bytes(word),
        _ => digest(body),
    }
}

/// The hash of a history that goes on by this entry.
pub fn extend(digest: u64, entry: &Entry) -> u64 {
    words(entry).iter().fold(digest, |hash, &word| mix(hash, word))
}

fn words(entry: &Entry) -> [u64; 7] {
    let Entry { client, number, time, random, method, body, filling, came } = *entry;
    let tail = u64::from(method.0) << 32 | u64::from(filling);
    [client.0, number, time.0, random, body, tail, came]
}

impl Log {
    /// An empty log whose snapshots carry so many bytes more.
    pub fn new(padding: usize) -> Self {
        Log { padding, ..Log::default() }
    }

    /// Executes a call.
    pub fn execute(&mut self, call: &Call<'_>) -> ServiceOutcome {
        let entry = call.entry();
        let held = self.append(entry);
        self.reply(call, entry, held)
    }

    /// Executes a call that changes nothing: it names the place of the last call before it.
    pub fn look(&self, call: &Call<'_>) -> ServiceOutcome {
        let entry = call.entry();
        match unpack(entry.method, entry.body) {
            Some(RegisterCall::Read(key)) => {
                self.reply(call, entry, Some(self.registers[key as usize]))
            }
            _ => ServiceOutcome::Refused(Refusal::NotReadOnly, "it is not read".into()),
        }
    }

    fn reply(&self, call: &Call<'_>, entry: Entry, held: Option<u64>) -> ServiceOutcome {
        let mut reply = Vec::with_capacity(REPLY + entry.filling as usize);
        for word in [self.entries.len() as u64, self.digest, entry.random] {
            reply.extend_from_slice(&word.to_le_bytes());
        }
        let low = self.digest.to_le_bytes()[0];
        reply.resize(REPLY + entry.filling as usize, low);
        reply.extend(held.iter().flat_map(|value| value.to_le_bytes()));
        match call.method {
            APPEND | READ | WRITE | SWAP | MERGE => ServiceOutcome::Ok(reply.into()),
            RELAY if call.came > FAILED => ServiceOutcome::Ok(reply.into()),
            FAIL | RELAY => ServiceOutcome::Error(reply.into()),
            _ => {
                let told = format!("{} {:016x}", self.entries.len(), self.digest);
                ServiceOutcome::Refused(Refusal::NoSuchMethod, told)
            }
        }
    }

    /// The history goes on. Returns the former contents if it is a call of a register.
    fn append(&mut self, entry: Entry) -> Option<u64> {
        self.digest = extend(self.digest, &entry);
        self.entries.push(entry);
        let call = unpack(entry.method, entry.body)?;
        let (RegisterCall::Read(key)
        | RegisterCall::Write(key, _)
        | RegisterCall::Swap { key, .. }) = call;
        let register = &mut self.registers[key as usize];
        let held = *register;
        match call {
            RegisterCall::Write(_, new) => *register = new,
            RegisterCall::Swap { old, new, .. } if old == held => *register = new,
            RegisterCall::Read(_) | RegisterCall::Swap { .. } => {}
        }
        Some(held)
    }

    /// Begins anew.
    pub fn reset(&mut self) {
        *self = Log::new(self.padding);
    }

    /// The state as bytes.
    pub fn snapshot(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(HEAD + self.entries.len() * ENTRY + self.padding);
        bytes.extend_from_slice(&(self.entries.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&self.digest.to_le_bytes());
        bytes.extend(records(&self.entries));
        let mut filling = Random::new(self.digest);
        for _ in 0..self.padding / 8 {
            bytes.extend_from_slice(&filling.next_u64().to_le_bytes());
        }
        bytes.into()
    }

    /// Takes over another replica's state; says what is wrong with its bytes.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let log = Log::read(state, self.padding).ok_or("the state has a wrong length")?;
        if log.snapshot() != state {
            return Err("the state is not what a replica took".into());
        }
        *self = log;
        Ok(())
    }

    /// The entries since this was asked last, or since the state came, in the service's own words.
    pub fn told(&mut self) -> Vec<u8> {
        let new = &self.entries[self.told..];
        self.told = self.entries.len();
        records(new).collect()
    }

    /// Goes on by entries that another replica told.
    pub fn apply(&mut self, words: &[u8]) -> Result<(), String> {
        if !words.len().is_multiple_of(ENTRY) {
            return Err("no whole number of entries".into());
        }
        for record in words.chunks_exact(ENTRY) {
            self.append(read_entry(record));
        }
        self.told = self.entries.len();
        Ok(())
    }

    fn read(state: &[u8], padding: usize) -> Option<Log> {
        let count = u64::from_le_bytes(state.get(..8)?.try_into().ok()?);
        let mut log = Log::new(padding);
        let records = state.get(HEAD..HEAD + usize::try_from(count).ok()?.checked_mul(ENTRY)?)?;
        for record in records.chunks_exact(ENTRY) {
            let entry = read_entry(record);
            log.append(entry);
        }
        log.told = log.entries.len();
        Some(log)
    }
}

/// Entries as bytes.
fn records(entries: &[Entry]) -> impl Iterator<Item = u8> + '_ {
    entries.iter().flat_map(words).flat_map(u64::to_le_bytes)
}

fn read_entry(record: &[u8]) -> Entry {
    let word =
        |i: usize| u64::from_le_bytes(record[8 * i..8 * i + 8].try_into().expect("eight bytes"));
    Entry {
        client: ClientId(word(0)),
        number: word(1),
        time: Time(word(2)),
        random: word(3),
        body: word(4),
        method: MethodId((word(5) >> 32) as u32),
        filling: word(5) as u32,
        came: word(6),
    }
}

/// A call as the executor hands it over.
pub struct Call<'a> {
    /// The client.
    pub client: ClientId,
    /// The number of its call.
    pub number: u64,
    /// Ordered time.
    pub now: Time,
    /// Seed of the random numbers.
    pub seed: u64,
    /// The method.
    pub method: MethodId,
    /// The arguments.
    pub body: &'a [u8],
    /// The result of its nested call, as a word.
    pub came: u64,
}

impl Call<'_> {
    /// Returns the call's entry in the history.
    pub fn entry(&self) -> Entry {
        let filled = !is_register(self.method) && self.method != MERGE;
        let asked = self.body.get(..4).filter(|_| filled);
        let filling = asked.map_or(0, |head| {
            u32::from_le_bytes(head.try_into().expect("four bytes")).min(1 << 16)
        });
        Entry {
            client: self.client,
            number: self.number,
            time: self.now,
            random: Random::new(self.seed).next_u64(),
            method: self.method,
            body: identity(self.method, self.body),
            filling,
            came: self.came,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u64) -> Call<'static> {
        let now = Time(number);
        Call {
            client: ClientId(1),
            number,
            now,
            seed: 9,
            method: APPEND,
            body: b"\x05\0\0\0x",
            came: 0,
        }
    }

    #[test]
    fn a_state_travels_whole_or_not_at_all() {
        let mut log = Log::new(100);
        for number in 1..=3 {
            log.execute(&call(number));
        }
        // The count of entries told to backups is not part of a snapshot.
        log.told();
        let state = log.snapshot();
        let mut other = Log::new(100);
        other.restore(&state).unwrap();
        assert_eq!(other, log);
        let mut torn = state.to_vec();
        torn[40] ^= 1;
        assert!(other.restore(&torn).is_err());
        assert!(other.restore(&state[..state.len() - 1]).is_err());
        assert_eq!(other, log, "a bad state changes nothing");
    }
}
