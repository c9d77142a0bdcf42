//! Which crashes the promise covers: the fault planner asks here before it takes a life.
//!
//! Without disks a life that ends takes what it knew with it (docs/protocol/group.md, "The
//! quorum"); with them any may end at any time, and all at once. The promise is that no
//! acknowledged request is lost as long as, at any one time,
//!
//! - more than half of the lives of the newest component, and of each later configuration that
//!   could have become one, still run (exactly half is enough if the member with the smallest id is
//!   among them);
//! - fewer nodes than a majority of those configured are dead or in a life that was never in a
//!   component (else they could take themselves for a first start);
//! - of the synced replicas of a group that was ever called, as any view that may still count names
//!   them, so many run that each majority of them has one among these: half of them, rounded up
//!   (with `AckLevel::All`, one). A view counts until all know of a later one of which so many run.
//!   A node that is not in a later configuration that could become a component is about to be
//!   struck out, and does not count. A voting group keeps two: of two replicas, one that is silent
//!   for a while is voted out by the other;
//! - a replica that goes by its own will leaves another with the state behind that is neither
//!   stopped nor cut off, and so it stays until it has gone: a group ends with the last replica
//!   that leaves it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use wire::{GroupId, Member, NodeId, RingId};

/// The planner's knowledge of the cluster, from the events of its nodes.
#[derive(Clone, Default)]
pub struct Promise {
    configured: usize,
    /// Data that a life reported as stored survives it: a node that dies restarts with that.
    disks: bool,
    /// When no life is left, earlier observations do not apply to the next lives: the numbers of
    /// rings begin anew.
    begins_anew: bool,
    /// Groups whose replies leave when all hold the request.
    by_all: Vec<GroupId>,
    /// Groups that vote.
    voting: Vec<GroupId>,
    /// Configurations that may act or may yet: the newest component, and all seen after it.
    components: BTreeMap<RingId, Vec<Member>>,
    /// Members that have ever been in a component, and those that know of each.
    seated: BTreeSet<Member>,
    known: BTreeSet<(RingId, Member)>,
    alive: BTreeSet<Member>,
    /// The synced replicas of each group, by the views that a later component may begin with,
    /// oldest first.
    views: BTreeMap<GroupId, Vec<View>>,
    /// Groups that a client ever called: other groups have nothing to lose.
    called: BTreeSet<GroupId>,
    /// Replicas that their node gives up.
    leaving: BTreeSet<(GroupId, Member)>,
    /// Those among them, and those of nodes that are told to leave, that every known view still
    /// contains.
    pending: BTreeSet<(GroupId, Member)>,
}

/// The synced replicas of a group at a view of a component.
#[derive(Clone)]
struct View {
    at: (RingId, u64),
    synced: Vec<Member>,
    /// Those among them whose node gave them up.
    gone: Vec<Member>,
    /// Members that have installed it, or a later one.
    told: BTreeSet<Member>,
}

impl Promise {
    /// A cluster of so many nodes, none of which runs. `by_all`: groups under `AckLevel::All`.
    pub fn new(configured: usize, by_all: Vec<GroupId>, disks: bool) -> Self {
        Promise { configured, by_all, disks, ..Promise::default() }
    }

    /// These groups vote, now or in another style of theirs.
    pub fn voting(mut self, groups: Vec<GroupId>) -> Self {
        self.voting = groups;
        self
    }

    /// Where all lives may end at once and somebody asks who has the state afterwards.
    pub fn beginning_anew(mut self, begins_anew: bool) -> Self {
        self.begins_anew = begins_anew;
        self
    }

    /// A life begins.
    pub fn born(&mut self, member: Member) {
        self.alive.insert(member);
    }

    /// A life ends, or is about to.
    pub fn died(&mut self, member: Member) {
        self.alive.remove(&member);
        self.pending.retain(|(_, leaving)| *leaving != member);
        if self.begins_anew && self.alive.is_empty() {
            self.components.clear();
            self.known.clear();
            self.views.clear();
        }
    }

    /// It runs, and was not told to leave.
    pub fn lives(&self, member: Member) -> bool {
        self.alive.contains(&member)
    }

    /// A configuration was delivered somewhere: it may become a component.
    pub fn configuration(&mut self, ring: RingId, members: &[Member]) {
        if 2 * members.len() > self.configured {
            self.components.entry(ring).or_insert_with(|| members.to_vec());
        }
    }

