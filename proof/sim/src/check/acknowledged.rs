//! No acknowledged request is lost.
//!
//! Source: docs/protocol/group.md, "Why no acknowledged request is lost". A reply names its place
//! in the history and the history's hash up to there, so all replies that ever left must lie on one
//! history, and the replicas at the end must have all of it.

use super::hashed::HashMap;

use wire::GroupId;

use super::{Verdict, demand};
use crate::service::{Entry, extend};

const PROPERTY: &str = "no acknowledged request is lost";

/// The histories seen, as a tree of hashes, and the branch that was acknowledged.
#[derive(Clone, Default)]
pub struct Acknowledged {
    parents: HashMap<(GroupId, u64), u64>,
    branches: HashMap<GroupId, Vec<u64>>,
}

impl Acknowledged {
    /// A replica's history went on from the hash `before` to `after`.
    pub fn executed(&mut self, group: GroupId, before: u64, after: u64) {
        self.parents.insert((group, after), before);
    }

    /// A reply left: place in the history (from 1) and hash up to there.
    pub fn replied(&mut self, group: GroupId, place: u64, hash: u64) -> Verdict {
        let branch = self.branches.entry(group).or_default();
        let place = place as usize;
        if place == 0 {
            return Ok(()); // a read of what nobody has written to
        }
        if let Some(known) = branch.get(place.wrapping_sub(1)) {
            return demand(*known == hash, PROPERTY, || {
                format!("{group}: two different requests were acknowledged as the {place}th")
            });
        }
        let mut tail = vec![hash];
        while branch.len() + tail.len() < place {
            let last = *tail.last().expect("never empty");
            let Some(&before) = self.parents.get(&(group, last)) else {
                return demand(false, PROPERTY, || {
                    format!("{group}: the {place}th was answered, and no replica executed it")
                });
            };
            tail.push(before);
        }
        let root = self.parents.get(&(group, *tail.last().expect("never empty")));
        let joined = root == Some(&branch.last().copied().unwrap_or(0));
        demand(joined, PROPERTY, || {
            let known = branch.len();
            format!(
                "{group}: the {place}th was answered by a history without the {known} acknowledged"
            )
        })?;
        branch.extend(tail.into_iter().rev());
        Ok(())
    }

    /// How many places of this group's history are known to be acknowledged.
    pub fn count(&self, group: GroupId) -> usize {
        self.branches.get(&group).map_or(0, Vec::len)
    }

    /// At the end: this replica, which has the group's state, has all that was acknowledged.
    pub fn finish(&self, group: GroupId, history: &[Entry]) -> Verdict {
        let branch = self.branches.get(&group).map_or(&[][..], Vec::as_slice);
        demand(branch.len() <= history.len(), PROPERTY, || {
            let (acknowledged, kept) = (branch.len(), history.len());
            format!("{group}: {acknowledged} were acknowledged, {kept} are left")
        })?;
        let mut hash = 0;
        for (place, (entry, known)) in history.iter().zip(branch).enumerate() {
            hash = extend(hash, entry);
            demand(hash == *known, PROPERTY, || {
                let Entry { client, number, .. } = entry;
                format!(
                    "{group}: the {}th is now {client} {number}, another was acknowledged",
                    place + 1
                )
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{ClientId, MethodId, Time};

    const GROUP: GroupId = GroupId(1);

    fn entry(number: u64) -> Entry {
        let time = Time(number);
        let method = MethodId(1);
        Entry { client: ClientId(1), number, time, random: 0, method, body: 0, filling: 0, came: 0 }
    }

    fn told(history: &[Entry]) -> (Acknowledged, Vec<u64>) {
        let mut checker = Acknowledged::default();
        let mut hashes = vec![0];
        for entry in history {
            let before = *hashes.last().unwrap();
            hashes.push(extend(before, entry));
            checker.executed(GROUP, before, *hashes.last().unwrap());
        }
        (checker, hashes)
    }

    #[test]
    fn a_lost_and_a_replaced_request_are_seen() {
        let history = [entry(1), entry(2), entry(3)];
        let (mut checker, hashes) = told(&history);
        checker.replied(GROUP, 3, hashes[3]).unwrap();
        checker.replied(GROUP, 1, hashes[1]).unwrap();
        assert_eq!(checker.count(GROUP), 3);
        assert!(checker.finish(GROUP, &history).is_ok());
        assert!(checker.finish(GROUP, &history[..2]).is_err());
        assert!(checker.finish(GROUP, &[entry(1), entry(3), entry(2)]).is_err());
    }

    #[test]
    fn a_reply_from_another_branch_is_seen() {
        let (mut checker, hashes) = told(&[entry(1), entry(2)]);
        checker.replied(GROUP, 2, hashes[2]).unwrap();
        let other = extend(hashes[1], &entry(7));
        let beyond = extend(other, &entry(8));
        checker.executed(GROUP, hashes[1], other);
        checker.executed(GROUP, other, beyond);
        assert!(checker.replied(GROUP, 2, other).is_err());
        assert!(checker.replied(GROUP, 3, beyond).is_err());
        assert!(checker.replied(GROUP, 4, 99).is_err(), "nobody executed it");
    }
}
