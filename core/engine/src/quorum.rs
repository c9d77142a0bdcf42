//! The verdict whether a configuration may act. Every member computes it alike from all members'
//! announcements.
//!
//! Dynamic voting for a primary component (D. Yeger Lotem, I. Keidar, D. Dolev: *Dynamic Voting for
//! Consistent Primary Components*, PODC 1997), over lives instead of nodes, because a restarted
//! node has forgotten everything. The rules and why they are safe: `docs/protocol/group.md`.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use wire::ordered::{Announce, Component, MAX_ATTEMPTS, Place};
use wire::{Member, NodeId};

use crate::api::Quorum;
use crate::bug::Planted;
use crate::component_order::{ComponentOrder, age};

/// The result of a configuration's announcements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No group may act.
    Minority,
    /// The configuration becomes a component.
    Quorate {
        /// Its number.
        epoch: u64,
        /// The members with the furthest history, in order of id. The first one installs.
        authority: Vec<Member>,
        /// The present lives alone do not make up the quorum. It needs lives that disks recall, or
        /// all nodes are here, because no absent node can know better. No table need be complete
        /// then.
        recalled: bool,
    },
}

/// The members of a new component, beside their announcements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gathering<'a> {
    /// The rule by which it may act.
    pub(crate) rule: Quorum,
    /// Every configured node is here, in whatever life.
    pub(crate) whole: bool,
    /// Decides which of two announced places is the later one.
    pub(crate) component_order: &'a ComponentOrder,
    /// The level of the rules.
    pub(crate) level: u8,
    pub(crate) planted: Planted,
}

/// A member's position in the newest component that it acted in. For two members of one component,
/// the history with the smaller place is a part of the other.
pub(crate) fn reached(announce: &Announce) -> Place {
    let newest = newest(announce);
    Place { epoch: newest.epoch, ring: newest.ring, sequence: announce.position }
}

/// The verdict on the configuration with these announcements.
///
/// # Panics
/// If there are no announcements.
pub(crate) fn verdict(
    rule: Quorum,
    lists: &[Vec<NodeId>],
    announces: &BTreeMap<Member, Announce>,
    component_order: &ComponentOrder,
) -> Verdict {
    assert!(!announces.is_empty(), "a configuration has members");
    let recalled = match basis(lists, announces, component_order) {
        Basis::Lives => false,
        Basis::Recalled => true,
        Basis::Nothing if rule == Quorum::Majority => return Verdict::Minority,
        Basis::Nothing => true,
    };
    let known = announces.values().flat_map(|a| a.attempts.iter().chain([&a.last]));
    let epoch = known.map(|component| component.epoch).max().unwrap_or(0).saturating_add(1);
    // Members that live on know groups in memory, too; the disks' knowledge is in the
    // announcements.
    let lives = |announce: &Announce| !is_restarted(announce) && reached(announce).epoch > 0;
    let authority = match rule {
        Quorum::Majority => bringing_most(announces, |(_, announce)| {
            (lives(announce), component_order.moment(reached(announce)))
        }),
        Quorum::Off => bringing_most(announces, |member| {
            let lives = lives(member.1);
            let reached = component_order.moment(reached(member.1));
            (lives, is_head(member, announces), weight(member, announces), reached)
        }),
    };
    Verdict::Quorate { epoch, authority, recalled }
}

/// A member and its announcement.
type Announced<'a> = (&'a Member, &'a Announce);