    /// A configuration got the quorum, as one of its members reports: earlier ones are over.
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

    /// A client calls the group.
    pub fn called(&mut self, group: GroupId) {
        self.called.insert(group);
    }

    /// A node installed a view with these synced replicas.
    pub fn view(&mut self, by: Member, group: GroupId, at: (RingId, u64), synced: Vec<Member>) {
        self.pending.retain(|&(of, member)| of != group || synced.contains(&member));
        let views = self.views.entry(group).or_default();
        for view in views.iter_mut().filter(|view| view.at <= at) {
            view.told.insert(by);
        }
        // While nobody has the state, those of the last view that had somebody are waited for.
        if !synced.is_empty() && views.iter().all(|view| view.at != at) {
            let left = |member: &&Member| self.leaving.contains(&(group, **member));
            let gone = synced.iter().filter(left).copied().collect();
            views.push(View { at, synced, gone, told: BTreeSet::from([by]) });
            views.sort_by_key(|view| view.at);
        }
        // Only when all of its component know of a view can nobody begin with an older one. If
        // those who had the state in it died before anybody knew of it, the group goes on from who
        // had it before.
        let settled = |view: &&View| {
            let known = self.components.get(&view.at.0).is_some_and(|members| {
                let knows = |m: &Member| view.told.contains(m) || !self.alive.contains(m);
                members.iter().all(knows)
            });
            known && self.keeps(group, view, None)
        };
        let views = self.views.get(&group).into_iter().flatten();
        if let Some(newest) = views.filter(settled).map(|view| view.at).max() {
            self.views.entry(group).or_default().retain(|view| view.at >= newest);
        }
    }

    /// So many of those who had the state by this view stay, without the victim, that the group can
    /// go on.
    fn keeps(&self, group: GroupId, view: &View, victim: Option<Member>) -> bool {
        let seated = |member: &Member| {
            let mut later = self.components.range((Excluded(view.at.0), Unbounded));
            victim.is_none() || later.all(|(_, members)| members.contains(member))
        };
        let stays = |member: &&Member| {
            let lives = self.alive.contains(member) && Some(**member) != victim;
            lives && !view.gone.contains(member) && seated(member)
        };
        let left = view.synced.iter().filter(stays).count();
        let half = view.synced.len().div_ceil(2);
        let votes = victim.is_some() && self.voting.contains(&group);
        left >= match votes {
            true => half.max(2),
            false if self.by_all.contains(&group) => 1,
            false => half,
        }
    }

    /// The synced replicas of a group by the newest view that has any, in order of rank.
    pub fn newest(&self, group: GroupId) -> &[Member] {
        self.views.get(&group).and_then(|views| views.last()).map_or(&[], |view| &view.synced)
    }

    /// So many others have the group's state by the newest view, and are neither stopped nor cut
    /// off. `away`: the nodes that are.
    fn others(&self, group: GroupId, victim: Member, away: &[NodeId]) -> usize {
        let near = |member: &&Member| {
            let lives = self.alive.contains(member) && **member != victim;
            lives && !away.contains(&member.node) && !self.leaving.contains(&(group, **member))
        };
        self.newest(group).iter().filter(near).count()
    }

    /// This replica of a group may go by its own will: another that has the state is there.
    pub fn spares(&self, group: GroupId, victim: Member, away: &[NodeId]) -> bool {
        self.others(group, victim, away) > 0
    }

    /// The same for a node with all its replicas. If not all is `whole`, somebody may be cut off
    /// before it has gone.
    pub fn spares_all_of(&self, victim: Member, away: &[NodeId], whole: bool) -> bool {
        let least = if whole { 1 } else { 2 };
        let mut hosted = self.hosted_by(victim);
        hosted.all(|group| self.others(group, victim, away) >= least)
    }

