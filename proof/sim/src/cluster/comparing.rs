//! States that drift apart: what a service keeps becomes another thing at one replica, as by a clock
//! or a random number of its own. Nothing that it answers shows it.

use wire::ordered::{About, Style};
use wire::versions::WHOLE;
use wire::{GroupId, Member, ViewNumber};

use super::{Cluster, Extra};
use crate::check::{Verdict, apart};
use crate::fabric::place_of;

impl Cluster {
    /// The next drift, if there are any.
    pub(super) fn plan_drift(&mut self) {
        if let Some(every) = self.options.compare.and_then(|plan| plan.drifts) {
            let wait = self.draws.drifts.span(every / 8, every * 2);
            self.fabric.later(wait, Extra::Drift);
        }
    }

    /// The state of one replica is to drift with its next call, if the others show that.
    pub(super) fn drift(&mut self) {
        if self.course.is_calm() {
            return;
        }
        self.plan_drift();
        let group = self.draws.drifts.count(0, self.options.groups.len() - 1);
        let id = GroupId::of(&self.options.groups[group].name);
        let synced = self.watch.promise.newest(id).to_vec();
        if !synced.iter().all(|member| self.may_drift(*member, id)) || synced.is_empty() {
            return;
        }
        let of = self.draws.drifts.pick(&synced);
        if let Some(executor) = self.executors.get_mut(place_of(of.node), id) {
            self.fabric.say(|| format!("FAULT {of} drifts in {id}"));
            executor.drift.due = true;
        }
    }

    /// All is well with this replica and the others, and none has drifted.
    pub(super) fn may_drift(&self, of: Member, group: GroupId) -> bool {
        let synced = self.watch.promise.newest(group);
        let plan = self.options.groups.iter().find(|plan| GroupId::of(&plan.name) == group);
        let lies = plan.is_none_or(|plan| plan.lies.is_some());
        let fresh = |member: &Member| {
            let executor = self.executors.get(place_of(member.node), group);
            self.serves(*member) && executor.is_some_and(|executor| executor.drift.spot == 0)
        };
        synced.len() >= 2
            && synced.contains(&of)
            && synced.iter().all(fresh)
            && !lies
            && !self.watch.promise.pending()
            && self.is_whole()
            && self.is_one_ring()
            && self.compared_view(of, group).is_some()
    }

    /// The group's view at this life, if its replicas are compared in it.
    fn compared_view(&self, of: Member, group: GroupId) -> Option<ViewNumber> {
        let process = self.fabric.hosts[place_of(of.node)].process.as_ref()?;
        let status = process.status();
        let it = status.groups.iter().find(|it| GroupId::of(&it.name) == group)?;
        let style = it.options.style;
        let compared = matches!(style, Style::SemiActive | Style::Active | Style::Voting);
        let two = it.replicas.iter().filter(|replica| replica.synced).count() > 1;
        (compared && two && process.level() >= WHOLE).then_some(it.view)
    }

    /// The state has drifted: nothing else strikes until that is known, or should be.
    pub(super) fn drifted(&mut self, by: Member, group: GroupId) {
        self.watch.spoilt.apart.drifted(group);
        let Some((plan, view)) = self.options.compare.zip(self.compared_view(by, group)) else {
            return;
        };
        let span = plan.every * 2 + apart::WITHIN;
        self.course.spare_until(self.fabric.now() + span);
        let ring = self.watch.component(by);
        self.fabric.later(span, Extra::DriftFound { group, by, ring, view });
    }

    /// By now it should be known.
    pub(super) fn drift_found(&self, by: Member, group: GroupId, view: ViewNumber) -> Verdict {
        let node = place_of(by.node);
        let drifts = self.executors.get(node, group).is_some_and(|it| it.drift.spot != 0);
        let busy = (0..self.options.nodes).any(|node| self.has_to_say(node))
            || self.executors.of_group(group).any(|executor| executor.has_calls());
        let there = drifts && self.serves(by) && self.compared_view(by, group) == Some(view);
        if !there || busy || !self.is_whole() || !self.is_one_ring() {
            return Ok(());
        }
        let process = self.fabric.hosts[node].process.as_ref().expect("it serves");
        let notes = process.state_notes(group);
        let told = notes.iter().any(|note| note.about == About::Apart && note.member == by);
        apart::found_in_time(by, group, told)
    }
}
