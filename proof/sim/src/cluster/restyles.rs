//! Groups get other styles while they serve, and while faults happen.

use wire::{Duration, GroupId};

use super::{Cluster, Extra};
use crate::check::Verdict;

impl Cluster {
    pub(super) fn plan_restyle(&mut self) {
        if let Some(every) = self.options.restyles {
            let wait = self.draws.restyles.span(Duration::from_millis(1), every * 2);
            self.fabric.later(wait, Extra::Restyle);
        }
    }

    /// A node is asked for another style; now and then two at once, with perhaps different styles.
    pub(super) fn restyle_some(&mut self) -> Verdict {
        if self.course.is_calm() {
            return Ok(());
        }
        self.plan_restyle();
        let group = self.draws.restyles.count(0, self.options.groups.len() - 1);
        let times = if self.draws.restyles.one_in(4) { 2 } else { 1 };
        (0..times).try_for_each(|_| self.restyle_one(group))
    }

    fn restyle_one(&mut self, group: usize) -> Verdict {
        let asked = self.draws.restyles.count(0, self.options.nodes - 1);
        let plan = &self.options.groups[group];
        if plan.styles.is_empty() {
            return Ok(());
        }
        let style = self.draws.restyles.pick(&plan.styles);
        let id = GroupId::of(&plan.name);
        let now = self.fabric.local(asked);
        let Some(process) = self.fabric.running(asked) else { return Ok(()) };
        let begun = process.restyle(now, id, style);
        self.fabric.say(|| format!("node {} is asked to make {id} {style}: {begun:?}", asked + 1));
        if begun.is_ok() {
            self.watch.restyles.proposed(self.fabric.now(), self.fabric.member(asked), id);
        }
        self.drain(asked)
    }
}