/// The members with the largest key.
fn bringing_most<K: Ord>(
    announces: &BTreeMap<Member, Announce>,
    key: impl Fn(Announced<'_>) -> K,
) -> Vec<Member> {
    let most = announces.iter().map(&key).max();
    let has_most = |announced: &Announced<'_>| Some(key(*announced)) == most;
    announces.iter().filter(has_most).map(|(member, _)| *member).collect()
}

/// The newest component that a member acted in.
fn newest(announce: &Announce) -> &Component {
    announce.attempts.last().unwrap_or(&announce.last)
}

/// `other` went on from the component in which `one` stayed: what was ordered there is part of
/// `other`'s history, but for the last moments.
fn went_on((_, one): Announced<'_>, (member, other): Announced<'_>) -> bool {
    let stayed = newest(one);
    stayed.members.contains(member) && age(newest(other)) > age(stayed)
}

/// Without the quorum histories fork. This is the newest of a branch: no member here went on from
/// it.
fn is_head(member: Announced<'_>, announces: &BTreeMap<Member, Announce>) -> bool {
    !announces.iter().any(|other| went_on(member, other))
}

/// The size of a member's history: replicas with their state, then members. A lone node without a
/// replica knows of no answered request, however often it was alone.
fn weight(member: Announced<'_>, announces: &BTreeMap<Member, Announce>) -> (usize, usize) {
    let branch = age(newest(member.1));
    let is_in_branch = |other: &Announced<'_>| age(newest(other.1)) == branch;
    let of_branch = announces.iter().filter(|other| {
        let mut branch = announces.iter().filter(is_in_branch);
        is_in_branch(other) || branch.any(|later| went_on(*other, later))
    });
    let states = |(_, announce): Announced<'_>| announce.replicas.len();
    of_branch.fold((0, 0), |(all, members), other| (all + states(other), members + 1))
}

/// The sender's announcement comes from its disk.
pub(crate) fn is_restarted(announce: &Announce) -> bool {
    announce.recall.as_ref().is_some_and(|recall| recall.restarted)
}

/// The reason why a configuration may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basis {
    /// Enough lives are here.
    Lives,
    /// Enough lives are here or recalled by disks, or all nodes are here.
    Recalled,
    Nothing,
}

fn basis(
    lists: &[Vec<NodeId>],
    announces: &BTreeMap<Member, Announce>,
    component_order: &ComponentOrder,
) -> Basis {
    let nodes: BTreeSet<NodeId> = announces.keys().map(|member| member.node).collect();
    let present = |list: &[NodeId]| list.iter().filter(|node| nodes.contains(node)).count();
    let most = lists.iter().all(|list| present(list) * 2 > list.len());
    let whole = lists.iter().all(|list| present(list) == list.len());
    if most && has_quorum(announces, component_order, |member| announces.contains_key(member)) {
        return Basis::Lives;
    }
    // No disk recalls requests that groups in memory answered. While there may be any, all nodes
    // have to be here.
    let knows_all = |announce: &Announce| match &announce.recall {
        Some(recall) => !recall.volatile,
        None => reached(announce).epoch == 0,
    };
    let recalled = |member: &Member| announces.iter().any(|(here, a)| recalls(*here, a, *member));
    let kept = announces.values().all(knows_all);
    if whole || (most && kept && has_quorum(announces, component_order, recalled)) {
        // Every node is here, in whatever life: no absent node can know better.
        return Basis::Recalled;
    }
    Basis::Nothing
}

/// Whether this member has forgotten nothing that this life announced as stored, or is that life.
pub(crate) fn recalls(here: Member, announce: &Announce, life: Member) -> bool {
    let since = announce.recall.as_ref().map_or(here.incarnation, |recall| recall.since);
    here.node == life.node && (since..=here.incarnation).contains(&life.incarnation)
}

/// A majority of the lives of the last component, and of every later attempt that is not void, is
/// here.
fn has_quorum(
    announces: &BTreeMap<Member, Announce>,
    component_order: &ComponentOrder,
    is_here: impl Fn(&Member) -> bool,
) -> bool {
    // The nodes that count in it change: the announce with the latest roster knows them.
    let newest = announces.values().max_by_key(|it| (age(&it.last), it.roster.stamp));
    let last = newest.map(|announce| &announce.last);
    let last = last.expect("a configuration has members");
    if last.epoch == 0 && !announces.values().all(|announce| announce.first_life) {
        // No member here remembers a component, but some may have forgotten one.
        return false;
    }
    let full = announces.values().any(|announce| announce.attempts.len() >= MAX_ATTEMPTS);
    let counts =
        |attempt: &&Component| age(attempt) > age(last) && !component_order.is_void(attempt);
    let mut later = announces.values().flat_map(|a| &a.attempts).filter(counts);
    !full && has_majority_of(last, &is_here) && later.all(|a| has_majority_of(a, &is_here))
}

