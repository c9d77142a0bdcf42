//! The replicas of this node: their executors, and what is known of their programs beside these.

use std::collections::{BTreeMap, HashMap};
use std::sync::Weak;

use admin::status::Counters;
use bytes::Bytes;
use engine::{Checkpoints, Command, NestedError, Stack, Ticket};
use os::clock::wall_clock;
use supervisor::Tether;
use wire::attach::Digested;
use wire::ordered::GroupOptions;
use wire::{GroupId, Time};

use super::waiting::answer;
use crate::error::HostError;
use crate::executor::{Asked, Done, Executor, News, Overloaded, Report, StateReply, StateReport};
use crate::managing::SharedState;
use crate::poller::Poller;

/// A program whose replica cannot be hosted yet: the last one of its group is still on its way out.
pub(super) struct Arrival {
    pub name: String,
    pub options: GroupOptions,
    pub executor: Executor,
}

/// All replicas of this node.
pub(crate) struct Replicas {
    pub(super) executors: HashMap<GroupId, Executor>,
    /// When they take checkpoints.
    checkpoints: Checkpoints,
    /// This node's replica of the cluster state.
    cluster_state: SharedState,
    /// The groups of those that are polled, by their executors' serials.
    pub(super) polled: BTreeMap<u64, GroupId>,
    /// Those whose programs were given commands in this turn.
    unwritten: Vec<GroupId>,
    /// At most one for each program that the node runs.
    pub(super) arrivals: Vec<Arrival>,
    /// Replicas of any kind that are on their way out of their groups.
    pub(super) parting: Vec<GroupId>,
    /// The ties of lost programs to the thread that supervises them, kept for their next starts.
    pub(super) lost: Vec<(GroupId, Tether)>,
    /// Threads of hung services that were left behind.
    pub(super) stuck: Vec<Weak<()>>,
    /// Room for what a program answers, kept from read to read.
    pub(super) done: Vec<Report>,
}

impl Replicas {
    /// None yet.
    pub fn new(checkpoints: Checkpoints, cluster_state: SharedState) -> Replicas {
        Replicas {
            executors: HashMap::new(),
            checkpoints,
            cluster_state,
            polled: BTreeMap::new(),
            unwritten: Vec::new(),
            arrivals: Vec::new(),
            parting: Vec::new(),
            lost: Vec::new(),
            stuck: Vec::new(),
            done: Vec::new(),
        }
    }

    /// The replica's executor, unless it is on its way out.
    fn staying(&mut self, group: GroupId) -> Option<&mut Executor> {
        self.executors.get_mut(&group).filter(|executor| !executor.leaving)
    }

    /// Whether the next command's reply may be expected sooner than other nodes could be told of
    /// it.
    pub fn replies_first(&self, group: GroupId) -> bool {
        self.executors.get(&group).is_some_and(Executor::replies_first)
    }

    /// The group is a service that people want to go on, by what this node knows of the cluster
    /// state.
    pub(super) fn is_deployed(&self, group: GroupId) -> bool {
        let cluster_state = self.cluster_state.cluster_state();
        cluster_state.placed().any(|placed| GroupId::of(&placed.deployment.group) == group)
    }

    /// A view of its group has this node's replica: reports that to the asker that had its program
    /// started.
    pub fn joined(&mut self, group: GroupId) {
        if let Some(tether) = self.executors.get_mut(&group).and_then(Executor::tether) {
            tether.joined();
        }
    }

    /// Forgets a replica's executor. A program that served it is told so when it is dropped.
    pub(super) fn remove(&mut self, group: GroupId) -> Option<Executor> {
        let executor = self.executors.remove(&group)?;
        self.polled.remove(&executor.serial);
        Some(executor)
    }

    /// The state of this replica is wanted.
    pub fn state(&mut self, name: String, reply: StateReply) {
        let group = GroupId::of(&name);
        match self.staying(group) {
            Some(executor) => {
                executor.state(reply);
                self.is_unwritten(group);
            }
            None => answer(&reply, Err(HostError::NotHosted(name))),
        }
    }

    /// The handler that calls another group goes on.
    pub fn resume(&mut self, group: GroupId, ticket: Ticket, outcome: Result<Bytes, NestedError>) {
        if let Some(executor) = self.executors.get_mut(&group) {
            executor.resume(ticket, outcome);
            self.is_unwritten(group);
        }
    }

    /// No other replica has the group's state: what the next start of its program is to execute
    /// waits for that.
    pub fn revive(&mut self, group: GroupId) {
        let lost = self.lost.iter().position(|(other, _)| *other == group);
        let Some((_, tether)) = lost.map(|place| self.lost.swap_remove(place)) else {
            return;
        };
        tracing::warn!(%group, "no other replica has the group's state: the next start of its program goes on from what this node has kept");
        self.executors.insert(group, Executor::waiting(tether));
    }

    /// A command was given to this group's program, if it has one.
    pub(super) fn is_unwritten(&mut self, group: GroupId) {
        let is_program = self.executors.get_mut(&group).is_some_and(|it| it.process().is_some());
        if is_program && self.unwritten.last() != Some(&group) {
            self.unwritten.push(group);
        }
    }

