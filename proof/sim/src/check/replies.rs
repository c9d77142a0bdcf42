//! A call has one reply, however often it is retried, and it is the right one.
//!
//! Source: docs/protocol/group.md, "Requests" (the kept reply), design.md, "Exactly once". Right is
//! what the oracle makes of the history and of the arguments that the client sent.

use super::hashed::{HashMap, HashSet};

use wire::client::{Outcome, Refusal};
use wire::{ClientId, GroupId, MethodId};

use super::{Verdict, demand};
use crate::oracle;
use crate::service::{Entry, identity};

const PROPERTY: &str = "replies are right";

/// A call of a client to a group.
pub type CallKey = (GroupId, ClientId, u64);

/// The requests and their answers.
#[derive(Clone, Default)]
pub struct Replies {
    /// More than one where the caller used the number wrongly.
    asked: HashMap<CallKey, Vec<(MethodId, u64)>>,
    /// Those of them that are reads: each answer is of another moment.
    reads: HashSet<CallKey>,
    answered: HashMap<CallKey, Outcome>,
    /// Groups whose reads are in their histories.
    ordering_reads: Vec<GroupId>,
}

/// The service itself said this; other outcomes are of the moment.
pub fn of_the_service(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Ok(_) | Outcome::Service(_) => true,
        Outcome::Refused(refusal, _) => {
            matches!(refusal, Refusal::NoSuchMethod | Refusal::Poisoned)
        }
        Outcome::NotPrimary
        | Outcome::NoSuchGroup
        | Outcome::NoReplica
        | Outcome::Busy { .. }
        | Outcome::Shed { .. }
        | Outcome::Gone => false,
    }
}

impl Replies {
    /// Nothing was asked yet of groups of which these order reads.
    pub fn new(ordering_reads: Vec<GroupId>) -> Self {
        Replies { ordering_reads, ..Replies::default() }
    }

    /// A client's request leaves for the first time or again.
    /// Its caller may have used the number for others (`strays`).
    pub fn asked(
        &mut self,
        call: CallKey,
        method: MethodId,
        body: &[u8],
        (read, strays): (bool, bool),
    ) -> Verdict {
        if read && !self.ordering_reads.contains(&call.0) {
            self.reads.insert(call);
        }
        let asked = (method, identity(method, body));
        let all = self.asked.entry(call).or_default();
        let known = all.contains(&asked);
        if !known {
            all.push(asked);
        }
        demand(strays || all.len() == 1, PROPERTY, || {
            format!("{call:?} is used for two different calls")
        })
    }

    /// A reply of the service leaves.
    pub fn answered(&mut self, call: CallKey, outcome: &Outcome) -> Verdict {
        let asked = self.asked.contains_key(&call);
        demand(asked, PROPERTY, || format!("{call:?} is answered and was never asked"))?;
        if self.reads.contains(&call) {
            return Ok(());
        }
        let first = self.answered.entry(call).or_insert_with(|| outcome.clone());
        demand(first == outcome, PROPERTY, || format!("{call:?} is answered in two ways"))
    }

    /// At the end: every reply is the oracle's, by the group's final history.
    pub fn finish(&self, group: GroupId, history: &[Entry]) -> Verdict {
        for (index, (entry, right)) in
            history.iter().zip(oracle::service::replies(history)).enumerate()
        {
            let call = (group, entry.client, entry.number);
            demand(!self.reads.contains(&call), PROPERTY, || {
                format!("{call:?} is a read, and changed the history of {group}")
            })?;
            let executed = (entry.method, entry.body);
            let asked = self.asked.get(&call);
            demand(asked.is_some_and(|asked| asked.contains(&executed)), PROPERTY, || {
                format!("the {}th of {group}, {call:?}, is not what its client asked", index + 1)
            })?;
            let answer = self.answered.get(&call);
            demand(answer.is_none_or(|answer| *answer == right), PROPERTY, || {
                format!(
                    "{call:?}, the {}th, was answered {answer:?}, right is {right:?}",
                    index + 1
                )
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{APPEND, Call, arguments};
    use wire::Time;

    const GROUP: GroupId = GroupId(1);

    #[test]
    fn a_wrong_a_second_and_an_unasked_reply_are_seen() {
        let body = arguments(3, b"xyz");
        let client = ClientId(4);
        let now = Time(8);
        let call = Call { client, number: 1, now, seed: 2, method: APPEND, body: &body, came: 0 };
        let history = [call.entry()];
        let right = oracle::service::reply(&history, 1);
        let key = (GROUP, client, 1);

        let mut replies = Replies::default();
        assert!(replies.answered(key, &right).is_err(), "not asked");
        replies.asked(key, APPEND, &body, (false, false)).unwrap();
        assert!(replies.asked(key, APPEND, b"other", (false, false)).is_err());
        replies.answered(key, &right).unwrap();
        assert!(replies.finish(GROUP, &history).is_ok());
        assert!(replies.answered(key, &Outcome::Ok(body.clone())).is_err());

        let mut replies = Replies::default();
        replies.asked(key, APPEND, &body, (false, false)).unwrap();
        replies.answered(key, &Outcome::Ok(body.clone())).unwrap();
        assert!(replies.finish(GROUP, &history).is_err(), "wrong bytes");

        let mut replies = Replies::default();
        replies.asked(key, APPEND, b"something else", (false, false)).unwrap();
        assert!(replies.finish(GROUP, &history).is_err(), "executed other arguments");

        let mut replies = Replies::default();
        replies.asked(key, APPEND, &body, (true, false)).unwrap();
        replies.answered(key, &right).unwrap();
        assert!(replies.answered(key, &Outcome::Ok(body.clone())).is_ok(), "at another moment");
        assert!(replies.finish(GROUP, &history).is_err(), "a read that changes the history");
    }
}
