//! Specification 5, causal delivery: no effect without its cause.
//!
//! Moser, Amir, Melliar-Smith, Agarwal, *Extended Virtual Synchrony*, specification 5: if one
//! message was sent in a configuration before another (by the same process, or by one that had
//! delivered the first), and a process delivers the second, then it delivers the first, before it.
//! Without gaps this follows from the one order; over a gap, in a transitional configuration, it
//! has to be looked at.

use wire::{Member, RingId};

use super::total::Total;
use super::{Delivered, MessageId, Verdict, demand};
use crate::check::hashed::HashMap;

const PROPERTY: &str = "causal order";

/// The possible causes of each message, and how far each node is with each sender.
#[derive(Clone, Default)]
pub struct Causal {
    /// The ring that each life is in.
    rings: HashMap<Member, RingId>,
    /// Messages sent: in which ring, and how far their sender had delivered it by then.
    sent: HashMap<MessageId, (RingId, u64)>,
    counts: HashMap<(Member, Member), u64>,
}

impl Causal {
    /// A node is in a regular configuration.
    pub fn regular(&mut self, by: Member, ring: RingId) {
        self.rings.insert(by, ring);
    }

    /// A message is sent.
    pub fn multicast(&mut self, message: MessageId, total: &Total) {
        let ring = self.rings.get(&message.0).copied().unwrap_or_default();
        self.sent.insert(message, (ring, total.reached(message.0, ring)));
    }

    /// A node delivers a message.
    pub fn delivered(&mut self, delivered: &Delivered, total: &Total) -> Verdict {
        let Delivered { by, message, ring, contiguous, .. } = *delivered;
        let count = self.counts.entry((by, message.0)).or_default();
        demand(*count < message.1, PROPERTY, || {
            format!("{by} delivers {message:?} after the {count}th of its sender")
        })?;
        *count = message.1;
        let Some(&(of, upto)) = self.sent.get(&message).filter(|_| !contiguous) else {
            return Ok(());
        };
        let reached = total.reached(by, ring);
        let missed = of == ring && upto > reached && total.between(ring, reached, upto) > 0;
        demand(!missed || by == message.0, PROPERTY, || {
            format!(
                "{by} delivers {message:?}, sent after {ring} #{upto}, and has all to #{reached}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{RING, delivered, member};
    use super::*;

    #[test]
    fn an_effect_without_its_cause_is_seen() {
        let (mut causal, mut total) = (Causal::default(), Total::default());
        causal.regular(member(1), RING);
        causal.multicast((member(1), 1), &total);
        total.delivered(&delivered(1, (3, 1), 1)).unwrap();
        causal.multicast((member(1), 2), &total);
        let answer = |count| Delivered { contiguous: false, ..delivered(2, (1, count), 8 + count) };
        assert!(causal.delivered(&answer(1), &total).is_ok(), "sent before the other was seen");
        assert!(causal.delivered(&answer(2), &total).is_err());
    }

    #[test]
    fn what_one_sender_sends_stays_in_order() {
        let (mut causal, total) = (Causal::default(), Total::default());
        causal.delivered(&delivered(2, (1, 2), 5), &total).unwrap();
        assert!(causal.delivered(&delivered(2, (1, 1), 6), &total).is_err());
    }
}
