//! Threads of a replica's own: one that executes all commands in order, or one for each lane.

use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use config::Execution;
use engine::{Command, NestedCall, NestedError};
use os::realtime::fifo_or_ordinary;
use os::threads;
use os::waker::Waker;
use wire::{GroupId, Lane};

use super::replica::Replica;
use super::report::{Asked, Report, StateReply, StateReport};
use crate::error::HostError;
use crate::managing::Clocks;
use crate::service::{Factory, HostOptions, Line};

enum Job {
    Run(Command),
    State(StateReply),
}

/// Where threads send what is done, and how they are waited for at the end.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    pub sender: Sender<Report>,
    pub waker: Arc<Waker>,
    /// SCHED_FIFO priority of the threads; 0: ordinary.
    pub priority: u8,
    /// Where threads are known by what they use, if anybody looks.
    pub clocks: Option<Clocks>,
    /// Dropped when the thread ends.
    pub _running: Sender<()>,
}

/// The threads of one replica. They end when this is dropped.
pub(super) struct Threads {
    /// One for each lane, or one for all.
    lanes: Vec<Sender<Job>>,
    plan: Plan,
    /// While one of them lives.
    alive: Weak<()>,
    /// The service merges states.
    merges: bool,
}

/// How a replica gets threads, and others when one of them hangs.
#[derive(Clone)]
pub(super) struct Plan {
    pub name: String,
    pub make: Arc<Mutex<Factory>>,
    pub options: HostOptions,
    pub results: Results,
}

impl Threads {
    pub fn start(group: GroupId, serial: u64, plan: Plan) -> Result<Threads, HostError> {
        let lanes: &[Lane] = match plan.options.execution {
            Execution::Lanes => &Lane::ALL,
            Execution::Thread | Execution::Inline => &[Lane::Alarm],
        };
        let lives = Arc::new(());
        let alive = Arc::downgrade(&lives);
        let start = |lane: &Lane| plan.lane((group, serial), *lane, lives.clone());
        let lanes = lanes.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let merges = lanes.iter().all(|(_, merges)| *merges);
        let lanes = lanes.into_iter().map(|(lane, _)| lane).collect();
        Ok(Threads { lanes, plan, alive, merges })
    }

    /// Its service merges states.
    pub fn merges(&self) -> bool {
        self.merges
    }

    /// Gone when the last thread has ended.
    pub fn alive(&self) -> Weak<()> {
        self.alive.clone()
    }

    /// How it gets others.
    pub fn plan(&self) -> Plan {
        self.plan.clone()
    }

    /// A call goes to its lane, anything else to all of them: a stateless group is told nothing
    /// that has an answer.
    pub fn give(&self, command: Command) {
        // A thread ends only after its sender; handlers' panics are caught.
        match command {
            Command::View(_)
            | Command::Start(_)
            | Command::Style(_)
            | Command::Reset
            | Command::Stop => {
                for lane in &self.lanes {
                    let _ = lane.send(Job::Run(command.clone()));
                }
            }
            Command::Execute { lane, .. } => {
                let at = (lane as usize).min(self.lanes.len() - 1);
                let _ = self.lanes[at].send(Job::Run(command));
            }
            Command::Snapshot { .. }
            | Command::Restore { .. }
            | Command::Change { .. }
            | Command::Digest { .. }
            | Command::Apply { .. } => {
                let _ = self.lanes[0].send(Job::Run(command));
            }
        }
    }

    /// Asks for the state: in lanes, for that of the normal one.
    pub fn ask_state(&self, reply: StateReply) {
        let _ = self.lanes[0].send(Job::State(reply));
    }
}

impl Plan {
    /// Starts the thread of one lane, with a service of its own; and whether that merges states.
    fn lane(
        &self,
        (group, serial): (GroupId, u64),
        lane: Lane,
        lives: Arc<()>,
    ) -> Result<(Sender<Job>, bool), HostError> {
        let mut results = self.results.clone();
        results.priority = priority(results.priority, lane);
        let line = Arc::new(Outward { group, serial, results: results.clone() });
        let (make, style) = (shared(self.make.clone()), self.options.group.style);
        let replica = Replica::new(group, serial, make, style, Some(line));
        let replica = replica.map_err(HostError::State)?;
        let merges = replica.merges();
        let (jobs, queue) = channel();
        // Linux shows 15 bytes of a thread's name.
        let name = format!("replica {}", self.name.replace('\0', ""));
        let spawned = threads::spawn(name, move || {
            let clocks = results.clocks.clone();
            clocks.iter().for_each(|clocks| clocks.enter(group, (serial, lane)));
            work(replica, queue, results);
            clocks.iter().for_each(|clocks| clocks.leave(group, (serial, lane)));
            drop(lives);
        });
        spawned.map_err(HostError::Thread)?;
        Ok((jobs, merges))
    }
}

/// The priority of a lane's thread: each less urgent lane is one below, and at least 1.
fn priority(executor_priority: u8, lane: Lane) -> u8 {
    let below = Lane::Alarm as u8 - lane as u8;
    match executor_priority {
        0 => 0,
        some => some.saturating_sub(below).max(1),
    }
}

/// A factory that a thread may have while others keep it for another.
fn shared(make: Arc<Mutex<Factory>>) -> Factory {
    // A panic in it spoils nothing.
    Box::new(move || make.lock().unwrap_or_else(PoisonError::into_inner)())
}

/// A thread's work: commands strictly in order.
fn work(mut replica: Replica, queue: Receiver<Job>, results: Results) {
    // A refusal was logged when the node started.
    fifo_or_ordinary(results.priority);
    for job in queue {
        match job {
            Job::Run(command) => {
                if let Some(done) = replica.run(command) {
                    if results.sender.send(Report::Done(done)).is_err() {
                        return;
                    }
                    results.waker.wake();
                }
                if replica.has_news() {
                    tell(&mut replica, &results);
                }
            }
            Job::State(reply) => replica.answer_state(&reply),
        }
    }
}

/// Tells the news of the replica's state.
#[cold]
fn tell(replica: &mut Replica, results: &Results) {
    let (group, serial) = replica.name();
    for news in replica.take_news() {
        let _ = results.sender.send(Report::State(StateReport { group, serial, news }));
        results.waker.wake();
    }
}

/// From a replica's thread to its node.
#[derive(Debug)]
struct Outward {
    group: GroupId,
    serial: u64,
    results: Results,
}

impl Line for Outward {
    fn call(&self, call: NestedCall) -> Result<Bytes, NestedError> {
        let (reply, answer) = sync_channel(1);
        let (group, serial) = (self.group, self.serial);
        let asked = Asked { group, serial, call, reply: Some(reply) };
        let sent = self.results.sender.send(Report::Call(asked));
        self.results.waker.wake();
        // If this fails, the replica or its node is gone, and with it the receiver of the handler's
        // answer.
        sent.map_err(|_| NestedError::Void)?;
        answer.recv().unwrap_or(Err(NestedError::Void))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_urgent_lanes_have_lower_priorities_and_none_is_ordinary_unless_all_are() {
        let all = |top| Lane::ALL.map(|lane| priority(top, lane));
        assert_eq!([all(49), all(2), all(0)], [[47, 48, 49], [1, 1, 2], [0, 0, 0]]);
    }
}
