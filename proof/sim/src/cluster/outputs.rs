//! The outputs of nodes.

use engine::{Event, Output, Stack};
use wire::system::{CELL_ID, MANAGER_ID};
use wire::{GroupId, Malformed, Member};

use super::Cluster;
use crate::check::{Verdict, bounded, demand};
use crate::fabric::{node_id, place_of};

impl Cluster {
    /// Takes all that a node puts out.
    pub(super) fn drain(&mut self, node: usize) -> Verdict {
        let me = self.fabric.member(node);
        let mut count = 0;
        while let Some(output) =
            self.fabric.hosts[node].process.as_mut().and_then(Stack::poll_output)
        {
            count += 1;
            bounded::outputs(me, count, self.options.nodes)?;
            self.output(node, me, output)?;
        }
        if self.carry_on(node)? || self.pump_disk(node)? {
            return self.drain(node);
        }
        self.fabric.settle(node);
        Ok(())
    }

    fn output(&mut self, node: usize, me: Member, output: Output) -> Verdict {
        let now = self.fabric.now();
        match output {
            Output::Send { to, datagram, .. } => {
                bounded::datagram(me, datagram.len(), wire::limits::DEFAULT_DATAGRAM)?;
                let to = self.hosts_of(node, to);
                if let Some(to) = to.iter().next() {
                    self.watch.wait.sent(now, node_id(to), &datagram)?;
                }
                self.fabric.send(node, to, &datagram);
            }
            Output::Frame { caller, frame } => self.frame_from_node(node, me, caller, &frame)?,
            Output::Place { name, .. } => {
                return demand(false, "clients call groups alone", || name);
            }
            Output::Away(call) => {
                return demand(false, "services call groups of their cell", || call.group);
            }
            Output::Close { caller } => self.close_from_node(node, caller),
            Output::Run { group: MANAGER_ID, command } => self.keep_cluster_state(node, command)?,
            Output::Run { group: CELL_ID, command } => self.keep_book(node, command)?,
            // Its service is gone, so this command is for nobody.
            Output::Run { group, .. } if !self.executors.has(node, group) => {}
            Output::Run { group, command } => {
                self.watch.given(me, group, &command)?;
                let component = self.watch.history_of(me, group);
                if let Some(executor) = self.executors.get_mut(node, group) {
                    executor.push(command, component);
                }
                self.begin(node, group);
            }
            Output::Resume { group, ticket, outcome } => {
                self.resumed(node, group, ticket, &outcome);
            }
            Output::Own { number, outcome } if self.celling.is_some() => {
                self.order_ended(node, number, &outcome)?;
            }
            Output::Own { number, outcome } => self.own_ended(node, number, &outcome),
            Output::Probe(to) => self.fabric.probe(node, to),
            Output::Key(command) => self.key_command(node, command),
            Output::Keep(roster) => self.keep_roster(node, roster),
            Output::Known(_) => {}
            Output::Nodes(list) => self.places_changed(node, list),
            Output::Persist(kept) => self.disks.of(node).keep(kept),
            Output::Snapshot { strand, covers, place, state } => {
                self.disks.of(node).keep_snapshot(strand, (covers, place), state);
            }
            Output::Fetch { transfer, from, .. } => self.fetch(node, transfer, from),
            Output::Replace(group) => self.replace(node, group),
            Output::Revive(group) => self.revive(node, group)?,
            Output::Forget(group) => self.forget_kept(node, group),
            Output::Bench(result) => self.benched(*result)?,
            Output::Moved { group, to, outcome } => {
                self.fabric.say(|| format!("{me}: {group} to {to}: {outcome:?}"));
                self.watch.move_ended(me, group, to, &outcome)?;
                self.summary.moves += u64::from(outcome.is_ok());
            }
            Output::Restyled { group, style, outcome } => {
                self.fabric.say(|| format!("{me}: {group} is to be {style}: {outcome:?}"));
                self.summary.restyles += u64::from(outcome.is_ok());
                let at = (me, self.watch.component(me));
                self.watch.restyles.ended(now, at, (group, style), outcome.ok())?;
            }
            // Nobody asks for any here.
            Output::Saved { .. } | Output::Restored { .. } => {}
            Output::Event(event) => self.told(node, me, event)?,
        }
        Ok(())
    }

    /// A node tells what has happened.
    fn told(&mut self, node: usize, me: Member, event: Event) -> Verdict {
        let now = self.fabric.now();
        self.fabric.note(10, node, [0, 0]);
        self.fabric.say(|| format!("{me} says {event:?}"));
        if let Event::Deviated { group, member, .. } = &event {
            let place = place_of(member.node);
            let executor = self.executors.get(place, *group);
            let executes = executor.is_some_and(|executor| !executor.is_idle());
            let busy = executes || self.has_to_say(place);
            self.watch.votes.busy(*member, *group, busy);
        }
        // A datagram for a node's life before may come to one with an older program.
        if matches!(event, Event::Malformed(Malformed::Version { .. })) && self.programs.is_some() {
            return Ok(());
        }
        self.watch.event(now, me, &event)?;
        self.told_of_versions(node, me, &event)?;
        self.told_of_growth(node, me, &event)?;
        self.told_of_cell(node, &event)?;
        match event {
            Event::View { group, view, .. }
                if self.deployed().iter().any(|plan| GroupId::of(&plan.name) == group) =>
            {
                self.course.script.iter_mut().for_each(|script| script.view(group, view));
            }
            Event::Ranked { group, .. } => self.ranked(me, group)?,
            Event::Quorum { quorate: true, .. } => self.course.form(now),
            Event::Left => self.left(node),
            Event::Transferred { .. } => self.summary.transfers += 1,
            Event::NestedCopy { .. } => self.summary.nested_copies += 1,
            _ => {}
        }
        Ok(())
    }
}
