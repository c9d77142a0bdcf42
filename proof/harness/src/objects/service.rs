//! The service that clients of the black box call: registers and logs by key.

use std::collections::BTreeMap;
use std::hint::{black_box, spin_loop};
use std::process::abort;

use bytes::Bytes;
use history::models::{LogCall, LogReply, RegisterCall, RegisterReply};
use history::{Model, Operation};
use serde::{Deserialize, Serialize};
use steadfast::{BoxError, Call, Context, MethodId, Refusal, Service, ServiceOutcome};

/// The method of the service that may change something.
pub const ASK: MethodId = MethodId::of("ask");

/// The method that changes nothing: answered without ordering where a style permits it.
pub const LOOK: MethodId = MethodId::of("look");

/// A request to the service.
#[expect(missing_docs, reason = "what the fields are is said of the variants")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// Return the value of register `key`.
    Read { key: u64 },
    /// Set it to this value.
    Write { key: u64, value: u64 },
    /// Set it to `new` if its value is `old`.
    Swap { key: u64, old: u64, new: u64 },
    /// Log `key` is to grow.
    Append { key: u64, entry: u64 },
    /// All that it has.
    Entries { key: u64 },
    /// Keys below this are used no more.
    Forget { below: u64 },
    /// Append to log `key`, and kill the process that does it.
    Die { key: u64, entry: u64, death: Death },
}

/// How a handler ends its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Death {
    /// It aborts.
    Abort,
    /// It calls itself until the stack overflows.
    Overflow,
    /// It asks for memory until there is none.
    Allocate,
    /// It never comes back.
    Loop,
}

impl Death {
    fn come(self) -> ! {
        match self {
            Death::Abort => {}
            Death::Overflow => {
                black_box(deeper(1));
            }
            Death::Allocate => {
                let mut all = Vec::new();
                loop {
                    all.push(black_box(vec![1_u8; 16 << 20]));
                }
            }
            Death::Loop => loop {
                spin_loop();
            },
        }
        abort()
    }
}

#[expect(unconditional_recursion, reason = "that is what it is for")]
fn deeper(level: u64) -> u64 {
    let room = black_box([level; 512]);
    deeper(level + 1) + room[0]
}

impl Ask {
    /// It changes nothing.
    pub fn looks(self) -> bool {
        matches!(self, Ask::Read { .. } | Ask::Entries { .. })
    }

    /// As arguments of a call.
    pub fn body(&self) -> Bytes {
        serde_json::to_vec(self).expect("numbers can be written").into()
    }
}

impl From<RegisterCall> for Ask {
    fn from(call: RegisterCall) -> Ask {
        match call {
            RegisterCall::Read(key) => Ask::Read { key },
            RegisterCall::Write(key, value) => Ask::Write { key, value },
            RegisterCall::Swap { key, old, new } => Ask::Swap { key, old, new },
        }
    }
}

impl From<LogCall> for Ask {
    fn from(call: LogCall) -> Ask {
        match call {
            LogCall::Append(key, entry) => Ask::Append { key, entry },
            LogCall::Read(key) => Ask::Entries { key },
        }
    }
}

/// A register's reply.
pub fn register_reply(call: &RegisterCall, bytes: &[u8]) -> Option<RegisterReply> {
    match (call, &words(bytes)?[..]) {
        (RegisterCall::Write(..), []) => Some(RegisterReply::Written),
        (RegisterCall::Read(_) | RegisterCall::Swap { .. }, [value]) => {
            Some(RegisterReply::Value(*value))
        }
        _ => None,
    }
}

/// A log's reply.
pub fn log_reply(call: &LogCall, bytes: &[u8]) -> Option<LogReply> {
    let words = words(bytes)?;
    match (call, &words[..]) {
        (LogCall::Append(..), [length]) => Some(LogReply::Length(*length)),
        (LogCall::Read(_), _) => Some(LogReply::All(words)),
        _ => None,
    }
}

fn words(bytes: &[u8]) -> Option<Vec<u64>> {
    serde_json::from_slice(bytes).ok()
}

/// The service: its state is what the objects hold.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Objects {
    forgotten: u64,
    registers: BTreeMap<u64, u64>,
    logs: BTreeMap<u64, Vec<u64>>,
}

