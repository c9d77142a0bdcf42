//! Which crashes the promise covers: the fault planner asks here before it takes a life.
//!
//! Nodes keep nothing on disk yet (docs/protocol/group.md, "The quorum"): a life that ends takes what it
//! knew with it. The promise is that no acknowledged request is lost as long as, at any one time,
//!
//! - more than half of the lives of the newest component, and of each later configuration that could have
//!   become one, still run (exactly half is enough if the member with the smallest id is among them);
//! - fewer nodes than a majority of those configured are dead or in a life that was never in a component (else
//!   they could take themselves for a first start);
//! - no host of a group dies before the group's first view is known: it may be the only one with the state;
//! - every group that has a synced replica keeps one on a life that runs, and is not stopped or cut off; and one
//!   whose synced replicas are all away keeps all of them: only who was last can bring its state back. When one has died, who is left
//!   alone with the group is not stopped or cut off either before the next view: it may lack requests that only the dead one
//!   had executed, and that others hold for it no longer than the ring lasts.

use std::collections::{BTreeMap, BTreeSet};

use wire::{GroupId, Member, NodeId, RingId};

/// What the planner knows of the cluster, from the events of its nodes.
#[derive(Default)]
pub struct Promise {
    configured: usize,
    /// Configurations that may act or may yet: the newest component, and all seen after it.
    components: BTreeMap<RingId, Vec<Member>>,
    /// Who has ever been in a component, and who knows of which.
    seated: BTreeSet<Member>,
    known: BTreeSet<(RingId, Member)>,
    alive: BTreeSet<Member>,
    /// The synced replicas of each group by the newest view.
    synced: BTreeMap<GroupId, Synced>,
    /// Replicas that their node gives up.
    leaving: BTreeSet<(GroupId, Member)>,
    /// Those among them of whom no view is known that is without them.
    pending: BTreeSet<(GroupId, Member)>,
    /// Synced replicas that died, as long as no view is known that is without them: another may still have to be given, by
    /// the nodes around it, what only the dead one had executed.
    mourned: BTreeSet<(GroupId, Member)>,
}

/// The synced replicas of a group at a view of a component.
struct Synced {
    at: (RingId, u64),
    /// If the view has none: those of the last view that had.
    members: Vec<Member>,
    asleep: bool,
}

impl Promise {
    /// A cluster of so many nodes, none of which runs.
    pub fn new(configured: usize) -> Self {
        Promise { configured, ..Promise::default() }
    }

    /// A life begins.
    pub fn born(&mut self, member: Member) {
        self.alive.insert(member);
    }

    /// A life ends, or is about to.
    pub fn died(&mut self, member: Member) {
        self.alive.remove(&member);
        self.pending.retain(|(_, leaving)| *leaving != member);
        let had = self.synced.iter().filter(|(_, synced)| synced.members.contains(&member));
        self.mourned.extend(had.map(|(&group, _)| (group, member)));
    }

    /// A configuration was delivered somewhere: it may become a component.
    pub fn configuration(&mut self, ring: RingId, members: &[Member]) {
        if 2 * members.len() > self.configured {
            self.components.entry(ring).or_insert_with(|| members.to_vec());
        }
    }

    /// A configuration got the quorum, as one of its members says: what came before it is over.
    pub fn component(&mut self, ring: RingId, by: Member) {
        self.seated.insert(by);
        self.known.insert((ring, by));
        let Some(members) = self.components.get(&ring) else { return };
        // Only when all know of it can nobody go back to an older one.
        let knows = |member: &Member| self.known.contains(&(ring, *member));
        if members.iter().all(|member| knows(member) || !self.alive.contains(member)) {
            self.components.retain(|&other, _| other >= ring);
            self.known.retain(|&(other, _)| other >= ring);
        }
    }

    /// A view was installed somewhere.
    pub fn view(&mut self, group: GroupId, at: (RingId, u64), members: Vec<Member>) {
        self.pending.retain(|&(of, member)| of != group || members.contains(&member));
        self.mourned.retain(|&(of, member)| of != group || members.contains(&member));
        let known = self.synced.entry(group);
        let known = known.or_insert(Synced { at, members: Vec::new(), asleep: true });
        if known.at <= at {
            known.at = at;
            known.asleep = members.is_empty();
            if !known.asleep {
                known.members = members;
            }
        }
    }

    /// The group can do without this node's replica: another that has the state is there. `away`: nodes that are stopped
    /// or cut off.
    pub fn spares(&self, group: GroupId, victim: Member, away: &[NodeId]) -> bool {
        let near = |member: &Member| {
            let lives = self.alive.contains(member) && *member != victim;
            lives && !away.contains(&member.node) && !self.leaving.contains(&(group, *member))
        };
        let synced = self.synced.get(&group);
        synced.is_some_and(|synced| !synced.asleep && synced.members.iter().any(near))
    }

    /// Nodes that alone can go on with a group of which a replica has just died: until they have its last requests, they
    /// must not be stopped or cut off.
    pub fn heirs(&self, away: &[NodeId]) -> Vec<NodeId> {
        let heir = |group: &GroupId| {
            let members = self.synced.get(group).map_or(&[][..], |synced| &synced.members);
            let mut near = members
                .iter()
                .filter(|member| self.alive.contains(member) && !away.contains(&member.node));
            near.next().filter(|_| near.next().is_none()).map(|member| member.node)
        };
        self.mourned.iter().filter_map(|(group, _)| heir(group)).collect()
    }

