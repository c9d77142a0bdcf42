//! Primaries are moved while the cluster serves, and while faults happen.

use client::{CallError, CallId, Cause, Event};
use wire::{Duration, GroupId, Time};

use super::{Bytes, Cluster, Extra};
use crate::check::{Verdict, moves};
use crate::fabric::node_id;

/// An attempt that was begun while a group was still being made may wait this long.
const SETTLING: Duration = Duration::from_millis(300);

impl Cluster {
    pub(super) fn plan_move(&mut self) {
        if let Some(every) = self.options.moves {
            let wait = self.load.span(Duration::from_millis(1), every * 2);
            self.fabric.later(wait, Extra::Move);
        }
    }

    /// Somebody is asked for a move; now and then two at once, which need not want the same.
    pub(super) fn move_some(&mut self) -> Verdict {
        if self.course.is_calm() {
            return Ok(());
        }
        self.plan_move();
        if self.options.smooth && self.course.whole.is_none() {
            let amiss = self.missing().or_else(|| self.busy());
            self.course.whole = amiss.is_none().then(|| self.fabric.now());
            return Ok(());
        }
        let group = self.load.count(0, self.options.groups.len() - 1);
        let times = if self.load.one_in(4) { 2 } else { 1 };
        (0..times).try_for_each(|_| self.move_one(group))
    }

    fn move_one(&mut self, group: usize) -> Verdict {
        let plan = &self.options.groups[group];
        let (draw, nodes) = (&mut self.load, self.options.nodes);
        let asked = draw.count(0, nodes - 1);
        // Mostly to a node that may have a replica.
        let to = if draw.one_in(8) { draw.count(0, nodes - 1) } else { draw.pick(&plan.hosts) };
        let id = GroupId::of(&plan.name);
        let now = self.fabric.local(asked);
        let Some(process) = self.fabric.running(asked) else { return Ok(()) };
        let begun = process.move_primary(now, id, node_id(to));
        self.fabric.say(|| {
            format!("node {} is asked to move {id} to node {}: {begun:?}", asked + 1, to + 1)
        });
        self.drain(asked)
    }

    /// Nothing but moves happens since the groups were whole, and this client hears of them.
    fn is_smooth(&self, client: usize, now: Time) -> bool {
        self.customers[client].demanding
            && self.options.smooth
            && self.course.whole.is_some_and(|whole| now > whole + SETTLING)
    }

    /// A call may wait long behind calls whose handlers call a group, and for all that this group
    /// orders.
    fn is_slow(&self, group: GroupId) -> bool {
        let plan = self.options.groups.iter().find(|plan| GroupId::of(&plan.name) == group);
        plan.is_some_and(|plan| plan.callee.is_some())
    }

    /// A client says something.
    pub(super) fn noticed(&self, client: usize, now: Time, event: &Event) -> Verdict {
        match event {
            Event::FailedOver { group, cause: Cause::Silent, .. } if self.is_slow(*group) => Ok(()),
            Event::FailedOver { cause: cause @ (Cause::Silent | Cause::Lost), .. }
                if self.is_smooth(client, now) =>
            {
                moves::noticed(&format!("{event:?}, for {cause:?}"))
            }
            _ => Ok(()),
        }
    }

    /// A call has ended.
    pub(super) fn missed(
        &self,
        client: usize,
        now: Time,
        call: CallId,
        result: &Result<Bytes, CallError>,
    ) -> Verdict {
        match result {
            Err(error @ (CallError::DeadlineExceeded | CallError::NoReplica))
                if self.is_smooth(client, now) =>
            {
                moves::noticed(&format!("{call:?}: {error}"))
            }
            _ => Ok(()),
        }
    }
}
