//! A call that its caller counts is one call, by however many gateways it is made.
//!
//! Source: `Key` in io/client, docs/protocol/client.md, "Sessions and numbers": replicas execute it at most once and, if any gateway
//! has an answer, once; all gateways have the one answer. No reply that its caller still wants is
//! dropped. A call that was given up is executed before a later one tells so, or never.

use bytes::Bytes;
use client::CallError;
use wire::client::Refusal;
use wire::{ClientId, GroupId, MethodId};

use super::hashed::{HashMap, HashSet};
use super::replies::CallKey;
use super::{Verdict, demand};
use crate::service::Entry;

const PROPERTY: &str = "a counted call is one call";

/// A call, as its caller counts it.
#[derive(Clone)]
struct Counted {
    /// The caller wants no reply to calls below this number.
    unanswered: u64,
    /// Its method and arguments, if no other call of its caller has them.
    identity: Option<Identity>,
    /// It is not in the history, and each answer is of another moment.
    reads: bool,
    answer: Option<Result<Bytes, CallError>>,
    /// Its key may have been used for another call, or its session was forgotten.
    disturbed: bool,
}

/// The method and the arguments of a call.
pub type Identity = (MethodId, u64);

/// How a gateway ends a call.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Its word to the caller.
    pub result: &'a Result<Bytes, CallError>,
    /// The caller waits for the call now.
    pub wanted: bool,
    /// Since the call came to this gateway, its caller has repeated it there, or has given it up.
    pub over: bool,
}

/// The calls of all callers that count them.
#[derive(Clone, Default)]
pub struct Keys {
    calls: HashMap<CallKey, Counted>,
    /// Other calls under the numbers of these.
    strays: HashMap<CallKey, Vec<Identity>>,
    /// Those of them that the service answered.
    answered: HashMap<CallKey, Identity>,
}

impl Keys {
    /// A caller begins a call.
    pub fn begun(
        &mut self,
        call: CallKey,
        unanswered: u64,
        identity: Option<Identity>,
        reads: bool,
    ) {
        let (answer, disturbed) = (None, false);
        self.calls.insert(call, Counted { unanswered, identity, reads, answer, disturbed });
    }

    /// A caller uses the key of a call for another one.
    pub fn strayed(&mut self, call: CallKey, what: Identity) {
        self.strays.entry(call).or_default().push(what);
        self.disturbed(call);
    }

    /// The key of this call may name another, or its session may be forgotten.
    pub fn disturbed(&mut self, call: CallKey) {
        if let Some(counted) = self.calls.get_mut(&call) {
            counted.disturbed = true;
        }
    }

    /// The key of this call is used for others, too.
    pub fn has_strays(&self, call: CallKey) -> bool {
        self.strays.contains_key(&call)
    }

    /// A gateway ends a call that used this key once more: another one, or the same again.
    pub fn stray_ended(
        &mut self,
        call: CallKey,
        other: Option<Identity>,
        result: &Result<Bytes, CallError>,
        binding: bool,
    ) -> Verdict {
        if !binding || !is_of_the_service(result) {
            return Ok(());
        }
        let counted = self.calls.get_mut(&call).expect("a caller has begun it");
        let Some(what) = other else {
            let first = counted.answer.get_or_insert_with(|| result.clone());
            return demand(first == result, PROPERTY, || {
                format!("{call:?} was answered by {first:?}, and long after by {result:?}")
            });
        };
        let first = *self.answered.entry(call).or_insert(what);
        demand(first == what && counted.answer.is_none(), PROPERTY, || {
            format!("{call:?} is one call, and another with its key is answered by {result:?}")
        })
    }