/// More than half of the component's lives are here, or half with the smallest of them.
fn has_majority_of(component: &Component, is_here: impl Fn(&Member) -> bool) -> bool {
    let Some(smallest) = component.members.first() else {
        return component.epoch == 0; // nobody was in any component yet
    };
    let here = component.members.iter().filter(|m| is_here(m)).count();
    let all = component.members.len();
    here * 2 > all || (here * 2 == all && is_here(smallest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use wire::ordered::Recall;
    use wire::{Incarnation, RingId};

    fn member(node: u32, life: u64) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(life) }
    }

    fn component(epoch: u64, members: &[Member]) -> Component {
        let ring = RingId { sequence: epoch * 10, representative: members[0].node };
        Component { epoch, ring, members: members.to_vec() }
    }

    fn announce(last: Component, attempts: Vec<Component>, position: u64) -> Announce {
        let ring = RingId::default();
        let replicas = Vec::new();
        Announce {
            ring,
            first_life: false,
            last,
            attempts,
            position,
            replicas,
            ahead: Vec::new(),
            address: None,
            recall: None,
            program: wire::Program::this("trial"),
            level: 0,
            extension: wire::Extension::default(),
            roster: Default::default(),
        }
    }

    fn nodes(n: u32) -> Vec<NodeId> {
        (1..=n).map(NodeId).collect()
    }

    fn judge(n: u32, announces: &[(Member, Announce)]) -> Verdict {
        let announces = announces.iter().cloned().collect();
        let component_order = ComponentOrder::of(&announces);
        verdict(Quorum::Majority, &[nodes(n)], &announces, &component_order)
    }

    fn is_quorate(n: u32, announces: &[(Member, Announce)]) -> bool {
        judge(n, announces) != Verdict::Minority
    }

    fn authority(n: u32, announces: &[(Member, Announce)]) -> (u64, Vec<u32>) {
        match judge(n, announces) {
            Verdict::Minority => panic!("no quorum"),
            Verdict::Quorate { epoch, authority, .. } => {
                (epoch, authority.iter().map(|member| member.node.0).collect())
            }
        }
    }

    #[test]
    fn a_first_start_needs_a_majority_of_the_configured_nodes() {
        let fresh = |node| {
            let nothing = announce(Component::default(), Vec::new(), 0);
            (member(node, 1), Announce { first_life: true, ..nothing })
        };
        assert!(!is_quorate(5, &[fresh(1), fresh(2)]));
        assert_eq!(authority(5, &[fresh(2), fresh(3), fresh(5)]), (1, vec![2, 3, 5]));
    }

    #[test]
    fn who_may_have_forgotten_a_component_cannot_begin_a_new_history() {
        let nobody = announce(Component::default(), Vec::new(), 0);
        let fresh = |n| (member(n, 1), Announce { first_life: true, ..nobody.clone() });
        let again = |n| (member(n, 2), nobody.clone());
        assert!(!is_quorate(5, &[again(1), fresh(4), fresh(5)]), "2 and 3 may remember one");
        assert!(is_quorate(5, &[again(1), again(2), fresh(3), fresh(4), fresh(5)]));
    }

    #[test]
    fn the_longest_history_is_the_authority() {
        let all = [1, 2, 3].map(|n| member(n, 1));
        let last = component(4, &all);
        let at = |n: usize, position| (all[n], announce(last.clone(), Vec::new(), position));
        assert_eq!(authority(3, &[at(0, 7), at(1, 9), at(2, 9)]), (5, vec![2, 3]));
    }

    #[test]
    fn a_new_life_does_not_vote_for_its_old_one() {
        let all = [1, 2, 3, 4, 5].map(|n| member(n, 1));
        let old = |n: usize| (all[n], announce(component(2, &all), Vec::new(), 3));
        let fresh = |n| (member(n, 2), announce(Component::default(), Vec::new(), 0));
        // Three of five configured nodes, but only two of them remember.
        assert!(!is_quorate(5, &[fresh(1), old(3), old(4)]));
        assert!(is_quorate(5, &[fresh(1), old(2), old(3), old(4)]));
        // Everybody is back: nobody else can know better.
        assert!(is_quorate(5, &[fresh(1), fresh(2), fresh(3), old(3), old(4)]));
    }

    #[test]
    fn an_attempt_of_unknown_outcome_must_be_outvoted_too() {
        let all = [1, 2, 3, 4, 5].map(|n| member(n, 1));
        let last = component(2, &all);
        let attempt = component(3, &all[..3]);
        let plain = |n: usize| (all[n], announce(last.clone(), Vec::new(), 9));
        let tried = |n: usize| (all[n], announce(last.clone(), [attempt.clone()].to_vec(), 1));
        // 3 knows that 1 and 2 may have gone on without 4 and 5.
        assert!(!is_quorate(5, &[tried(2), plain(3), plain(4)]));
        assert_eq!(authority(5, &[tried(1), tried(2), plain(3)]), (4, vec![2, 3]));
    }

    /// The simulator's seed 622 of the world of disks. All lives ended when one disk alone had the
    /// attempt. The others have gone on from their own state, with a smaller ring.
    #[test]
    fn an_attempt_that_others_had_forgotten_is_not_believed() {
        let first = [1, 2, 3].map(|n| member(n, 1));
        let last = component(5, &first);
        let attempt = component(6, &first);
        let mut others = component(6, &[member(2, 2), member(3, 2)]);
        others.ring.sequence = 3;
        let back = |n: u32, last: &Component, attempts: &[Component]| {
            let recall = Recall {
                since: Incarnation(1),
                restarted: true,
                volatile: false,
                groups: Vec::new(),
                waiting: Vec::new(),
            };
            let announce = announce(last.clone(), attempts.to_vec(), 9);
            (member(n, 3), Announce { recall: Some(recall), ..announce })
        };
        let all = [
            back(1, &last, core::slice::from_ref(&attempt)),
            back(2, &others, &[]),
            back(3, &others, &[]),
        ];
        assert_eq!(authority(3, &all), (7, vec![2, 3]));
        assert_eq!(authority(3, &all[..2]), (7, vec![2]));
        // As long as no member announces the others, it may have been effective.
        assert_eq!(authority(3, &[all[0].clone(), back(2, &last, &[])]), (7, vec![1]));
    }

    fn authority_without_quorum(announces: &[(Member, Announce)]) -> Vec<u32> {
        let announces = announces.iter().cloned().collect();
        match verdict(Quorum::Off, &[nodes(5)], &announces, &ComponentOrder::new()) {
            Verdict::Minority => panic!("every configuration has the quorum"),
            Verdict::Quorate { authority, .. } => authority.iter().map(|m| m.node.0).collect(),
        }
    }

    /// The simulator's seed 1352: node 5, alone and without a replica, was in the newest component.
    #[test]
    fn without_a_quorum_who_brings_replicas_goes_before_a_lone_bystander() {
        let all = [1, 2, 3, 5].map(|n| member(n, 1));
        let state = |sequence| {
            let place = Place { epoch: 2, ring: RingId::default(), sequence };
            [(wire::GroupId(7), place)].to_vec()
        };
        let at = |n: usize, last: &Component, sequence: Option<u64>| {
            let replicas = sequence.map(state).unwrap_or_default();
            (all[n], Announce { replicas, ..announce(last.clone(), Vec::new(), 9) })
        };
        let (alone, near) = (component(7, &all[3..]), component(3, &all[..3]));
        let near_ones = [at(0, &near, Some(5)), at(1, &near, Some(5)), at(2, &near, None)];
        let lone = at(3, &alone, None);
        let mut here = near_ones.to_vec();
        here.push(lone.clone());
        assert_eq!(authority_without_quorum(&here), [1, 2, 3]);
        // But a member that went on from where the others stayed knows more than they.
        let whole = component(3, &all);
        let stayed = [at(0, &whole, Some(5)), at(1, &whole, Some(5)), lone];
        assert_eq!(authority_without_quorum(&stayed), [5]);
    }

    #[test]
    fn half_of_the_last_component_needs_its_smallest_member() {
        let all = [1, 2, 3, 4].map(|n| member(n, 1));
        let old = |n: usize| (all[n], announce(component(2, &all), Vec::new(), 3));
        let fresh = (member(5, 1), announce(Component::default(), Vec::new(), 0));
        assert!(is_quorate(5, &[old(0), old(3), fresh.clone()]));
        assert!(!is_quorate(5, &[old(1), old(3), fresh]));
    }

    /// Brute force: however the nodes split, no two disjoint configurations both get the quorum.
    #[test]
    fn two_disjoint_configurations_never_both_have_the_quorum() {
        let all: Vec<Member> = (1..=5).map(|n| member(n, 1)).collect();
        for shape in 0u32..32 {
            let inside: Vec<Member> =
                all.iter().copied().filter(|m| shape >> (m.node.0 - 1) & 1 == 1).collect();
            if inside.len() < 3 {
                continue;
            }
            let last = component(2, &inside);
            let side = |mask: u32| -> Vec<(Member, Announce)> {
                let here = all.iter().filter(|m| mask >> (m.node.0 - 1) & 1 == 1);
                let last_of = |m: &Member| {
                    if inside.contains(m) { last.clone() } else { component(1, &all) }
                };
                here.map(|m| (*m, announce(last_of(m), Vec::new(), 0))).collect()
            };
            for mask in 1u32..31 {
                assert!(
                    !(is_quorate(5, &side(mask)) && is_quorate(5, &side(!mask & 31))),
                    "component {shape:05b} split into {mask:05b} and the rest"
                );
            }
        }
    }
}