    /// Writes to the programs that were given commands.
    pub fn flush(&mut self, poller: &Poller) {
        for group in self.unwritten.drain(..) {
            if let Some(process) = self.executors.get_mut(&group).and_then(Executor::process) {
                process.flush(poller);
            }
        }
    }
}

/// The parts that a handler of replicas may touch.
pub(super) struct Hosting<'a> {
    pub replicas: &'a mut Replicas,
    pub stack: &'a mut Stack,
    pub poller: &'a Poller,
    pub counters: &'a mut Counters,
}

impl Hosting<'_> {
    pub fn host(
        &mut self,
        now: Time,
        name: &str,
        options: GroupOptions,
        executor: Executor,
    ) -> Result<(), HostError> {
        let group = self.stack.host(now, name, options)?;
        self.note_merges(group, &executor);
        self.replicas.executors.insert(group, executor);
        self.set_checkpoints(now, group);
        Ok(())
    }

    /// The stack learns whether the service merges states, if that is known.
    pub fn note_merges(&mut self, group: GroupId, executor: &Executor) {
        if let Some(merges) = executor.merges() {
            self.stack.handle_merges(group, merges);
        }
    }

    pub fn unhost(&mut self, now: Time, name: String) -> Result<(), HostError> {
        let group = GroupId::of(&name);
        self.replicas.staying(group).ok_or(HostError::NotHosted(name))?;
        self.begin_parting(now, group);
        Ok(())
    }

    /// This node's replica is to leave its group; it executes what is ordered before.
    pub fn begin_parting(&mut self, now: Time, group: GroupId) {
        if let Some(executor) = self.replicas.executors.get_mut(&group) {
            executor.leaving = true;
            self.replicas.parting.push(group);
            match self.replicas.is_deployed(group) {
                true => self.stack.part(now, group),
                false => self.stack.unhost(now, group),
            }
        }
    }

    pub fn handle_report(&mut self, now: Time, report: Report) {
        match report {
            Report::Done(done) => self.handle_done(now, done),
            Report::State(StateReport { group, serial, news }) => {
                let executor = self.replicas.executors.get(&group);
                if executor.is_some_and(|executor| executor.serial == serial) {
                    self.told(now, group, news);
                }
            }
            Report::Call(Asked { group, serial, call, reply }) => {
                // Nobody takes the answer of an earlier replica: its handler is told by the end of
                // the way back.
                let executor = self.replicas.executors.get_mut(&group);
                if let Some(executor) = executor.filter(|executor| executor.serial == serial) {
                    executor.calls(call.ticket, reply);
                    self.counters.nested_calls += 1;
                    self.stack.handle_nested(now, Time(wall_clock()), group, call);
                }
            }
        }
    }

    fn told(&mut self, now: Time, group: GroupId, news: News) {
        match news {
            News::Notice(notice) => self.stack.handle_notice(now, group, notice),
            News::Digest(Digested { number, state }) => {
                self.stack.handle_digest(now, group, number, state);
            }
        }
    }

    fn handle_done(&mut self, now: Time, done: Done) {
        if let Some(executor) = self.replicas.executors.get_mut(&done.group) {
            if executor.serial != done.serial {
                // The result is of an earlier replica of this group; its tickets mean nothing any
                // more.
                return;
            }
            executor.done(&done);
        }
        let group = done.group;
        self.executed(now, done);
        let executor = self.replicas.executors.get_mut(&group);
        let later = executor.map(Executor::stop_if_due).unwrap_or_default();
        later.into_iter().for_each(|command| self.run(now, group, command));
    }

    fn executed(&mut self, now: Time, done: Done) {
        self.counters.handlers_panicked += u64::from(done.panicked);
        self.stack.handle_executed(now, done.group, done.ticket, done.executed);
    }

    /// Has a replica's service carry out a command.
    pub fn run(&mut self, now: Time, group: GroupId, command: Command) {
        let Some(executor) = self.replicas.executors.get_mut(&group) else { return };
        match executor.run(command) {
            Ok(done) => {
                let news = executor.take_news();
                match done {
                    Some(done) => self.executed(now, done),
                    None => self.replicas.is_unwritten(group),
                }
                news.into_iter().for_each(|it| self.told(now, group, it));
            }
            Err(Overloaded) => self.take_out_overloaded(now, group),
        }
    }

    /// A replica that cannot keep up must not stay: it would answer too late as primary, and
    /// leaving commands out would make it differ.
    pub fn take_out_overloaded(&mut self, now: Time, group: GroupId) {
        self.counters.replicas_overloaded += 1;
        tracing::error!(%group, "this node's replica has fallen too far behind: it is taken out");
        if let Some(mut executor) = self.replicas.remove(group)
            && let Some(process) = executor.process()
        {
            process.dismiss("it has fallen too far behind its group".into());
        }
        self.stack.abandon(now, group);
    }

    pub fn set_checkpoints(&mut self, now: Time, group: GroupId) {
        self.stack.set_checkpoints(now, group, self.replicas.checkpoints);
    }
}