    /// A gateway ends a call. `binding`: the group keeps what it has answered.
    pub fn ended(&mut self, call: CallKey, end: End<'_>, binding: bool) -> Verdict {
        let End { result, wanted, over } = end;
        if matches!(result, Err(CallError::Repeated)) {
            return demand(over, PROPERTY, || {
                format!("a gateway ends {call:?} as repeated, and its caller has not repeated it")
            });
        }
        if let Err(CallError::Refused { refusal: Refusal::Stale | Refusal::Window, reason }) =
            result
        {
            let disturbed = self.calls.get(&call).is_some_and(|counted| counted.disturbed);
            return demand(!wanted || disturbed, PROPERTY, || {
                format!("{call:?} is refused while its caller waits for it: {reason}")
            });
        }
        let counted = self.calls.get_mut(&call).expect("a caller has begun it");
        if let Err(CallError::Refused { refusal: Refusal::KeyReused, reason }) = result {
            return demand(counted.disturbed, PROPERTY, || {
                format!("{call:?} is refused although its key was not used for another: {reason}")
            });
        }
        if counted.reads || !binding || !is_of_the_service(result) {
            return Ok(());
        }
        let first = counted.answer.get_or_insert_with(|| result.clone());
        let other = self.answered.get(&call);
        demand(other.is_none(), PROPERTY, || {
            format!("{call:?} is answered by {result:?}, and another with its key was")
        })?;
        demand(first == result, PROPERTY, || {
            format!("one gateway answers {call:?} by {first:?}, another by {result:?}")
        })
    }

    /// At the end: judges a group's final history.
    pub fn finish(&self, group: GroupId, history: &[Entry]) -> Verdict {
        let mut executed = HashSet::default();
        let mut identities = HashSet::default();
        let mut given_up: HashMap<ClientId, u64> = HashMap::default();
        for entry in history {
            let Entry { client, number, .. } = *entry;
            let Some(counted) = self.calls.get(&(group, client, number)) else {
                let is_counted = self.calls.keys().any(|(_, caller, _)| *caller == client);
                demand(!is_counted, PROPERTY, || {
                    format!("{group} has executed call {number} of {client}, which has none")
                })?;
                continue;
            };
            executed.insert((client, number));
            let (key, what) = ((group, client, number), (entry.method, entry.body));
            let strays = self.strays.get(&key);
            let strayed = strays.is_some_and(|strays| strays.contains(&what));
            if let Some(answered) = self.answered.get(&key) {
                demand(*answered == what, PROPERTY, || {
                    format!("another call than {key:?} was answered, and this one executed")
                })?;
            }
            demand(!strayed || counted.answer.is_none(), PROPERTY, || {
                format!("{key:?} was answered, and another with its key executed")
            })?;
            let identity = counted.identity.filter(|_| !strayed);
            let anew = identity.is_some_and(|what| !identities.insert((client, what)));
            demand(!anew, PROPERTY, || {
                format!("{group} has executed the same call of {client} again, as {number}")
            })?;
            let least = given_up.entry(client).or_default();
            demand(number >= *least, PROPERTY, || {
                format!(
                    "{group} has executed call {number} of {client} after all below {least} were \
                     given up"
                )
            })?;
            *least = counted.unanswered.max(*least);
        }
        let mut answered = self.calls.iter().filter(|(call, counted)| {
            call.0 == group && counted.answer.is_some() && !executed.contains(&(call.1, call.2))
        });
        let lost = answered.next();
        demand(lost.is_none(), PROPERTY, || {
            let call = lost.map(|(call, _)| call).expect("it is");
            format!("{call:?} was answered, and is not in the history")
        })
    }
}

