//! Value faults: a replica of a voting group answers something else, asks another group something
//! else, has something else in its state, or hangs.

use wire::{GroupId, Member};

use super::{Cluster, Extra};
use crate::check::Verdict;
use crate::check::votes::FOUND_WITHIN;
use crate::executor::Lie;
use crate::fabric::place_of;

impl Cluster {
    /// The next lie in each group that has liars.
    pub(super) fn plan_lies(&mut self) {
        for group in 0..self.options.groups.len() {
            self.plan_lie(group);
        }
    }

    fn plan_lie(&mut self, group: usize) {
        if let (Some(every), Some(draw)) =
            (self.options.groups[group].lies, self.draws.lies.get_mut(group))
        {
            let wait = draw.span(every / 8, every * 2);
            self.fabric.later(wait, Extra::Lie(group));
        }
    }

    /// One replica of a group is to lie, if a majority of the others can tell.
    pub(super) fn lie(&mut self, group: usize) {
        if self.course.is_calm() {
            return;
        }
        self.plan_lie(group);
        let id = GroupId::of(&self.options.groups[group].name);
        let synced = self.watch.promise.newest(id).to_vec();
        let good = synced.len() >= 3
            && synced.iter().all(|member| self.serves(*member))
            && !self.watch.promise.pending()
            && self.is_whole()
            && self.is_one_ring()
            && synced.iter().all(|member| !self.is_faulty(*member, id));
        if !good {
            return;
        }
        let calls = self.options.groups[group].callee.is_some();
        let draw = &mut self.draws.lies[group];
        let lies: &[Lie] = if calls { &Lie::OF_CALLERS } else { &Lie::ALL };
        let (liar, lie) = (draw.pick(&synced), draw.pick(lies));
        if let Some(executor) = self.executors.get_mut(place_of(liar.node), id) {
            self.fabric.say(|| format!("FAULT {lie:?} of {liar} in {id}"));
            executor.lie = Some(lie);
            if lie == Lie::Hang {
                self.watch.votes.hangs(liar, id);
            }
        }
    }

    /// This life goes on, and nothing holds it up.
    pub(super) fn serves(&self, member: Member) -> bool {
        let host = &self.fabric.hosts[place_of(member.node)];
        host.runs() && host.incarnation == member.incarnation
    }

    fn is_faulty(&self, member: Member, group: GroupId) -> bool {
        let executor = self.executors.get(place_of(member.node), group);
        let spoilt = executor.is_none_or(|executor| executor.lie.is_some());
        spoilt || self.watch.votes.is_unnoticed(member, group)
    }

    /// The faults are over: who hangs and owes no answer goes on, and so does who has left, or is
    /// alone: nobody could notice.
    pub(super) fn end_lies(&mut self) {
        for node in 0..self.options.nodes {
            let me = self.fabric.member(node);
            let hung: Vec<GroupId> = self
                .executors
                .of_node(node)
                .filter(|(group, executor)| {
                    let synced = self.watch.promise.newest(*group);
                    let unseen = !executor.has_calls() || synced.len() < 2 || !synced.contains(&me);
                    executor.lie == Some(Lie::Hang) && unseen
                })
                .map(|(group, _)| group)
                .collect();
            for group in hung {
                self.executors.get_mut(node, group).expect("it hangs").lie = None;
                self.begin(node, group);
            }
        }
    }

    /// A replica that was to lie executes: it lies only as one of many.
    pub(super) fn may_lie(&self, by: Member, group: GroupId) -> bool {
        let synced = self.watch.promise.newest(group);
        synced.len() >= 3 && synced.contains(&by) && self.is_whole() && self.is_one_ring()
    }

    /// A replica has lied: nothing else strikes until it is found out, or should be.
    pub(super) fn lied(&mut self, by: Member, group: GroupId, position: u64, lasting: bool) {
        let now = self.fabric.now();
        self.watch.votes.lied(now, by, group, position, lasting);
        self.course.spare_until(now + FOUND_WITHIN);
        let ring = self.watch.component(by);
        self.fabric.later(FOUND_WITHIN, Extra::FoundOut { group, by, ring, lied: now });
    }

    /// By now it should be known.
    pub(super) fn found_out(&self, by: Member, group: GroupId, lied: wire::Time) -> Verdict {
        if (0..self.options.nodes).any(|node| self.has_to_say(node)) {
            return Ok(()); // it is known when the votes have their places: seed 9318
        }
        self.watch.votes.found_in_time(group, by, lied)
    }

    /// Messages of this node wait for the ring: votes wait behind whatever else it has to say.
    pub(super) fn has_to_say(&self, node: usize) -> bool {
        let stack = self.fabric.hosts[node].process.as_ref();
        let buffers = stack.and_then(|stack| stack.ring_status().buffers);
        buffers.is_some_and(|buffers| buffers.messages.now > 0)
    }
}
