//! Specification 2, delivery of configuration changes: memberships are agreed upon and follow each
//! other.
//!
//! Moser, Amir, Melliar-Smith, Agarwal, *Extended Virtual Synchrony*, specifications 2.1 to 2.4: a
//! node that delivers a configuration is in it; one configuration has one membership; between two
//! regular configurations lies one transitional one, whose members are in both;
//! docs/protocol/ring.md, "Installation".

use ring::{Configuration, ConfigurationKind};
use wire::{Member, RingId};

use super::{Verdict, demand};
use crate::check::hashed::HashMap;

const PROPERTY: &str = "configuration changes";

/// All lives and what they were told.
#[derive(Clone, Default)]
pub struct Configurations {
    lives: HashMap<Member, Life>,
    members: HashMap<RingId, Vec<Member>>,
    /// With whom those went on from a ring to the same next one, and who said so first.
    passages: HashMap<(RingId, RingId), (Vec<Member>, Member)>,
}

#[derive(Clone, Default)]
struct Life {
    ring: Option<RingId>,
    transitional: Option<Vec<Member>>,
}

impl Configurations {
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
        let Some(old) = life.ring.replace(ring) else { return Ok(()) };
        demand(old < ring, PROPERTY, || say("rings go backwards"))?;
        let Some(together) = transitional else {
            return demand(false, PROPERTY, || say("no transitional one before it"));
        };
        let within = together.iter().all(|member| members.contains(member));
        demand(within, PROPERTY, || say("it lost somebody of the transitional one"))?;
        let passage = self.passages.entry((old, ring));
        let (first, who) = passage.or_insert_with(|| (together.clone(), by));
        demand(*first == together, PROPERTY, || {
            say(&format!("from {old} with {together:?}, {who} with {first:?}"))
        })?;
        demand(together.contains(who), PROPERTY, || say("they do not go together"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{configuration, member};
    use super::*;
    use ConfigurationKind::{Regular, Transitional};

    fn two_in_one_ring() -> Configurations {
        let mut all = Configurations::default();
        for node in [1, 2] {
            all.configured(member(node), &configuration(Regular, 1, &[1, 2])).unwrap();
        }
        all
    }

    #[test]
    fn memberships_that_differ_are_seen() {
        let mut all = two_in_one_ring();
        assert!(all.configured(member(3), &configuration(Regular, 1, &[1, 3])).is_err());
        assert!(all.configured(member(3), &configuration(Regular, 9, &[1, 2])).is_err());
        assert!(all.configured(member(1), &configuration(Regular, 2, &[1, 2])).is_err(), "at once");
        assert!(all.configured(member(2), &configuration(Transitional, 1, &[2, 3])).is_err());
    }

    #[test]
    fn those_who_go_on_together_say_so_alike() {
        let mut all = two_in_one_ring();
        all.configured(member(1), &configuration(Transitional, 1, &[1, 2])).unwrap();
        all.configured(member(2), &configuration(Transitional, 1, &[2])).unwrap();
        all.configured(member(1), &configuration(Regular, 2, &[1, 2])).unwrap();
        assert!(all.configured(member(2), &configuration(Regular, 2, &[1, 2])).is_err());
    }

    #[test]
    fn rings_do_not_go_backwards() {
        let mut all = two_in_one_ring();
        all.configured(member(1), &configuration(Transitional, 1, &[1])).unwrap();
        assert!(all.configured(member(1), &configuration(Regular, 0, &[1])).is_err());
    }
}
