//! A replica that is cut off answers stale reads whose bound allows it.
//!
//! Source: docs/protocol/group.md, "Reads". When a run is over and all is quiet, every replica knows
//! all that was answered, and that it is held. Then a node is cut off, and asked.

use wire::client::Outcome;
use wire::{GroupId, Member};

use super::{Verdict, demand};

const PROPERTY: &str = "stale reads without a quorum";

/// The reads that a node that was cut off was asked for, and what it has answered.
#[derive(Clone, Debug, Default)]
pub struct Alone {
    asked: Vec<GroupId>,
    answered: Vec<(GroupId, Outcome)>,
}

impl Alone {
    /// It is asked for a read of this group.
    pub fn asked(&mut self, group: GroupId) {
        self.asked.push(group);
    }

    /// It answers.
    pub fn answered(&mut self, group: GroupId, outcome: &Outcome) {
        self.answered.push((group, outcome.clone()));
    }

    /// By now it has answered all.
    pub fn finish(&self, by: Member) -> Verdict {
        for group in &self.asked {
            let outcome = self.answered.iter().find(|(answered, _)| answered == group);
            let outcome = outcome.map(|(_, outcome)| outcome);
            // A world may let one call wait at a time, and a client's may wait there for good.
            let right = matches!(
                outcome,
                Some(Outcome::Ok(_) | Outcome::Service(_) | Outcome::Busy { .. })
            );
            demand(right, PROPERTY, || {
                format!(
                    "{by} is cut off, was asked for a stale read of {group}, and says {outcome:?}"
                )
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    #[test]
    fn who_declines_or_says_nothing_is_seen() {
        let by = Member { node: NodeId(1), incarnation: Incarnation(1) };
        let (one, other) = (GroupId(1), GroupId(2));
        let mut alone = Alone::default();
        alone.finish(by).unwrap();
        alone.asked(one);
        alone.answered(one, &Outcome::Ok("7".into()));
        alone.finish(by).unwrap();
        alone.asked(other);
        alone.finish(by).unwrap_err();
        alone.answered(other, &Outcome::NoReplica);
        alone.finish(by).unwrap_err();
    }
}