    /// A view of the group is known. Before its first, its replicas may be ordered already and nobody can say which.
    pub fn knows(&self, group: GroupId) -> bool {
        self.synced.contains_key(&group)
    }

    /// With this life a group would lose its last synced replica but one.
    pub fn leaves_one(&self, victim: Member) -> bool {
        self.synced.values().any(|synced| {
            let left = synced.members.iter().filter(|member| self.alive.contains(member));
            synced.members.contains(&victim)
                && left.filter(|member| **member != victim).count() <= 1
        })
    }

    /// A node gives its replica of a group up.
    pub fn unhosted(&mut self, group: GroupId, member: Member) {
        self.leaving.insert((group, member));
        self.pending.insert((group, member));
    }

    /// It hosts the group again. False if it has not given it up.
    pub fn hosted(&mut self, group: GroupId, member: Member) -> bool {
        self.pending.remove(&(group, member));
        self.leaving.remove(&(group, member))
    }

    /// Somebody is about to leave a group: were the others struck out now, the last one would leave, and the group with it.
    pub fn pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// It is giving its replica up.
    pub fn is_leaving(&self, group: GroupId, member: Member) -> bool {
        self.leaving.contains(&(group, member))
    }

    /// The promise still holds when this node's life ends now. `away`: nodes that are stopped or cut
    /// off, whose replicas may be struck out before they are back.
    pub fn covers(&self, victim: Member, away: &[NodeId]) -> bool {
        let lives = |member: &Member| self.alive.contains(member) && *member != victim;
        let quorate = self.components.values().all(|members| {
            let left = members.iter().filter(|member| lives(member)).count();
            let first = members.first().is_some_and(lives);
            2 * left > members.len() || 2 * left == members.len() && first
        });
        let knowing = self.seated.iter().filter(|member| lives(member)).count();
        let majority = self.configured / 2 + 1;
        let kept = self.synced.iter().all(|(&group, synced)| {
            self.spares(group, victim, away) || !synced.members.contains(&victim)
        });
        quorate && self.configured - knowing < majority && kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Incarnation;

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn ring(sequence: u64) -> RingId {
        RingId { sequence, representative: NodeId(1) }
    }

    fn five() -> Promise {
        let mut promise = Promise::new(5);
        let members: Vec<Member> = (1..=5).map(member).collect();
        for &member in &members {
            promise.born(member);
        }
        promise.configuration(ring(1), &members);
        for &member in &members {
            promise.component(ring(1), member);
        }
        promise
    }

    #[test]
    fn two_of_five_may_die_and_not_a_third() {
        let mut promise = five();
        for node in [1, 2] {
            assert!(promise.covers(member(node), &[]));
            promise.died(member(node));
        }
        assert!(!promise.covers(member(3), &[]));
    }

    #[test]
    fn the_last_synced_replica_is_spared_also_when_the_other_is_away() {
        let mut promise = five();
        promise.view(GroupId(7), (ring(1), 3), vec![member(2), member(4)]);
        assert!(promise.covers(member(2), &[]));
        assert!(!promise.covers(member(2), &[NodeId(4)]));
        promise.died(member(4));
        assert!(!promise.covers(member(2), &[]));
        promise.view(GroupId(7), (ring(1), 2), vec![member(1), member(3)]);
        assert!(!promise.covers(member(2), &[]), "an older view says nothing");
        promise.view(GroupId(7), (ring(1), 4), vec![]);
        assert!(!promise.covers(member(2), &[]), "it alone can bring the state back");
        assert!(promise.covers(member(1), &[]));
    }

    #[test]
    fn who_is_left_with_a_group_is_its_heir_until_a_view_says_so() {
        let mut promise = five();
        promise.view(GroupId(7), (ring(1), 3), vec![member(2), member(4)]);
        assert!(promise.heirs(&[]).is_empty());
        assert!(promise.leaves_one(member(2)) && !promise.leaves_one(member(5)));
        promise.died(member(2));
        assert_eq!(promise.heirs(&[]), [NodeId(4)]);
        promise.view(GroupId(7), (ring(1), 4), vec![member(4)]);
        assert!(promise.heirs(&[]).is_empty());
    }

    #[test]
    fn before_the_first_component_nobody_dies() {
        let mut promise = Promise::new(3);
        promise.born(member(1));
        assert!(!promise.covers(member(1), &[]));
    }

    #[test]
    fn a_configuration_that_may_have_got_the_quorum_counts() {
        let mut promise = five();
        promise.configuration(ring(2), &[member(1), member(2), member(3)]);
        promise.died(member(1));
        assert!(!promise.covers(member(2), &[]), "two of the three of the attempt");
        promise.component(ring(2), member(2));
        promise.component(ring(2), member(3));
        promise.configuration(ring(3), &[member(2), member(3), member(4), member(5)]);
        assert!(!promise.covers(member(2), &[]), "one of the two that are left of the component");
        for node in 2..=5 {
            promise.component(ring(3), member(node));
        }
        assert!(promise.covers(member(4), &[]));
    }
}
