//! Programs that serve replicas of this node, at the data plane: they come, are read and written,
//! and go.

use engine::{Begun, HostError};
use wire::ordered::GroupOptions;
use wire::{GroupId, Time};

use super::replicas::{Arrival, Hosting};
use crate::executor::{Executor, Standby};
use crate::poller::EventFlags;

impl Hosting<'_> {
    /// A program has shown its token.
    pub fn attach(&mut self, now: Time, name: String, options: GroupOptions, executor: Executor) {
        self.replicas.arrivals.push(Arrival { name, options, executor });
        self.take_arrivals(now);
    }

    /// Hosts the replicas of programs that have come; true if there was one. An arrival that has to
    /// wait until the last replica is out of its group is tried again in each turn.
    pub fn take_arrivals(&mut self, now: Time) -> bool {
        let mut any = false;
        for arrival in std::mem::take(&mut self.replicas.arrivals) {
            let Arrival { name, options, mut executor } = arrival;
            let group = GroupId::of(&name);
            let program = executor.process().is_some() || executor.standby().is_some();
            let hosted = match program {
                true => self.stack.host_program(now, &name, options),
                false => self.stack.host(now, &name, options),
            };
            match hosted {
                Ok(group) => {
                    any = true;
                    self.take_in(now, group, executor);
                    self.set_checkpoints(now, group);
                }
                Err(HostError::Twice)
                    if self.replicas.executors.get(&group).is_none_or(|before| before.leaving) =>
                {
                    self.replicas.arrivals.push(Arrival { name, options, executor });
                }
                Err(HostError::Twice) if executor.process().is_some() && self.wants(group) => {
                    any = true;
                    self.launched(now, group, executor);
                }
                Err(error) => dismiss(&mut executor, &error.to_string()),
            }
        }
        any
    }

    /// The service of the group's replica here is to run, and waits for its program.
    fn wants(&mut self, group: GroupId) -> bool {
        let standby = self.replicas.executors.get_mut(&group).and_then(Executor::standby);
        standby.is_some_and(|standby| standby.is_wanted())
    }

    /// The program of a replica that is hosted already has come: it is given what waited for it.
    fn launched(&mut self, now: Time, group: GroupId, executor: Executor) {
        let standby = self.replicas.executors.get_mut(&group).and_then(Executor::standby);
        let commands = standby.map(Standby::take).unwrap_or_default();
        self.take_in(now, group, executor);
        self.replicas.joined(group);
        for command in commands {
            let Some(executor) = self.replicas.executors.get_mut(&group) else { return };
            if executor.run(command).is_err() {
                return self.take_out_overloaded(now, group);
            }
        }
        self.replicas.is_unwritten(group);
    }

    /// Lets go of the replicas that have left their groups, and have answered everything.
    /// True if one is to end its group, which was deployed when it began to go.
    pub fn let_go(&mut self, now: Time) -> bool {
        let mut any = false;
        let parting = std::mem::take(&mut self.replicas.parting);
        for group in parting {
            if self.stack.is_parting(group) && !self.replicas.is_deployed(group) {
                self.stack.unhost(now, group);
                any = true;
            }
            if self.stack.has_left(group) && self.waits_for_a_stopped_program(group) {
                self.stack.abandon(now, group);
            }
            if self.stack.is_hosting(group) {
                self.replicas.parting.push(group);
            } else {
                self.replicas.remove(group);
            }
        }
        any
    }

    /// A replica without a program became primary on its way out: nobody starts a program that is
    /// stopped.
    fn waits_for_a_stopped_program(&mut self, group: GroupId) -> bool {
        self.replicas.executors.get(&group).is_some_and(|it| it.leaving) && self.wants(group)
    }

    fn take_in(&mut self, now: Time, group: GroupId, mut executor: Executor) {
        self.note_merges(group, &executor);
        let Some(process) = executor.process() else {
            self.replicas.executors.insert(group, executor);
            return;
        };
        if let Err(error) = process.register(self.poller) {
            dismiss(&mut executor, &format!("the node cannot wait for it: {error}"));
            return self.stack.abandon(now, group);
        }
        process.tether().hosted();
        self.replicas.polled.retain(|_, other| *other != group); // of an earlier start
        self.replicas.polled.insert(executor.serial, group);
        self.replicas.executors.insert(group, executor);
    }

    /// A program's socket can be read or written.
    pub fn handle_program(&mut self, now: Time, serial: u64, flags: EventFlags) {
        let Some(&group) = self.replicas.polled.get(&serial) else { return };
        let Some(executor) = self.replicas.executors.get_mut(&group) else { return };
        let Some(process) = executor.process() else { return };
        if flags.contains(EventFlags::OUT) {
            process.flush(self.poller);
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            self.receive_from(now, group);
        }
    }

    /// Reads once from a group's program; true if there may be more.
    fn receive_from(&mut self, now: Time, group: GroupId) -> bool {
        let process = self.replicas.executors.get_mut(&group).and_then(Executor::process);
        let Some(process) = process else { return false };
        let mut all = std::mem::take(&mut self.replicas.done);
        let received = process.receive(&mut all);
        for report in all.drain(..) {
            self.handle_report(now, report);
        }
        self.replicas.done = all;
        received.unwrap_or_else(|reason| {
            self.lose(now, group, &reason);
            false
        })
    }

    /// A group's program serves no more: the replica is lost, and its group goes on without it.
    fn lose(&mut self, now: Time, group: GroupId, reason: &str) {
        let Some(mut executor) = self.replicas.remove(group) else { return };
        // One that was told to go has no need to be told of.
        if !executor.leaving {
            self.counters.programs_lost += 1;
            tracing::warn!(%group, reason, "the program of this node's replica is gone");
        }
        let begun = executor.process().map_or(Begun::Nothing, |process| process.begun());
        let tether = executor.tether().map(|tether| tether.again());
        self.replicas.lost.retain(|(other, _)| *other != group);
        self.replicas.lost.extend(tether.map(|tether| (group, tether)));
        drop(executor);
        self.stack.service_lost(now, group, begun);
    }

    /// A start of a program is over, or its replica is to leave its group.
    pub fn part(&mut self, now: Time, group: GroupId, run: u64, lost: bool) {
        let is_it = |executor: &mut Executor| executor.process().is_some_and(|it| it.run() == run);
        self.replicas.arrivals.retain_mut(|arrival| !is_it(&mut arrival.executor));
        let Some(executor) = self.replicas.executors.get_mut(&group) else { return };
        if let Some(standby) = executor.standby() {
            if !lost {
                self.begin_parting(now, group);
            } else if standby.is_wanted() && run > standby.tether().run() {
                self.lose(now, group, "it ended before it attached");
            }
            return;
        }
        if !is_it(executor) {
            return;
        }
        if !lost {
            return self.begin_parting(now, group);
        }
        // Answers from before its end count.
        while self.receive_from(now, group) {}
        self.lose(now, group, "its process has ended");
    }

    /// Its group would not have the replica of a program, and another start may be of another mind.
    pub fn refuse_join(&mut self, now: Time, group: GroupId, options: GroupOptions) {
        let Some(mut executor) = self.replicas.remove(group) else { return };
        if executor.process().is_some() {
            let text =
                format!("the group exists and has other options: {options:?}; give it these");
            dismiss(&mut executor, &text);
            self.stack.unhost(now, group);
        }
    }
}

/// The program is told why when its executor is dropped.
fn dismiss(executor: &mut Executor, reason: &str) {
    if let Some(process) = executor.process() {
        process.dismiss(reason.into());
    }
}
