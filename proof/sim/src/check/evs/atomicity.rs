//! Specification 4, failure atomicity: those who go on together have delivered the same.
//!
//! Moser, Amir, Melliar-Smith, Agarwal, *Extended Virtual Synchrony*, specification 4 (the virtual
//! synchrony of Birman and Joseph, between members of one transitional configuration): two
//! processes that go together from one configuration to the next deliver the same set of messages
//! in the first. Here the same list: order is compared at once; and twice, since a transitional
//! configuration is a configuration too: from the regular one to it, and from it to the next.

use wire::{Member, RingId};

use super::{Delivered, Verdict, demand};
use crate::check::hashed::HashMap;
use crate::trace::mix;

const PROPERTY: &str = "failure atomicity";

/// A hash of each life's deliveries since its last regular configuration.
#[derive(Clone, Default)]
pub struct Atomicity {
    lives: HashMap<Member, Life>,
    /// Lives that went from a ring to the same next one: their deliveries, and the first of them.
    passages: HashMap<(RingId, RingId), (Told, Told, Member)>,
}

#[derive(Clone, Default)]
struct Life {
    ring: Option<RingId>,
    together: Vec<Member>,
    /// Up to the transitional configuration, and in all.
    regular: Told,
    all: Told,
}

/// Deliveries: their hash and their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    history: u64,
    count: usize,
}

impl Atomicity {
    /// A node is in a transitional configuration.
    pub fn transitional(&mut self, by: Member, members: &[Member]) {
        let life = self.lives.entry(by).or_default();
        life.together = members.to_vec();
        life.regular = life.all;
    }

    /// A node delivers a message.
    pub fn delivered(&mut self, delivered: &Delivered) {
        let Delivered { by, message, .. } = *delivered;
        let life = self.lives.entry(by).or_default();
        let place = mix(message.1, u64::from(message.0.node.0));
        life.all.history = mix(life.all.history, mix(place, message.0.incarnation.0));
        life.all.count += 1;
    }

    /// A node is in a regular configuration.
    pub fn regular(&mut self, by: Member, ring: RingId) -> Verdict {
        let life = self.lives.entry(by).or_default();
        let (regular, all) = (std::mem::take(&mut life.regular), std::mem::take(&mut life.all));
        let Some(old) = life.ring.replace(ring) else { return Ok(()) };
        let first = self.passages.entry((old, ring)).or_insert((regular, all, by));
        let (their_regular, their_all, who) = *first;
        if !life.together.contains(&who) {
            return Ok(());
        }
        for (where_, mine, theirs) in
            [("", all, their_all), ("the regular configuration of ", regular, their_regular)]
        {
            demand(mine == theirs, PROPERTY, || {
                let (mine, theirs) = (mine.count, theirs.count);
                format!(
                    "{by} and {who} go on together from {old} to {ring}; in {where_}the first they delivered {mine} and {theirs} \
                     messages that differ"
                )
            })?;
        }
        Ok(())
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

    #[test]
    fn the_line_before_the_transitional_configuration_is_the_same_for_all() {
        let mut atomicity = Atomicity::default();
        let together = [member(1), member(2)];
        for node in [1, 2] {
            atomicity.regular(member(node), RING).unwrap();
        }
        atomicity.delivered(&delivered(1, (1, 1), 1));
        atomicity.transitional(member(1), &together);
        atomicity.transitional(member(2), &together);
        atomicity.delivered(&delivered(2, (1, 1), 1));
        atomicity.regular(member(1), ring(5)).unwrap();
        assert!(atomicity.regular(member(2), ring(5)).is_err());
    }
}
