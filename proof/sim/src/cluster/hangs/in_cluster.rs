//! How services hang in a cluster, and are found out.

use wire::{Duration, GroupId, Member, RingId};

use super::{AGAIN, STALL};
use crate::check::{Verdict, hung};
use crate::cluster::{Cluster, Extra};
use crate::executor::Hang;
use crate::fabric::place_of;
use crate::faults::FaultKind;
use crate::options::GroupPlan;
use crate::strike::Relief;

impl Cluster {
    pub(in crate::cluster) fn plan_hang(&mut self) {
        if let Some(every) = self.options.hangs {
            let wait = self.draws.hangs.span(every / 4, every * 2);
            self.fabric.later(wait, Extra::Hang);
        }
    }

    /// Services of one group hang, if nothing else is wrong.
    pub(in crate::cluster) fn hang(&mut self) {
        if self.course.is_calm() {
            return;
        }
        self.plan_hang();
        let group = self.draws.hangs.count(0, self.options.groups.len() - 1);
        let id = GroupId::of(&self.options.groups[group].name);
        let mut synced = self.watch.promise.newest(id).to_vec();
        let well = |member: &Member| {
            let executor = self.executors.get(place_of(member.node), id);
            // A service with three long calls in a row, and nothing between them, would count as
            // hung.
            executor.is_some_and(|executor| executor.hang.is_none() && !executor.stalled)
        };
        let good = synced.len() >= 2
            && synced.iter().all(|member| self.serves(*member) && well(member))
            && !self.watch.promise.pending()
            && self.is_whole()
            && self.is_one_ring()
            && !self.options.faults.has(&[FaultKind::Flap, FaultKind::Ambush]);
        if !good {
            return;
        }
        let hang = if self.draws.hangs.one_in(2) { Hang::ForGood } else { Hang::Once(STALL) };
        // A replica without state is not missed by the others; where all hang, nobody serves.
        let stateless = self.options.stateless().contains(&id);
        let most = synced.len() - usize::from(stateless);
        let many = if self.draws.hangs.one_in(4) { self.draws.hangs.count(1, most) } else { 1 };
        for _ in 0..many {
            let victim = synced.remove(self.draws.hangs.count(0, synced.len() - 1));
            let node = place_of(victim.node);
            self.fabric.say(|| format!("FAULT {victim} in {id}: {hang:?}"));
            if hang == Hang::ForGood {
                self.watch.spoilt.hung.hangs(victim, id);
                self.course.spare_until(self.fabric.now() + hung::WITHIN * 2);
            }
            self.executors.get_mut(node, id).expect("it is well").hang = Some(hang);
            self.look_for_hang(node, id);
        }
    }

    /// If a service stands still with a call, that has to be found out.
    pub(in crate::cluster) fn look_for_hang(&mut self, node: usize, group: GroupId) {
        let by = self.fabric.member(node);
        // A nested call's deadline is its caller's, which may be three times as long.
        let calls = |plan: &GroupPlan| {
            plan.callee.as_ref().is_some_and(|(callee, _)| GroupId::of(callee) == group)
        };
        let called = self.options.groups.iter().any(calls);
        let within = if called { hung::WITHIN * 3 } else { hung::WITHIN };
        let Some(executor) = self.executors.get_mut(node, group) else { return };
        if !self.course.is_calm() && executor.begins_to_stand_still() {
            let (serial, ring) = (executor.serial, self.watch.component(by));
            self.fabric.later(within, Extra::HangFound { group, by, ring, serial });
        }
    }

    /// By now its replica should be out of the group.
    pub(in crate::cluster) fn hang_found(
        &mut self,
        group: GroupId,
        by: Member,
        ring: RingId,
        serial: u64,
    ) -> Verdict {
        let node = place_of(by.node);
        if self.course.is_calm() || self.fabric.hosts[node].paused || !self.is_one_ring() {
            return Ok(());
        }
        if self.has_to_say(node) {
            // The report that it is hung waits for the ring, behind the node's other messages.
            self.fabric.later(AGAIN, Extra::HangFound { group, by, ring, serial });
            return Ok(());
        }
        let executor = self.executors.get(node, group);
        let is_there = executor.is_some_and(|it| it.serial == serial && it.stands_still());
        let synced = self.watch.promise.newest(group);
        let spare = synced.contains(&by) && synced.len() >= 2;
        hung::found_in_time(by, group, is_there && spare)
    }

    /// A replica is out of its group because its service is hung: another takes its place.
    pub(in crate::cluster) fn replace(&mut self, node: usize, group: GroupId) {
        self.summary.demotions += 1;
        self.executors.remove(node, group);
        self.watch.promise.unhosted(group, self.fabric.member(node));
        // A deployed group's replica is replaced by its node, as the cluster state says.
        if self.deployed().iter().any(|plan| GroupId::of(&plan.name) == group) {
            return;
        }
        let index = self.options.groups.iter().position(|plan| GroupId::of(&plan.name) == group);
        let soon = self.draws.hangs.span(Duration::from_millis(1), Duration::from_millis(60));
        let index = index.expect("a group of this world");
        self.fabric.later(soon, Extra::Relief(Relief::Host(node, index)));
    }

    /// The faults are over: services that hang continue.
    pub(in crate::cluster) fn end_hangs(&mut self) {
        for node in 0..self.options.nodes {
            let all: Vec<GroupId> = self.executors.of_node(node).map(|(group, _)| group).collect();
            for group in all {
                self.executors.get_mut(node, group).expect("it is there").hang = None;
                self.begin(node, group);
            }
        }
    }
}
