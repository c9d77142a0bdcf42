//! Specification 6, agreed delivery: one order of messages, and no holes but those that a
//! transitional configuration excuses.
//!
//! Moser, Amir, Melliar-Smith, Agarwal, *Extended Virtual Synchrony*, specifications 6.1 to 6.3; Y.
//! Amir et al., *The Totem Single-Ring Ordering and Membership Protocol*, TOCS 1995 (agreed order);
//! docs/protocol/ring.md, "Ordering". A message's place is its ring, its sequence number there, and
//! (several share a datagram, whose sender is one) its sender's count. A member that delivers a
//! message in a transitional configuration has delivered all before it that members of that
//! configuration sent (6.3).

use std::collections::BTreeMap;

use wire::{Member, RingId};

use super::{Delivered, MessageId, Verdict, demand};
use crate::check::hashed::{HashMap, HashSet};

const PROPERTY: &str = "total order";

/// Everything delivered anywhere.
#[derive(Clone, Default)]
pub struct Total {
    place: HashMap<MessageId, (RingId, u64)>,
    rings: HashMap<RingId, BTreeMap<(u64, u64), Member>>,
    at: HashMap<(Member, RingId), At>,
}

/// How far a node is in a ring.
#[derive(Clone, Default)]
struct At {
    last: (u64, u64),
    contiguous: u64,
    delivered: u64,
    /// Its transitional configuration, and what it delivered there.
    together: Vec<Member>,
    late: HashSet<(u64, u64)>,
}

impl Total {
    /// A node delivers a message.
    pub fn delivered(&mut self, delivered: &Delivered) -> Verdict {
        let Delivered { by, message, ring, sequence, contiguous, .. } = *delivered;
        let place = *self.place.entry(message).or_insert((ring, sequence));
        demand(place == (ring, sequence), PROPERTY, || {
            format!("{by} delivers {message:?} as {ring} #{sequence}, another as {place:?}")
        })?;
        let (sender, count) = message;
        let ordered = self.rings.entry(ring).or_default();
        let mut same = ordered.range((sequence, 0)..=(sequence, u64::MAX));
        let other = same.next().map_or(sender, |(_, other)| *other);
        demand(other == sender, PROPERTY, || {
            format!("{by} delivers {ring} #{sequence} from {sender}, another from {other}")
        })?;
        ordered.insert((sequence, count), sender);
        let at = self.at.entry((by, ring)).or_default();
        demand(at.last < (sequence, count), PROPERTY, || {
            format!("{by} delivers {ring} #{sequence} ({message:?}) after {:?}", at.last)
        })?;
        at.last = (sequence, count);
        if contiguous {
            at.contiguous = sequence;
            at.delivered += 1;
        } else {
            at.late.insert((sequence, count));
        }
        Ok(())
    }

    /// A node goes on from a ring together with these.
    pub fn transitional(&mut self, by: Member, ring: RingId, members: &[Member]) {
        self.at.entry((by, ring)).or_default().together = members.to_vec();
    }

    /// Up to which sequence number this node has delivered the ring without a gap.
    pub fn reached(&self, by: Member, ring: RingId) -> u64 {
        self.at.get(&(by, ring)).map_or(0, |at| at.contiguous)
    }

    /// How many messages anybody delivered in this ring after `from` and up to `to`.
    pub fn between(&self, ring: RingId, from: u64, to: u64) -> usize {
        let ordered = self.rings.get(&ring);
        ordered.map_or(0, |ordered| ordered.range((from + 1, 0)..=(to, u64::MAX)).count())
    }

    /// At the end: a member that delivered without a gap has the same as all others, up to there;
    /// and over a gap, all messages that its companions sent.
    pub fn finish(&self) -> Verdict {
        let none = BTreeMap::new();
        for (&(by, ring), at) in &self.at {
            let ordered = self.rings.get(&ring).unwrap_or(&none);
            let due = ordered.range(..=(at.contiguous, u64::MAX)).count() as u64;
            demand(due == at.delivered, PROPERTY, || {
                let (upto, had) = (at.contiguous, at.delivered);
                format!("{by} delivered {had} of {due} messages of {ring} up to #{upto}")
            })?;
            if at.late.is_empty() {
                continue;
            }
            let mut skipped = ordered
                .range(..at.last)
                .filter(|(place, _)| place.0 > at.contiguous && !at.late.contains(place))
                .filter(|(_, sender)| at.together.contains(sender));
            let hole = skipped.next();
            demand(hole.is_none(), PROPERTY, || {
                format!(
                    "{by} delivers {ring} #{} and not {hole:?} of one who goes with it",
                    at.last.0
                )
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{RING, delivered, member};
    use super::*;

    #[test]
    fn two_orders_are_seen() {
        let mut total = Total::default();
        total.delivered(&delivered(1, (3, 1), 1)).unwrap();
        total.delivered(&delivered(1, (3, 2), 2)).unwrap();
        assert!(total.delivered(&delivered(2, (3, 2), 1)).is_err());
        assert!(total.delivered(&delivered(2, (4, 1), 1)).is_err());
    }

    #[test]
    fn going_back_is_seen() {
        let mut total = Total::default();
        total.delivered(&delivered(1, (3, 2), 2)).unwrap();
        assert!(total.delivered(&delivered(1, (3, 1), 1)).is_err());
        assert!(total.delivered(&delivered(1, (3, 2), 2)).is_err());
    }

    #[test]
    fn a_hidden_gap_is_seen_at_the_end() {
        let mut total = Total::default();
        for sequence in 1..=3 {
            total.delivered(&delivered(1, (3, sequence), sequence)).unwrap();
        }
        total.delivered(&delivered(2, (3, 1), 1)).unwrap();
        assert!(total.finish().is_ok());
        total.delivered(&delivered(2, (3, 3), 3)).unwrap();
        assert!(total.finish().is_err());
    }

    #[test]
    fn over_a_gap_nothing_of_a_companion_is_left_out() {
        let mut total = Total::default();
        for (sender, sequence) in [(3, 1), (4, 2), (2, 3), (2, 4)] {
            total.delivered(&delivered(1, (sender, sequence), sequence)).unwrap();
        }
        total.transitional(member(2), RING, &[member(2), member(4)]);
        let late = |sender, sequence| Delivered {
            contiguous: false,
            ..delivered(2, (sender, sequence), sequence)
        };
        total.delivered(&late(2, 3)).unwrap();
        assert!(total.finish().is_err(), "the 2nd is of a member that goes with it");
        let mut total = Total::default();
        for (sender, sequence) in [(3, 1), (4, 2), (2, 3)] {
            total.delivered(&delivered(1, (sender, sequence), sequence)).unwrap();
        }
        total.transitional(member(2), RING, &[member(2), member(4)]);
        total.delivered(&late(4, 2)).unwrap();
        total.delivered(&late(2, 3)).unwrap();
        assert!(total.finish().is_ok(), "the 1st is of one that is gone");
    }
}
