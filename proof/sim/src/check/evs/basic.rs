//! Specification 1, basic delivery: what is delivered was sent, once, by and to members of the
//! configuration.
//!
//! Moser, Amir, Melliar-Smith, Agarwal, *Extended Virtual Synchrony*, specifications 1.1 to 1.4: a
//! delivery has a sending before it; a message is delivered in a configuration that the receiver is
//! in, and not in two, and not twice. A gap before a message is for transitional configurations
//! only.

use wire::{Member, RingId};

use super::{Delivered, Level, MessageId, Verdict, demand};
use crate::check::hashed::{HashMap, HashSet};

const PROPERTY: &str = "basic delivery";

/// The sent messages, and the ring of each life.
#[derive(Clone, Default)]
pub struct Basic {
    sent: HashMap<MessageId, Level>,
    members: HashMap<RingId, Vec<Member>>,
    lives: HashMap<Member, Life>,
}

#[derive(Clone, Default)]
struct Life {
    ring: Option<RingId>,
    transitional: bool,
    delivered: HashSet<MessageId>,
}

impl Basic {
    /// A message is sent.
    pub fn multicast(&mut self, message: MessageId, level: Level) {
        self.sent.insert(message, level);
    }

    /// A node is in a transitional configuration.
    pub fn transitional(&mut self, by: Member) {
        self.lives.entry(by).or_default().transitional = true;
    }

    /// A node is in a regular configuration.
    pub fn regular(&mut self, by: Member, ring: RingId, members: &[Member]) {
        self.members.entry(ring).or_insert_with(|| members.to_vec());
        let life = self.lives.entry(by).or_default();
        (life.ring, life.transitional) = (Some(ring), false);
    }

    /// A node delivers a message.
    pub fn delivered(&mut self, delivered: &Delivered) -> Verdict {
        let Delivered { by, message, ring, contiguous, level, .. } = *delivered;
        let say = |what: &str| format!("{by} delivers {message:?} of {ring}: {what}");
        let sent = self.sent.get(&message).copied();
        demand(sent.is_some(), PROPERTY, || say("nobody sent it"))?;
        demand(sent == Some(level), PROPERTY, || say("at another level than it was sent at"))?;
        let life = self.lives.entry(by).or_default();
        demand(life.ring == Some(ring), PROPERTY, || say("it is in another ring"))?;
        let sender = self.members[&ring].contains(&message.0);
        demand(sender, PROPERTY, || say("its sender was not in the ring"))?;
        let allowed = contiguous || life.transitional;
        demand(allowed, PROPERTY, || say("a gap in a regular configuration"))?;
        demand(life.delivered.insert(message), PROPERTY, || say("a second time"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{RING, delivered, member, ring};
    use super::*;

    fn two_in_one_ring() -> Basic {
        let mut basic = Basic::default();
        for node in [1, 2] {
            basic.regular(member(node), RING, &[member(1), member(2)]);
        }
        basic.multicast((member(1), 1), Level::Agreed);
        basic
    }

    #[test]
    fn inventions_doubles_and_gaps_are_seen() {
        let mut basic = two_in_one_ring();
        assert!(basic.delivered(&delivered(2, (1, 9), 1)).is_err(), "never sent");
        let safe = Delivered { level: Level::Safe, ..delivered(2, (1, 1), 1) };
        assert!(basic.delivered(&safe).is_err(), "sent as agreed");
        let gap = Delivered { contiguous: false, ..delivered(2, (1, 1), 1) };
        assert!(basic.delivered(&gap).is_err());
        basic.delivered(&delivered(2, (1, 1), 1)).unwrap();
        assert!(basic.delivered(&delivered(2, (1, 1), 2)).is_err(), "twice");
        basic.transitional(member(1));
        assert!(basic.delivered(&Delivered { by: member(1), ..gap }).is_ok());
    }

    #[test]
    fn a_message_of_another_ring_or_of_a_stranger_is_seen() {
        let mut basic = two_in_one_ring();
        let elsewhere = Delivered { ring: ring(9), ..delivered(2, (1, 1), 1) };
        assert!(basic.delivered(&elsewhere).is_err());
        basic.multicast((member(3), 1), Level::Agreed);
        assert!(basic.delivered(&delivered(2, (3, 1), 1)).is_err());
    }
}