impl Objects {
    /// Written apart from the models, which judge what this does.
    fn ask(&mut self, ask: Ask) -> Vec<u64> {
        match ask {
            Ask::Read { .. } | Ask::Entries { .. } => self.look(ask),
            Ask::Write { key, value } => {
                self.hold(key, value);
                Vec::new()
            }
            Ask::Swap { key, old, new } => {
                let held = self.registers.get(&key).copied().unwrap_or(0);
                if held == old {
                    self.hold(key, new);
                }
                vec![held]
            }
            // A call that arrives when its key is forgotten: nobody will ask for its effect.
            Ask::Append { key, .. } if key < self.forgotten => vec![0],
            Ask::Append { key, entry } => {
                let log = self.logs.entry(key).or_default();
                log.push(entry);
                vec![log.len() as u64]
            }
            Ask::Die { key, entry, death } => {
                self.logs.entry(key).or_default().push(entry);
                death.come()
            }
            Ask::Forget { below } => {
                self.forgotten = self.forgotten.max(below);
                self.registers.retain(|key, _| *key >= below);
                self.logs.retain(|key, _| *key >= below);
                Vec::new()
            }
        }
    }

    fn look(&self, ask: Ask) -> Vec<u64> {
        match ask {
            Ask::Read { key } => vec![self.registers.get(&key).copied().unwrap_or(0)],
            Ask::Entries { key } => self.logs.get(&key).cloned().unwrap_or_default(),
            _ => unreachable!("it would change something"),
        }
    }

    fn hold(&mut self, key: u64, value: u64) {
        if key >= self.forgotten {
            self.registers.insert(key, value);
        }
    }
}

fn written(words: &[u64]) -> ServiceOutcome {
    ServiceOutcome::Ok(serde_json::to_vec(words).expect("numbers can be written").into())
}

impl Service for Objects {
    fn call(&mut self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        match serde_json::from_slice(call.body) {
            Ok(ask) if call.method == ASK => written(&self.ask(ask)),
            _ => ServiceOutcome::Refused(Refusal::BadArguments, "ask it with `Ask`".into()),
        }
    }

    fn read(&self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        match serde_json::from_slice::<Ask>(call.body) {
            Ok(ask) if call.method == LOOK && ask.looks() => written(&self.look(ask)),
            _ => ServiceOutcome::Refused(
                Refusal::BadArguments,
                "only `Read` and `Entries` look".into(),
            ),
        }
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(serde_json::to_vec(self)?)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        *self = serde_json::from_slice(state)?;
        Ok(())
    }
}

/// An operation on a line: times in nanoseconds, client, key, words, and how it ended.
pub fn line<M: Model<Key = u64>>(
    model: &M,
    operation: &Operation<M::Call, M::Reply>,
) -> (u64, String) {
    let answer = operation.answer();
    let end = match (answer, &operation.end) {
        (Some((at, _)), _) => at.0.to_string(),
        (None, end) => format!("{end:?}"),
    };
    let Operation { client, call, invoked, .. } = operation;
    let words = model.tell(call, answer.map(|(_, reply)| reply));
    let (key, kind) = (model.key(call), std::any::type_name::<M>());
    let kind = kind.rsplit("::").next().unwrap_or(kind);
    (invoked.0, format!("{} {end} c{client} {kind} {key}: {words}", invoked.0))
}

#[cfg(test)]
mod tests {
    use history::models::{Log, Register};

    use super::*;

    #[test]
    fn the_service_does_what_the_models_say() {
        let mut objects = Objects::default();
        let (mut register, mut log) = (0, Vec::new());
        let swap = |old, new| RegisterCall::Swap { key: 3, old, new };
        for call in [
            RegisterCall::Read(3),
            RegisterCall::Write(3, 5),
            swap(4, 6),
            swap(5, 7),
            RegisterCall::Read(3),
        ] {
            let bytes = serde_json::to_vec(&objects.ask(call.into())).unwrap();
            let right = Register.execute(&mut register, &call);
            assert_eq!(register_reply(&call, &bytes), Some(right));
        }
        for call in [LogCall::Append(3, 8), LogCall::Append(3, 8), LogCall::Read(3)] {
            let bytes = serde_json::to_vec(&objects.ask(call.into())).unwrap();
            assert_eq!(log_reply(&call, &bytes), Some(Log.execute(&mut log, &call)));
        }
        let mut other = Objects::default();
        other.restore(&objects.snapshot().unwrap()).unwrap();
        assert_eq!(other, objects);
        objects.ask(Ask::Forget { below: 4 });
        objects.ask(Ask::Write { key: 3, value: 1 });
        assert_eq!(objects, Objects { forgotten: 4, ..Objects::default() });
    }
}