/// The service has executed the call, and said this.
fn is_of_the_service(result: &Result<Bytes, CallError>) -> bool {
    match result {
        Ok(_) | Err(CallError::Service(_)) => true,
        Err(CallError::Refused { refusal, .. }) => *refusal == Refusal::NoSuchMethod,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::APPEND;
    use wire::Time;

    const GROUP: GroupId = GroupId(1);
    const CALLER: ClientId = ClientId(2);

    /// Calls 1 to 4, of which the last two tell that those below 3 are given up.
    fn begun() -> Keys {
        let mut keys = Keys::default();
        for number in 1..=4 {
            let unanswered = if number < 3 { 1 } else { 3 };
            keys.begun((GROUP, CALLER, number), unanswered, Some((APPEND, number)), false);
        }
        keys
    }

    fn history(numbers: &[u64]) -> Vec<Entry> {
        let entry = |number: &u64| Entry {
            client: CALLER,
            number: *number,
            time: Time(0),
            random: 0,
            method: APPEND,
            body: *number,
            filling: 0,
            came: 0,
        };
        numbers.iter().map(entry).collect()
    }

    fn tell(keys: &mut Keys, number: u64, result: &Result<Bytes, CallError>) -> Verdict {
        keys.ended((GROUP, CALLER, number), End { result, wanted: true, over: false }, true)
    }

    #[test]
    fn two_answers_and_a_lost_one_are_seen() {
        let mut keys = begun();
        let [one, other] = [Ok(Bytes::from_static(b"a")), Ok(Bytes::from_static(b"b"))];
        tell(&mut keys, 3, &one).unwrap();
        tell(&mut keys, 3, &one).unwrap();
        assert!(tell(&mut keys, 3, &other).is_err());
        assert!(keys.finish(GROUP, &history(&[1, 3])).is_ok());
        assert!(keys.finish(GROUP, &history(&[1, 4])).is_err(), "3 was answered");
    }

    #[test]
    fn a_call_that_is_executed_anew_or_too_late_or_uncounted_is_seen() {
        let mut keys = begun();
        assert!(keys.finish(GROUP, &history(&[2, 1, 4, 3])).is_ok());
        assert!(keys.finish(GROUP, &history(&[3, 2])).is_err(), "2 was given up");
        assert!(keys.finish(GROUP, &history(&[1, 5])).is_err(), "there is no call 5");
        keys.begun((GROUP, CALLER, 5), 3, Some((APPEND, 4)), false);
        assert!(keys.finish(GROUP, &history(&[4, 5])).is_err(), "4 again");
    }

    #[test]
    fn a_refusal_of_what_is_wanted_and_an_end_without_a_cause_are_seen() {
        let mut keys = begun();
        let stale = Err(CallError::Refused { refusal: Refusal::Stale, reason: String::new() });
        assert!(tell(&mut keys, 2, &stale).is_err());
        let end = End { result: &stale, wanted: false, over: false };
        assert!(keys.ended((GROUP, CALLER, 2), end, true).is_ok());
        assert!(tell(&mut keys, 3, &Err(CallError::Repeated)).is_err());
        let end = End { result: &Err(CallError::Repeated), wanted: true, over: true };
        assert!(keys.ended((GROUP, CALLER, 3), end, true).is_ok());
        assert!(tell(&mut keys, 3, &Err(CallError::DeadlineExceeded)).is_ok());
    }

    #[test]
    fn an_answer_to_another_call_of_the_key_is_seen() {
        const OTHER: Identity = (APPEND, 99);
        let call = (GROUP, CALLER, 3);
        let answer = Ok(Bytes::from_static(b"a"));
        let refused =
            Err(CallError::Refused { refusal: Refusal::KeyReused, reason: String::new() });
        let mut keys = begun();
        assert!(tell(&mut keys, 3, &refused).is_err(), "nobody used its key");
        keys.strayed(call, OTHER);
        assert!(keys.has_strays(call));
        assert!(tell(&mut keys, 3, &refused).is_ok());
        tell(&mut keys, 3, &answer).unwrap();
        assert!(keys.stray_ended(call, Some(OTHER), &refused, true).is_ok());
        assert!(keys.stray_ended(call, None, &answer, true).is_ok());
        let other = Ok(Bytes::from_static(b"b"));
        assert!(keys.stray_ended(call, None, &other, true).is_err(), "not as the first time");
        assert!(keys.finish(GROUP, &history(&[3])).is_ok());
        let mut executed = history(&[3]);
        executed[0].body = OTHER.1;
        assert!(keys.finish(GROUP, &executed).is_err(), "another was answered");
        assert!(keys.stray_ended(call, Some(OTHER), &answer, true).is_err(), "of another");
    }
}
