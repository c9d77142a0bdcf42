//! Extended virtual synchrony: what is delivered in which configuration.
//!
//! Source: L. E. Moser, Y. Amir, P. M. Melliar-Smith, D. A. Agarwal, *Extended Virtual Synchrony*, ICDCS 1994,
//! section 3 (specifications 1 basic delivery, 2 configuration changes, 3 self-delivery, 4 failure
//! atomicity, 5 causal delivery within one sender); docs/protocol/ring.md, "Installation".

use crate::hashed::{HashMap, HashSet};

use ring::{Configuration, ConfigurationKind};
use wire::{Member, RingId};

use super::total_order::MessageId;
use super::{Verdict, demand};
use crate::trace::mix;

const PROPERTY: &str = "extended virtual synchrony";

/// All lives and what they were told.
#[derive(Default)]
pub struct Configurations {
    lives: HashMap<Member, Life>,
    members: HashMap<RingId, Vec<Member>>,
    /// What those delivered in a ring who went on from it to the same next one.
    passages: HashMap<(RingId, RingId), (Vec<Member>, u64, Member)>,
    /// Messages multicast, and how far in which ring their sender had delivered by then.
    sent: HashMap<MessageId, (RingId, u64)>,
}

#[derive(Default)]
struct Life {
    ring: Option<RingId>,
    transitional: Option<Vec<Member>>,
    /// A hash over what was delivered since the last regular configuration.
    history: u64,
    delivered: HashSet<MessageId>,
    counts: HashMap<Member, u64>,
    /// Messages that it multicast and did not yet deliver to itself.
    own: HashSet<u64>,
}

impl Configurations {
    /// A node's machine took a message to multicast; it had delivered its ring up to `after`.
    pub fn multicast(&mut self, message: MessageId, after: (RingId, u64)) {
        self.sent.insert(message, after);
        self.lives.entry(message.0).or_default().own.insert(message.1);
    }

    /// A node delivers a configuration.
    pub fn configured(&mut self, by: Member, configuration: &Configuration) -> Verdict {
        let Configuration { kind, ring, members } = configuration;
        let say = |what: &str| format!("{by} is told {configuration:?}: {what}");
        demand(members.contains(&by), PROPERTY, || say("it is not a member"))?;
        let ordered = members.windows(2).all(|pair| pair[0].node < pair[1].node);
        demand(ordered, PROPERTY, || say("out of order"))?;
        match kind {
            ConfigurationKind::Transitional => self.transitional(by, *ring, members, &say),
            ConfigurationKind::Regular => self.regular(by, *ring, members, &say),
        }
    }

    fn transitional(
        &mut self,
        by: Member,
        ring: RingId,
        members: &[Member],
        say: &dyn Fn(&str) -> String,
    ) -> Verdict {
        let life = self.lives.entry(by).or_default();
        demand(life.ring == Some(ring), PROPERTY, || say("it is not of the ring that it was in"))?;
        demand(life.transitional.is_none(), PROPERTY, || say("a second in a row"))?;
        let old = &self.members[&ring];
        let within = members.iter().all(|member| old.contains(member));
        demand(within, PROPERTY, || say("somebody was not in the old ring"))?;
        life.transitional = Some(members.to_vec());
        Ok(())
    }

    fn regular(
        &mut self,
        by: Member,
        ring: RingId,
        members: &[Member],
        say: &dyn Fn(&str) -> String,
    ) -> Verdict {
        let known = self.members.entry(ring).or_insert_with(|| members.to_vec());
        demand(known == members, PROPERTY, || say("another was told other members"))?;
        let life = self.lives.entry(by).or_default();
        let transitional = life.transitional.take();
        if let Some(old) = life.ring.replace(ring) {
            demand(old < ring, PROPERTY, || say("rings go backwards"))?;
            let Some(together) = transitional else {
                return demand(false, PROPERTY, || say("no transitional one before it"));
            };
            let within = together.iter().all(|member| members.contains(member));
            demand(within, PROPERTY, || say("it lost somebody of the transitional one"))?;
            let mine = (together, life.history, by);
            let first = self.passages.entry((old, ring)).or_insert_with(|| mine.clone());
            demand(first.0 == mine.0, PROPERTY, || {
                say(&format!("from {old} with {:?}, {} with {:?}", mine.0, first.2, first.0))
            })?;
            demand(mine.0.contains(&first.2), PROPERTY, || say("they do not go together"))?;
            demand(first.1 == mine.1, PROPERTY, || {
                say(&format!("{} delivered other messages in {old}", first.2))
            })?;
        }
        life.history = 0;
        Ok(())
    }

