//! A call is answered as often as it is asked, and no more: where a deputy answers, the primary does not.
//!
//! Source: docs/protocol/group.md, "Deputies". Two may answer what was asked once if a view or a configuration came meanwhile:
//! whoever then answers cannot know that the other has.

use super::hashed::HashMap;

use super::replies::CallKey;
use super::{Verdict, demand};

const PROPERTY: &str = "one answer for each request";

#[derive(Default)]
struct Tally {
    asked: u64,
    answered: u64,
    /// Changes before it was asked first.
    before: u64,
}

/// Requests and answers, as they leave.
#[derive(Default)]
pub struct Answers {
    calls: HashMap<CallKey, Tally>,
    changes: u64,
}

impl Answers {
    /// A view or a configuration is installed somewhere.
    pub fn changed(&mut self) {
        self.changes += 1;
    }

    /// A client's request leaves, for the first time or again.
    pub fn asked(&mut self, call: CallKey) {
        let fresh = Tally { before: self.changes, ..Tally::default() };
        self.calls.entry(call).or_insert(fresh).asked += 1;
    }

    /// A result leaves.
    pub fn answered(&mut self, call: CallKey) -> Verdict {
        let tally = self.calls.entry(call).or_default();
        tally.answered += 1;
        let Tally { asked, answered, before } = *tally;
        demand(answered <= asked || before < self.changes, PROPERTY, || {
            format!("{call:?} was asked {asked} times, and answered {answered} times")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{ClientId, GroupId};

    #[test]
    fn a_second_answer_to_one_request_is_seen_unless_something_changed() {
        let mut answers = Answers::default();
        let call = (GroupId(1), ClientId(2), 3);
        answers.changed();
        answers.asked(call);
        answers.answered(call).unwrap();
        assert!(answers.answered(call).is_err());
        answers.asked(call);
        answers.asked(call);
        answers.answered(call).unwrap();
        assert!(answers.answered(call).is_err());
        answers.changed();
        answers.answered(call).unwrap();
    }
}
