//! Versions: members of a ring speak its version and know its rules; these are the same at all of
//! them, never go back, and come into force only when every configured node knows them
//! (`docs/protocol/versions.md`).

use std::collections::BTreeMap;

use wire::{Member, NodeId, Program, RingId};

use super::{Verdict, demand};

/// The programs of all lives, and the rules of all components.
#[derive(Clone, Debug)]
pub struct Versions {
    nodes: Vec<NodeId>,
    programs: BTreeMap<Member, Program>,
    /// The level that each life knows.
    known: BTreeMap<Member, u8>,
    /// The program with which each node was in a component last.
    seen: BTreeMap<NodeId, Program>,
    /// The ring's version and the level with which a component began.
    components: BTreeMap<(u64, RingId), (u8, u8)>,
    /// The levels that came into force in a component, in order; and how many of them a member has,
    /// which is in that component.
    raised: BTreeMap<(u64, RingId), Vec<u8>>,
    places: BTreeMap<Member, ((u64, RingId), usize)>,
}

impl Versions {
    /// Nothing is known of these nodes.
    pub fn new(nodes: Vec<NodeId>) -> Versions {
        Versions {
            nodes,
            programs: BTreeMap::new(),
            known: BTreeMap::new(),
            seen: BTreeMap::new(),
            components: BTreeMap::new(),
            raised: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }

    /// The highest level that was ever in force; 0: none was.
    pub fn level(&self) -> u8 {
        self.known.values().copied().max().unwrap_or(0)
    }

    /// A life begins with this program, and with the level on its disk.
    pub fn begins(&mut self, me: Member, program: Program, level: u8) {
        self.programs.insert(me, program);
        self.known.insert(me, level);
    }

    /// A component begins at a member, with these members, in this version of the ring and with
    /// rules of this level.
    pub fn installed(
        &mut self,
        me: Member,
        component: (u64, RingId),
        members: &[Member],
        (ring, level): (u8, u8),
    ) -> Verdict {
        self.places.insert(me, (component, 0));
        let known = self.known.entry(me).or_default();
        let knew = std::mem::replace(known, level.max(*known));
        if let Some(first) = self.components.get(&component) {
            // Newer rules may be in force there already.
            return demand(first.0 == ring && first.1 <= level, "versions", || {
                let own = (ring, level);
                format!("{me} has version and level {own:?} in {component:?}, others {first:?}")
            });
        }
        self.components.insert(component, (ring, level));
        for member in members {
            let Some(program) = self.programs.get(member) else { continue };
            demand(program.ring.contains(ring), "versions", || {
                format!("a ring has version {ring}, its member {member} speaks {}", program.ring)
            })?;
            demand(program.rules.contains(level), "versions", || {
                format!("rules {level} are in force, member {member} knows {}", program.rules)
            })?;
            let known =
                if *member == me { knew } else { self.known.get(member).copied().unwrap_or(0) };
            demand(level >= known, "versions", || {
                format!(
                    "{component:?} has rules {level}, its member {member} knew {known} in force"
                )
            })?;
            self.seen.insert(member.node, program.clone());
        }
        Ok(())
    }

    /// These members have said in a component which programs they are.
    pub fn announced(&mut self, members: &[Member]) {
        for member in members {
            if let Some(program) = self.programs.get(member) {
                self.seen.insert(member.node, program.clone());
            }
        }
    }

    /// Rules of this level come into force at a member.
    pub fn activated(&mut self, me: Member, level: u8) -> Verdict {
        for node in &self.nodes {
            let known = self.seen.get(node).is_some_and(|it| it.rules.contains(level));
            demand(known, "versions", || {
                format!("{me} has rules {level} in force, which node {node} has not said it knows")
            })?;
        }
        let (component, place) = self.places.entry(me).or_default();
        let raised = self.raised.entry(*component).or_default();
        let first = raised.get(*place).copied();
        demand(first.is_none_or(|first| first == level), "versions", || {
            format!("{me} has rules {level} next in {component:?}, others {first:?}")
        })?;
        if first.is_none() {
            raised.push(level);
        }
        *place += 1;
        self.known.insert(me, level);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wire::{Incarnation, VersionRange};

    use super::*;

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn versions() -> Versions {
        let mut versions = Versions::new(vec![NodeId(1), NodeId(2)]);
        for (node, greatest) in [(1, 1), (2, 2)] {
            let range = VersionRange::new(1, greatest);
            let program = Program { ring: range, rules: range, ..Program::this("") };
            versions.begins(member(node), program, 0);
        }
        versions
    }

    #[test]
    fn what_a_member_does_not_speak_or_know_is_found() {
        let (ring, both) = ((1, RingId::default()), [member(1), member(2)]);
        let installed = |used| versions().installed(member(2), ring, &both, used);
        assert!(installed((1, 1)).is_ok());
        assert!(installed((2, 1)).is_err());
        assert!(installed((1, 2)).is_err());
    }

    #[test]
    fn rules_that_a_node_has_not_said_it_knows_and_rules_that_go_back_are_found() {
        let ring = |epoch| (epoch, RingId::default());
        let mut versions = versions();
        assert!(versions.installed(member(2), ring(1), &[member(2)], (1, 1)).is_ok());
        assert!(versions.activated(member(2), 2).is_err(), "node 1 knows only 1");
        versions.known.insert(member(2), 2);
        assert!(versions.installed(member(2), ring(2), &[member(2)], (1, 1)).is_err());
        assert!(versions.installed(member(2), ring(3), &[member(2)], (1, 2)).is_ok());
        assert!(versions.installed(member(1), ring(3), &[member(1)], (1, 1)).is_err());
    }

    #[test]
    fn other_rules_next_than_at_another_member_are_found() {
        let (both, knows) = ([member(1), member(2)], VersionRange::new(1, 3));
        let mut versions = versions();
        for member in both {
            versions.begins(member, Program { rules: knows, ..Program::this("") }, 0);
        }
        for member in both {
            let component = (1, RingId::default());
            assert!(versions.installed(member, component, &both, (1, 1)).is_ok());
        }
        assert!(versions.activated(member(1), 2).is_ok());
        assert!(versions.activated(member(2), 3).is_err());
    }
}
