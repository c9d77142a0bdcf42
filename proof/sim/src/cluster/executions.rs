//! The replicas' executions, one command after the other, and the reports of them to the checkers.

use engine::Executed;
use wire::GroupId;

use super::{Cluster, Extra};
use crate::check::{Verdict, demand, served};
use crate::executor::{Drift, Effect, Lie};
use crate::service::extend;
use crate::watch::Step as Growth;

impl Cluster {
    /// A replica's command ends: the checkers hear of it, and so does the stack.
    pub(super) fn executed(&mut self, node: usize, group: GroupId, serial: u64) -> Verdict {
        let me = self.fabric.member(node);
        // One that is gone, with its process or alone, ends nothing.
        let may_lie = self.may_lie(me, group);
        let drifts = self.executors.get(node, group).is_some_and(|executor| executor.drift.due);
        let may_drift = drifts && self.may_drift(me, group);
        let executor = self.executors.of_serial(node, group, serial);
        let Some(executor) = executor else { return Ok(()) };
        executor.lie.take_if(|lie| *lie != Lie::Hang && !may_lie);
        executor.drift.due &= may_drift;
        if let Some(dying) = self.is_deadly(node, group) {
            return self.dies(node, serial, dying);
        }
        let Some(executor) = self.executors.get_mut(node, group) else { return Ok(()) };
        let Some(done) = executor.end() else { return Ok(()) };
        let alone = executor.is_passive();
        let log = &self.executors.at(node, group).log;
        match done.effect {
            Effect::Executed { entry, component, before, lie, drifted } => {
                let latest = self.fabric.latest_wall();
                let (place, after) = (log.entries.len() as u64, log.digest);
                let viewed = log.viewed;
                self.summary.executed += 1;
                self.fabric.note(8, node, [group.0, after]);
                self.fabric.say(|| {
                    let (client, number) = (entry.client, entry.number);
                    format!("{me} executes #{place} of {group}: {client} {number}, {after:016x}")
                });
                if let Some((_, Executed::Reply(outcome))) = &done.answer {
                    let said = served::said(outcome);
                    self.watch.served.executed(group, entry.client, entry.number, said);
                }
                if lie.is_some() || self.watch.votes.is_wrong(me, group) {
                    let lasting = lie != Some(Lie::Answer);
                    let position = place + self.executors.at(node, group).asks();
                    self.lied(me, group, position, lasting);
                }
                let growth = Growth { component, place, before, after, latest };
                self.watch.executed(me, group, &entry, &growth, alone)?;
                self.watch.viewed(me, group, after, viewed)?;
                self.is_late(node, group, (entry.client, entry.number));
                if drifted {
                    self.drifted(me, group);
                }
            }
            Effect::Updated(new, component) => {
                let latest = self.fabric.latest_wall();
                let first = log.entries.len() - new.len();
                self.fabric.note(14, node, [group.0, log.digest]);
                self.fabric
                    .say(|| format!("{me} is told what became of {group} after #{first}: {new:?}"));
                for (place, (entry, before)) in (first as u64 + 1..).zip(new) {
                    let after = extend(before, &entry);
                    let growth = Growth { component, place, before, after, latest };
                    self.watch.executed(me, group, &entry, &growth, false)?;
                }
            }
            Effect::Broken(reason) => {
                demand(false, "updates", || format!("{me} in {group}: {reason}"))?;
            }
            Effect::Replaced => {
                self.fabric.note(9, node, [group.0, log.digest]);
                let length = log.entries.len();
                self.fabric.say(|| format!("{me} has a history of {length} of {group}"));
                self.watch.replaced(me, group, &log.entries)?;
                let executor = self.executors.get_mut(node, group);
                executor.into_iter().for_each(|executor| executor.drift = Drift::default());
            }
            Effect::Digest(number, state) => {
                let now = self.fabric.local(node);
                if let Some(stack) = &mut self.fabric.hosts[node].process {
                    stack.handle_digest(now, group, number, state);
                }
            }
            Effect::Asks(call, lie) => return self.asks(node, group, call, lie),
            Effect::None => {}
        }
        self.begin(node, group);
        let now = self.fabric.local(node);
        if let (Some((ticket, executed)), Some(stack)) =
            (done.answer, &mut self.fabric.hosts[node].process)
        {
            stack.handle_executed(now, group, ticket, executed);
        }
        Ok(())
    }

    /// The next command of a replica begins, if one waits.
    pub(super) fn begin(&mut self, node: usize, group: GroupId) {
        let longest = self.executors.span(node, self.options.execution);
        let Some(executor) = self.executors.get_mut(node, group) else { return };
        if let Some(span) = executor.begin(longest, &mut self.load) {
            let serial = executor.serial;
            let at = self.fabric.now() + span;
            self.fabric.deliver(at, node, Extra::Executed(group, serial));
        }
        self.look_for_hang(node, group);
    }
}