    fn hosted_by(&self, member: Member) -> impl Iterator<Item = GroupId> + '_ {
        let has = move |views: &[View]| views.iter().any(|view| view.synced.contains(&member));
        self.views.iter().filter(move |(_, views)| has(views)).map(|(&group, _)| group)
    }

    /// A node is told to leave, and is as good as dead.
    pub fn leaves(&mut self, member: Member) {
        self.died(member);
        let groups: Vec<GroupId> = self.hosted_by(member).collect();
        self.pending.extend(groups.into_iter().map(|group| (group, member)));
    }

    /// A node gives its replica of a group up.
    pub fn unhosted(&mut self, group: GroupId, member: Member) {
        self.leaving.insert((group, member));
        self.pending.insert((group, member));
        for view in self.views.get_mut(&group).into_iter().flatten() {
            view.gone.push(member);
        }
    }

    /// It hosts the group again. False if it has not given it up.
    pub fn hosted(&mut self, group: GroupId, member: Member) -> bool {
        self.pending.remove(&(group, member));
        self.leaving.remove(&(group, member))
    }

    /// Its program has died, and it goes on with the next one, since it alone has the state.
    pub fn revived(&mut self, group: GroupId, member: Member) {
        self.hosted(group, member);
        for view in self.views.get_mut(&group).into_iter().flatten() {
            view.gone.retain(|gone| *gone != member);
        }
    }

    /// The program of this replica may die: it alone has the state, and stays, or another that has
    /// it is there.
    pub fn may_fall(&self, group: GroupId, victim: Member, away: &[NodeId]) -> bool {
        let newest = self.newest(group);
        let alone = newest.iter().all(|member| *member == victim);
        let all_live = newest.iter().all(|member| self.alive.contains(member));
        all_live && (alone || self.spares(group, victim, away))
    }

    /// Somebody is about to leave a group: were the others struck out now, the last one would
    /// leave, and the group with it.
    pub fn pending(&self) -> bool {
        !self.disks && !self.pending.is_empty()
    }

    /// It is giving its replica up.
    pub fn is_leaving(&self, group: GroupId, member: Member) -> bool {
        self.leaving.contains(&(group, member))
    }

    /// The promise still holds when this node's life ends now.
    pub fn covers(&self, victim: Member) -> bool {
        if self.disks {
            return true;
        }
        let lives = |member: &Member| self.alive.contains(member) && *member != victim;
        let quorate = self.components.values().all(|members| {
            let left = members.iter().filter(|member| lives(member)).count();
            let first = members.first().is_some_and(lives);
            2 * left > members.len() || 2 * left == members.len() && first
        });
        let knowing = self.seated.iter().filter(|member| lives(member)).count();
        let majority = self.configured / 2 + 1;
        let mut views =
            self.views.iter().flat_map(|(group, all)| all.iter().map(move |v| (group, v)));
        let kept = views.all(|(group, view)| {
            let concerns = self.called.contains(group) && view.synced.contains(&victim);
            !concerns || self.keeps(*group, view, Some(victim))
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
        let mut promise = Promise::new(5, Vec::new(), false);
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
            assert!(promise.covers(member(node)));
            promise.died(member(node));
        }
        assert!(!promise.covers(member(3)));
    }

    const GROUP: GroupId = GroupId(7);

    #[test]
    fn half_of_the_synced_replicas_stay_whoever_is_away() {
        let mut promise = five();
        promise.called(GROUP);
        promise.view(member(1), GROUP, (ring(1), 3), vec![member(2), member(4)]);
        promise.died(member(4));
        assert!(!promise.covers(member(2)), "it alone has what was answered");
        promise.view(member(1), GROUP, (ring(1), 2), vec![member(1), member(3)]);
        assert!(!promise.covers(member(2)), "an older view says nothing of that");
        promise.view(member(1), GROUP, (ring(1), 4), vec![]);
        assert!(!promise.covers(member(2)), "it alone can bring the state back");
        assert!(promise.covers(member(1)));
        let mut all = Promise { by_all: vec![GROUP], ..five() };
        all.called(GROUP);
        all.view(member(1), GROUP, (ring(1), 3), vec![member(1), member(2), member(3)]);
        all.died(member(1));
        assert!(all.covers(member(2)), "one is enough");
    }

    #[test]
    fn an_older_view_counts_until_all_know_the_next() {
        let mut promise = five();
        promise.called(GROUP);
        promise.view(member(2), GROUP, (ring(1), 1), vec![member(2)]);
        promise.view(member(2), GROUP, (ring(1), 2), vec![member(2), member(4)]);
        assert!(!promise.covers(member(2)), "4 may not have all from before it was synced");
        for node in [1, 3, 4, 5] {
            promise.view(member(node), GROUP, (ring(1), 2), vec![member(2), member(4)]);
        }
        assert!(promise.covers(member(2)));
    }

    /// Seed 2734 of the world of styles: the only replica with the state died while a component
    /// without the other one was installed.
    #[test]
    fn an_older_view_counts_while_of_the_newest_too_few_live() {
        let mut promise = five();
        promise.called(GROUP);
        for node in 1..=5 {
            promise.view(member(node), GROUP, (ring(1), 1), vec![member(2), member(4)]);
        }
        assert!(promise.covers(member(2)), "4 has the state, too");
        promise.died(member(2));
        for node in [1, 3, 5, 4] {
            promise.view(member(node), GROUP, (ring(1), 2), vec![member(2)]);
        }
        assert!(!promise.covers(member(4)), "it alone has it");
        for node in [1, 3, 5, 4] {
            promise.view(member(node), GROUP, (ring(1), 3), vec![member(1), member(4)]);
        }
        assert!(promise.covers(member(4)));
    }

    #[test]
    fn of_a_group_that_was_never_called_nothing_can_be_lost() {
        let mut promise = five();
        promise.view(member(1), GROUP, (ring(1), 1), vec![member(2)]);
        assert!(promise.covers(member(2)));
        promise.called(GROUP);
        assert!(!promise.covers(member(2)));
    }

    #[test]
    fn who_leaves_leaves_somebody_behind() {
        let mut promise = five();
        promise.view(member(1), GROUP, (ring(1), 1), vec![member(2), member(4)]);
        assert!(promise.spares(GROUP, member(2), &[]));
        assert!(!promise.spares(GROUP, member(2), &[NodeId(4)]));
        assert!(promise.spares_all_of(member(2), &[], true));
        assert!(!promise.spares_all_of(member(2), &[], false), "4 could be cut off meanwhile");
        promise.leaves(member(2));
        assert!(promise.pending());
        promise.view(member(1), GROUP, (ring(1), 2), vec![member(4)]);
        assert!(!promise.pending());
    }

    #[test]
    fn whose_program_has_died_keeps_nothing_until_the_next_one_goes_on() {
        let mut promise = five();
        promise.called(GROUP);
        promise.view(member(1), GROUP, (ring(1), 1), vec![member(2), member(4)]);
        assert!(promise.may_fall(GROUP, member(2), &[]));
        assert!(!promise.may_fall(GROUP, member(2), &[NodeId(4)]), "4 may be cut off by then");
        promise.view(member(1), GROUP, (ring(1), 2), vec![member(2)]);
        assert!(promise.may_fall(GROUP, member(2), &[]), "it alone has the state");
        promise.unhosted(GROUP, member(2));
        assert!(promise.pending());
        promise.revived(GROUP, member(2));
        assert!(!promise.pending() && !promise.is_leaving(GROUP, member(2)));
        assert!(!promise.covers(member(2)) && promise.covers(member(1)));
        promise.died(member(2));
        assert!(!promise.may_fall(GROUP, member(2), &[]));
    }

    #[test]
    fn who_is_about_to_be_struck_out_keeps_nothing() {
        let mut promise = five();
        promise.called(GROUP);
        promise.view(member(1), GROUP, (ring(1), 9), vec![member(3), member(4)]);
        assert!(promise.covers(member(4)));
        promise.configuration(ring(2), &[1, 2, 4, 5].map(member));
        assert!(!promise.covers(member(4)), "n3 is not in the next component");
    }

    #[test]
    fn one_of_two_that_vote_does_not_die() {
        let mut promise = five();
        promise.called(GROUP);
        promise.view(member(1), GROUP, (ring(1), 9), vec![member(3), member(4)]);
        assert!(promise.covers(member(4)));
        assert!(!promise.voting(vec![GROUP]).covers(member(4)));
    }

    #[test]
    fn before_the_first_component_nobody_dies() {
        let mut promise = Promise::new(3, Vec::new(), false);
        promise.born(member(1));
        assert!(!promise.covers(member(1)));
    }

    #[test]
    fn a_configuration_that_may_have_got_the_quorum_counts() {
        let mut promise = five();
        promise.configuration(ring(2), &[member(1), member(2), member(3)]);
        promise.died(member(1));
        assert!(!promise.covers(member(2)), "two of the three of the attempt");
        promise.component(ring(2), member(2));
        promise.component(ring(2), member(3));
        promise.configuration(ring(3), &[member(2), member(3), member(4), member(5)]);
        assert!(!promise.covers(member(2)), "one of the two that are left of the component");
        for node in 2..=5 {
            promise.component(ring(3), member(node));
        }
        assert!(promise.covers(member(4)));
    }
}
