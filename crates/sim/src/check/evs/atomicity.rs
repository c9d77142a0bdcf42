//! Specification 4, failure atomicity: those who go on together have delivered the same.
//!
//! Moser, Amir, Melliar-Smith, Agarwal, *Extended Virtual Synchrony*, specification 4 (the virtual synchrony of
//! Birman and Joseph, between members of one transitional configuration): two processes that go together from one
//! configuration to the next deliver the same set of messages in the first. Here the same list: order is compared at once.

use wire::{Member, RingId};

use super::{Delivered, Verdict, demand};
use crate::check::hashed::HashMap;
use crate::trace::mix;

const PROPERTY: &str = "failure atomicity";

/// What each life delivered since its last regular configuration, as a hash.
#[derive(Default)]
pub struct Atomicity {
    lives: HashMap<Member, Life>,
    /// Those who went from a ring to the same next one: what they delivered, and who was the first.
    passages: HashMap<(RingId, RingId), (u64, usize, Member)>,
}

#[derive(Default)]
struct Life {
    ring: Option<RingId>,
    together: Vec<Member>,
    history: u64,
    count: usize,
}

impl Atomicity {
    /// A node is in a transitional configuration.
    pub fn transitional(&mut self, by: Member, members: &[Member]) {
        self.lives.entry(by).or_default().together = members.to_vec();
    }

    /// A node delivers a message.
    pub fn delivered(&mut self, delivered: &Delivered) {
        let Delivered { by, message, .. } = *delivered;
        let life = self.lives.entry(by).or_default();
        let place = mix(message.1, u64::from(message.0.node.0));
        life.history = mix(life.history, mix(place, message.0.incarnation.0));
        life.count += 1;
    }

    /// A node is in a regular configuration.
    pub fn regular(&mut self, by: Member, ring: RingId) -> Verdict {
        let life = self.lives.entry(by).or_default();
        let (history, count) = (std::mem::take(&mut life.history), std::mem::take(&mut life.count));
        let Some(old) = life.ring.replace(ring) else { return Ok(()) };
        let first = self.passages.entry((old, ring)).or_insert((history, count, by));
        let (their, number, who) = *first;
        let same = their == history || !life.together.contains(&who);
        demand(same, PROPERTY, || {
            format!(
                "{by} and {who} go on together from {old} to {ring}, with {count} and {number} messages that differ"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{RING, delivered, member, ring};
    use super::*;

    #[test]
    fn those_who_go_on_together_deliver_the_same() {
        let mut atomicity = Atomicity::default();
        for node in [1, 2, 3] {
            atomicity.regular(member(node), RING).unwrap();
        }
        atomicity.delivered(&delivered(1, (1, 1), 1));
        atomicity.delivered(&delivered(3, (1, 1), 1));
        for node in [1, 2, 3] {
            atomicity.transitional(member(node), &[member(1), member(2), member(3)]);
        }
        atomicity.regular(member(1), ring(5)).unwrap();
        atomicity.regular(member(3), ring(5)).unwrap();
        assert!(atomicity.regular(member(2), ring(5)).is_err());
    }
}
