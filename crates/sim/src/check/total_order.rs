//! All nodes deliver messages in one order, without gaps.
//!
//! Source: Y. Amir et al., *The Totem Single-Ring Ordering and Membership Protocol*, TOCS 1995, section 3
//! (total ordering, "reliable delivery"); docs/protocol/ring.md, "Ordering". A message's place is its ring, its
//! sequence number there, and (several share a datagram, whose sender is one) its sender's count.

use std::collections::BTreeMap;

use crate::hashed::HashMap;

use wire::{Member, RingId};

use super::{Verdict, demand};

const PROPERTY: &str = "total order";

/// A message of the simulation: who multicast it, and which of its messages it is.
pub type MessageId = (Member, u64);

/// Everything delivered anywhere.
#[derive(Default)]
pub struct TotalOrder {
    place: HashMap<MessageId, (RingId, u64)>,
    rings: HashMap<RingId, BTreeMap<u64, (Member, u64)>>,
    at: HashMap<(Member, RingId), At>,
}

/// How far a node is in a ring.
#[derive(Clone, Copy, Default)]
struct At {
    last: (u64, u64),
    contiguous: u64,
    delivered: u64,
}

impl TotalOrder {
    /// `by` delivers `message` as `sequence` of `ring`.
    pub fn delivered(
        &mut self,
        by: Member,
        message: MessageId,
        (ring, sequence): (RingId, u64),
        contiguous: bool,
    ) -> Verdict {
        let place = *self.place.entry(message).or_insert((ring, sequence));
        demand(place == (ring, sequence), PROPERTY, || {
            format!("{by} delivers {message:?} as {ring} #{sequence}, another as {place:?}")
        })?;
        let (sender, count) = message;
        let slot = self.rings.entry(ring).or_default().entry(sequence).or_insert((sender, 0));
        demand(slot.0 == sender, PROPERTY, || {
            format!("{by} delivers {ring} #{sequence} from {sender}, another from {}", slot.0)
        })?;
        let at = self.at.entry((by, ring)).or_default();
        demand(at.last < (sequence, count), PROPERTY, || {
            format!("{by} delivers {ring} #{sequence} ({message:?}) after {:?}", at.last)
        })?;
        at.last = (sequence, count);
        if contiguous {
            at.contiguous = sequence;
            at.delivered += 1;
        }
        Ok(())
    }

    /// `by` delivers a message over a gap: nothing that its sender had delivered before may be in the gap.
    pub fn over_gap(&self, by: Member, message: MessageId, cause: (RingId, u64)) -> Verdict {
        let (ring, upto) = cause;
        let reached = self.reached(by, ring);
        let missed = upto > reached && self.between(ring, reached, upto) > 0;
        demand(!missed || by == message.0, "causal order", || {
            format!(
                "{by} delivers {message:?}, sent after {ring} #{upto}, and has all to #{reached}"
            )
        })
    }

    /// Up to which sequence number this node has delivered the ring without a gap.
    pub fn reached(&self, by: Member, ring: RingId) -> u64 {
        self.at.get(&(by, ring)).map_or(0, |at| at.contiguous)
    }

    /// How many messages anybody delivered in this ring after `from` and up to `to`.
    pub fn between(&self, ring: RingId, from: u64, to: u64) -> usize {
        let messages = self
            .place
            .values()
            .filter(|&&(of, sequence)| of == ring && from < sequence && sequence <= to);
        messages.count()
    }

    /// At the end: whoever delivered without a gap has what all others have, up to there.
    pub fn finish(&self) -> Verdict {
        let mut places: HashMap<RingId, Vec<u64>> = HashMap::default();
        for &(ring, sequence) in self.place.values() {
            places.entry(ring).or_default().push(sequence);
        }
        for sequences in places.values_mut() {
            sequences.sort_unstable();
        }
        for (&(by, ring), at) in &self.at {
            let all = places.get(&ring).map_or(&[][..], Vec::as_slice);
            let due = all.partition_point(|&sequence| sequence <= at.contiguous) as u64;
            demand(due == at.delivered, PROPERTY, || {
                let (upto, had) = (at.contiguous, at.delivered);
                format!("{by} delivered {had} of {due} messages of {ring} up to #{upto}")
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    const RING: RingId = RingId { sequence: 4, representative: NodeId(1) };

    #[test]
    fn two_orders_are_seen() {
        let mut order = TotalOrder::default();
        order.delivered(member(1), (member(3), 1), (RING, 1), true).unwrap();
        order.delivered(member(1), (member(3), 2), (RING, 2), true).unwrap();
        assert!(order.delivered(member(2), (member(3), 2), (RING, 1), true).is_err());
        assert!(order.delivered(member(2), (member(4), 1), (RING, 1), true).is_err());
    }

    #[test]
    fn going_back_is_seen() {
        let mut order = TotalOrder::default();
        order.delivered(member(1), (member(3), 2), (RING, 2), true).unwrap();
        assert!(order.delivered(member(1), (member(3), 1), (RING, 1), true).is_err());
        assert!(order.delivered(member(1), (member(3), 2), (RING, 2), true).is_err());
    }

    #[test]
    fn an_effect_without_its_cause_is_seen() {
        let mut order = TotalOrder::default();
        order.delivered(member(1), (member(3), 1), (RING, 1), true).unwrap();
        let answer = (member(1), 1);
        assert!(order.over_gap(member(2), answer, (RING, 1)).is_err());
        assert!(order.over_gap(member(2), answer, (RING, 0)).is_ok());
        order.delivered(member(2), (member(3), 1), (RING, 1), true).unwrap();
        assert!(order.over_gap(member(2), answer, (RING, 1)).is_ok());
    }

    #[test]
    fn a_hidden_gap_is_seen_at_the_end() {
        let mut order = TotalOrder::default();
        for sequence in 1..=3 {
            order.delivered(member(1), (member(3), sequence), (RING, sequence), true).unwrap();
        }
        order.delivered(member(2), (member(3), 1), (RING, 1), true).unwrap();
        assert!(order.finish().is_ok());
        order.delivered(member(2), (member(3), 3), (RING, 3), true).unwrap();
        assert!(order.finish().is_err());
    }
}