    /// A node delivers a message of `ring`.
    pub fn delivered(
        &mut self,
        by: Member,
        message: MessageId,
        ring: RingId,
        contiguous: bool,
    ) -> Verdict {
        let say = |what: &str| format!("{by} delivers {message:?} of {ring}: {what}");
        demand(self.sent.contains_key(&message), PROPERTY, || say("nobody sent it"))?;
        let life = self.lives.entry(by).or_default();
        demand(life.ring == Some(ring), PROPERTY, || say("it is in another ring"))?;
        let sender = self.members[&ring].contains(&message.0);
        demand(sender, PROPERTY, || say("its sender was not in the ring"))?;
        let gap_allowed = contiguous || life.transitional.is_some();
        demand(gap_allowed, PROPERTY, || say("a gap in a regular configuration"))?;
        demand(life.delivered.insert(message), PROPERTY, || say("a second time"))?;
        let count = life.counts.entry(message.0).or_default();
        demand(*count < message.1, PROPERTY, || say("after a later one of its sender"))?;
        *count = message.1;
        if by == message.0 {
            life.own.remove(&message.1);
        }
        let place = mix(message.1, u64::from(message.0.node.0));
        life.history = mix(life.history, mix(place, message.0.incarnation.0));
        Ok(())
    }

    /// What a message may be an answer to: the ring in which its sender was, and how far it had delivered.
    pub fn cause(&self, message: MessageId) -> Option<(RingId, u64)> {
        self.sent.get(&message).copied()
    }

    /// At the end, all being well: whoever still lives has delivered what it multicast.
    pub fn finish(&self, alive: &[Member]) -> Verdict {
        for by in alive {
            let left = self.lives.get(by).map_or(0, |life| life.own.len());
            demand(left == 0, PROPERTY, || format!("{by} never delivered {left} of its own"))?;
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

    fn ring(sequence: u64) -> RingId {
        RingId { sequence, representative: NodeId(1) }
    }

    fn configuration(kind: ConfigurationKind, sequence: u64, nodes: &[u32]) -> Configuration {
        let members = nodes.iter().map(|&node| member(node)).collect();
        Configuration { kind, ring: ring(sequence), members }
    }

    use ConfigurationKind::{Regular, Transitional};

    fn two_in_one_ring() -> Configurations {
        let mut evs = Configurations::default();
        for node in [1, 2] {
            evs.configured(member(node), &configuration(Regular, 1, &[1, 2])).unwrap();
        }
        for count in 1..=2 {
            evs.multicast((member(1), count), (ring(1), 0));
        }
        evs
    }

    #[test]
    fn those_who_go_on_together_deliver_the_same() {
        let mut evs = two_in_one_ring();
        evs.delivered(member(1), (member(1), 1), ring(1), true).unwrap();
        for node in [1, 2] {
            evs.configured(member(node), &configuration(Transitional, 1, &[1, 2])).unwrap();
        }
        evs.configured(member(1), &configuration(Regular, 2, &[1, 2])).unwrap();
        assert!(evs.configured(member(2), &configuration(Regular, 2, &[1, 2])).is_err());
    }

    #[test]
    fn members_order_gaps_and_inventions_are_seen() {
        let mut evs = two_in_one_ring();
        assert!(evs.configured(member(3), &configuration(Regular, 1, &[1, 3])).is_err());
        assert!(evs.configured(member(3), &configuration(Regular, 9, &[1, 2])).is_err());
        assert!(evs.configured(member(1), &configuration(Regular, 2, &[1, 2])).is_err());
        let mut evs = two_in_one_ring();
        assert!(evs.delivered(member(2), (member(1), 9), ring(1), true).is_err());
        assert!(evs.delivered(member(2), (member(1), 1), ring(1), false).is_err());
        evs.delivered(member(2), (member(1), 2), ring(1), true).unwrap();
        assert!(evs.delivered(member(2), (member(1), 1), ring(1), true).is_err());
        assert!(evs.finish(&[member(1)]).is_err(), "its own messages did not come back");
    }
}
