//! A message that is reported as held is delivered by the members that are said to hold it.
//!
//! Source: safe delivery, Totem (TOCS 1995) section 3 and EVS specification 7;
//! docs/protocol/ring.md, "Guarantees": *all* is reached by every member, *majority* by more than
//! half of them. Seen from outside: a member that holds a message and does not die delivers it
//! before it leaves the ring. And the obligation set of extended virtual synchrony: if a member
//! that installed a new ring delivered a message, all that recovered with it deliver it, whether
//! they installed that ring or not.

use super::hashed::{HashMap, HashSet};

use wire::{Member, RingId};

use super::evs::MessageId;
use super::evs::total::Total;
use super::{Verdict, demand};

const PROPERTY: &str = "stability";

/// The largest claims about each ring, and how each life left it.
#[derive(Clone, Default)]
pub struct Stability {
    claims: HashMap<RingId, (u64, u64, Vec<Member>)>,
    /// Lives that ended in a ring: they may have held anything.
    ended: HashSet<Member>,
    /// The messages that each life delivered in each ring, and with whom it recovered from it.
    delivered: HashMap<(Member, RingId), HashSet<MessageId>>,
    recovered: HashMap<(Member, RingId), Vec<Member>>,
}

impl Stability {
    /// A regular configuration exists.
    pub fn ring(&mut self, ring: RingId, members: &[Member]) {
        self.claims.entry(ring).or_insert_with(|| (0, 0, members.to_vec()));
    }

    /// Somebody says how far a majority and all of the ring's members have it.
    pub fn held(&mut self, by: Member, ring: RingId, majority: u64, all: u64) -> Verdict {
        let claim = self.claims.get_mut(&ring);
        let Some(claim) = claim else {
            return demand(false, PROPERTY, || format!("{by} speaks of {ring}, which is nobody's"));
        };
        demand(all <= majority, PROPERTY, || {
            format!("{by} says of {ring} that all have #{all} and a majority only #{majority}")
        })?;
        claim.0 = claim.0.max(majority);
        claim.1 = claim.1.max(all);
        Ok(())
    }

    /// A node delivers a message of a ring.
    pub fn delivered(&mut self, by: Member, ring: RingId, message: MessageId) {
        self.delivered.entry((by, ring)).or_default().insert(message);
    }

    /// A node goes on from a ring together with these.
    pub fn recovered(&mut self, by: Member, ring: RingId, members: &[Member]) {
        self.recovered.insert((by, ring), members.to_vec());
    }

    /// At the end: have all who recovered with somebody delivered what that one did?
    fn obligations(&self) -> Verdict {
        for ((by, ring), together) in &self.recovered {
            let Some(mine) = self.delivered.get(&(*by, *ring)) else { continue };
            for other in together.iter().filter(|other| !self.ended.contains(other)) {
                let theirs = self.delivered.get(&(*other, *ring));
                let lacks = |message: &&MessageId| !theirs.is_some_and(|all| all.contains(message));
                let missing = mine.iter().filter(lacks).min();
                demand(missing.is_none(), PROPERTY, || {
                    format!("{by} recovered from {ring} with {other}, which lacks {missing:?}")
                })?;
            }
        }
        Ok(())
    }

    /// A life ended.
    pub fn died(&mut self, member: Member) {
        self.ended.insert(member);
    }

    /// At the end: does what was delivered bear out the claims?
    pub fn finish(&self, order: &Total) -> Verdict {
        for (&ring, (majority, all, members)) in &self.claims {
            let lacks = |member: &Member, upto: u64| {
                let reached = order.reached(*member, ring);
                !self.ended.contains(member)
                    && reached < upto
                    && order.between(ring, reached, upto) > 0
            };
            if let Some(member) = members.iter().find(|member| lacks(member, *all)) {
                return demand(false, PROPERTY, || {
                    format!("all of {ring} were said to have #{all}; {member} did not deliver it")
                });
            }
            let have = members.iter().filter(|member| !lacks(member, *majority)).count();
            demand(2 * have > members.len(), PROPERTY, || {
                format!("a majority of {ring} was said to have #{majority}; {have} delivered it")
            })?;
        }
        self.obligations()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::evs::samples::{RING, delivered, member};

    #[test]
    fn a_forgotten_obligation_is_seen() {
        let mut stability = Stability::default();
        let order = Total::default();
        stability.delivered(member(1), RING, (member(1), 7));
        stability.recovered(member(1), RING, &[member(1), member(2)]);
        assert!(stability.finish(&order).is_err());
        stability.delivered(member(2), RING, (member(1), 7));
        assert!(stability.finish(&order).is_ok());
    }

    #[test]
    fn an_empty_claim_is_seen() {
        let members = [member(1), member(2), member(3)];
        let mut order = Total::default();
        order.delivered(&delivered(1, (1, 1), 5)).unwrap();
        let mut stability = Stability::default();
        stability.ring(RING, &members);
        stability.held(member(1), RING, 4, 4).unwrap();
        assert!(stability.finish(&order).is_ok(), "nothing was delivered up to #4");
        stability.held(member(1), RING, 5, 4).unwrap();
        assert!(stability.finish(&order).is_err(), "one is no majority of three");
        order.delivered(&delivered(2, (1, 1), 5)).unwrap();
        assert!(stability.finish(&order).is_ok());
        stability.held(member(1), RING, 5, 5).unwrap();
        assert!(stability.finish(&order).is_err());
        stability.died(member(3));
        assert!(stability.finish(&order).is_ok(), "the dead may have held it");
        assert!(stability.held(member(1), RING, 5, 6).is_err());
    }
}
