//! No healthy node is excluded, and a silent node is excluded in time.
//!
//! Source: docs/protocol/ring.md, "Failure detection" ("The bounds":
//! [`ring::Timing::silent_host`]). While nothing is wrong no configuration changes; a time after a
//! host has fallen silent all others are in one ring, of all others and nobody else.

use wire::{Duration, Member};

use super::hashed::HashMap;
use super::{Verdict, demand};

const PROPERTY: &str = "failure detection";

/// The last regular configuration of each life.
#[derive(Clone, Default)]
pub struct Detection {
    latest: HashMap<Member, Vec<Member>>,
    steady: bool,
    undisturbed: bool,
    slow: Option<Member>,
}

impl Detection {
    /// From now on nothing is wrong, and all are in one ring; or that is over.
    pub fn steady(&mut self, steady: bool) {
        self.steady = steady;
    }

    /// From now on no process is stopped.
    pub fn undisturbed(&mut self) {
        self.undisturbed = true;
    }

    /// From now on this one, and nobody else, does not keep up.
    pub fn slow(&mut self, member: Member) {
        self.slow = Some(member);
    }

    /// A member was left out because it did not keep up, says a node.
    pub fn too_slow(&self, by: Member, member: Member) -> Verdict {
        demand(!self.undisturbed || self.slow == Some(member), PROPERTY, || {
            format!("{by} leaves {member} out as slow, and nothing slowed it down")
        })
    }

    /// A node says that it was held up, and distrusts itself.
    pub fn held_up(&self, by: Member, span: Duration) -> Verdict {
        demand(!self.undisturbed, PROPERTY, || {
            format!("{by} says that it was held up for {span:?}, and nothing stopped it")
        })
    }

    /// A node delivers a regular configuration.
    pub fn configured(&mut self, by: Member, members: &[Member]) -> Verdict {
        demand(!self.steady, PROPERTY, || {
            format!("{by} goes to a ring of {members:?}, and nothing was wrong")
        })?;
        self.latest.insert(by, members.to_vec());
        Ok(())
    }

    /// Somebody has been silent for as long as the bound says: these are the others.
    pub fn due(&self, others: &[Member], bound: Duration) -> Verdict {
        let elsewhere =
            |member: &&Member| self.latest.get(member).map(Vec::as_slice) != Some(others);
        let late = others.iter().find(elsewhere);
        demand(late.is_none(), PROPERTY, || {
            let ring = late.and_then(|late| self.latest.get(late));
            format!(
                "{late:?} is in a ring of {ring:?}, {bound:?} after all but {others:?} fell silent"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::evs::samples::member;

    #[test]
    fn who_stays_and_who_is_left_out_for_nothing_are_seen() {
        let (one, two, three) = (member(1), member(2), member(3));
        let bound = Duration::from_millis(84);
        let mut detection = Detection::default();
        for by in [one, two, three] {
            detection.configured(by, &[one, two, three]).unwrap();
        }
        assert!(detection.due(&[one, two], bound).is_err(), "it is still there");
        detection.configured(one, &[one, two]).unwrap();
        assert!(detection.due(&[one, two], bound).is_err(), "it is there for the other");
        detection.configured(two, &[one, two]).unwrap();
        assert!(detection.due(&[one, two], bound).is_ok());
        assert!(detection.held_up(one, bound).is_ok());
        detection.undisturbed();
        assert!(detection.held_up(one, bound).is_err());
        assert!(detection.too_slow(one, two).is_err());
        detection.slow(two);
        assert!(detection.too_slow(one, two).is_ok());
        detection.steady(true);
        assert!(detection.configured(two, &[two]).is_err(), "nothing was wrong");
    }
}
