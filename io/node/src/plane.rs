//! The data plane: one thread, one loop around the stack.
//!
//! Each turn reads what the sockets have, up to a batch each, takes what executors and the
//! program's other threads have queued, fires timers only then (a node that was held up must read
//! before it accuses others), and does all that the stack asks for. Nothing here blocks but the wait.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

use admin::status::{Counters, ExclusionStatus, TlsStatus};
use engine::{Checkpoints, Stack};
use os::clock::{monotonic, sharpen, wall_clock};
use os::own_time::Account;
use os::realtime::{Realtime, RealtimeStatus};
use os::waker::Waker;
use rustix::io::Errno;
use wire::{GroupId, Member, NodeId, Time};

use crate::events::Events;
use crate::executor::Executor;
use crate::keeper::Keeper;
use crate::liveness::Liveness;
use crate::order::{BenchOutcome, MoveReply, RestyleReply};
use crate::poller::{EventFlags, Poller, Source};
use crate::sockets::tcp::{Arrived, Callers};
use crate::transport::Transport;

mod attached;
mod attachments;
mod backups;
mod commands;
mod hosts;
mod hung;
mod inbox;
mod keeping;
mod orders;
mod outputs;
mod registrations;
mod spin;
mod storage;
mod waiting;

pub(crate) use attachments::Attached;
pub(crate) use inbox::Inbox;
use inbox::Work;
pub(crate) use keeping::Keeping;
use spin::Spinner;
pub(crate) use waiting::{Backups, Commands, Registrations};

pub(crate) struct Plane {
    pub stack: Stack,
    pub me: Member,
    pub cluster: String,
    pub client_address: Option<SocketAddr>,
    /// Without the clients, who are counted when somebody asks.
    pub tls: TlsStatus,
    /// The cluster's nodes, in order of id.
    pub configured: Vec<NodeId>,
    pub sockets: Sockets,
    pub inbox: Inbox,
    pub executors: HashMap<GroupId, Executor>,
    pub attached: Attached,
    /// When replicas here take checkpoints.
    pub checkpoints: Checkpoints,
    /// Keeps the cluster's keys, if there are any.
    pub keeper: Option<Keeper>,
    /// What keeps groups on disk, if there are any.
    pub keeping: Option<Keeping>,
    /// Why the node has to end.
    pub failure: Option<String>,
    /// Who waits for the outcome of a benchmark.
    pub bench: Option<SyncSender<BenchOutcome>>,
    /// Who waits for the outcome of a move, one for each group.
    pub moves: HashMap<GroupId, MoveReply>,
    pub restyles: HashMap<GroupId, RestyleReply>,
    pub backups: Backups,
    /// The bound by which this node's manager judges hosts, if it has one, and how often something has changed that it looks at.
    pub policy: Option<&'static str>,
    pub changes: Arc<AtomicU64>,
    /// What is said to the book, and what this node's replica has of it.
    pub commands: Commands,
    /// What is said to the registry.
    pub registrations: Registrations,
    pub events: Events,
    pub counters: Counters,
    /// The last time that this node was excluded because it did not keep up.
    pub excluded: Option<ExclusionStatus>,
    pub own_time: Account,
    pub wishes: Realtime,
    /// What the system has granted of them.
    pub realtime: RealtimeStatus,
    pub stop: Stop,
}

/// In the order in which a dying node closes them: whoever sees its liveness connection end must
/// find the ring's port closed.
pub(crate) struct Sockets {
    pub transport: Transport,
    pub callers: Option<Callers>,
    pub liveness: Liveness,
    pub poller: Poller,
}

/// How far a clean stop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    LeavingUntil(Time),
    Done,
}

impl Sockets {
    pub fn register(&self, waker: &Waker) -> std::io::Result<()> {
        self.poller.add(waker, Source::Waker, EventFlags::IN)?;
        self.transport.register(&self.poller)?;
        self.liveness.register(&self.poller)?;
        if let Some(callers) = &self.callers {
            callers.register(&self.poller)?;
        }
        Ok(())
    }

    fn next_timeout(&self) -> Time {
        let callers = self.callers.as_ref().map_or(Time::FAR, Callers::next_timeout);
        self.liveness.next_timeout().min(callers).min(self.transport.next_timeout())
    }
}

impl Plane {
    /// Runs until the node is told to stop.
    pub fn run(&mut self) -> Result<(), Errno> {
        sharpen();
        let (realtime, _awake) = self.wishes.apply();
        self.realtime = realtime;
        let mut spinner = Spinner::new(self.wishes.spin);
        let mut ready = Vec::new();
        self.do_what_the_stack_asks();
        while self.stop != Stop::Done {
            let due = self.next_timeout();
            self.wait(&mut spinner, due, &mut ready)?;
            for (source, flags) in ready.drain(..) {
                self.handle_ready(source, flags);
            }
            self.handle_timeouts();
            self.do_what_the_stack_asks();
            let changes = self.stack.changes();
            if self.changes.swap(changes, Ordering::Relaxed) != changes
                && let Some(shelf) = &self.registrations.shelf
            {
                shelf.nudge();
            }
        }
        Ok(())
    }

    /// Waits until something is ready or `due` has come: awake for a moment if that pays, else asleep.
    fn wait(
        &mut self,
        spinner: &mut Spinner,
        due: Time,
        ready: &mut Vec<(Source, EventFlags)>,
    ) -> Result<(), Errno> {
        let poller = &self.sockets.poller;
        let mut now = monotonic();
        if let Some(until) = spinner.until(now) {
            self.counters.spins += 1;
            while now < until.min(due) && ready.is_empty() {
                poller.look(ready)?;
                now = monotonic();
            }
            spinner.learn(!ready.is_empty());
            if !ready.is_empty() {
                self.counters.spins_won += 1;
                return Ok(());
            }
        }
        poller.wait(now, due, ready)?;
        let woken = monotonic();
        // A wait that ends early, and with nothing, was broken off: the process was stopped and continued.
        let whole = !ready.is_empty() || woken >= due;
        self.own_time.waited(woken, woken.since(now), whole);
        self.counters.wakeups += u64::from(!ready.is_empty());
        let by_thread = ready.iter().any(|(source, _)| *source == Source::Waker);
        self.counters.wakeups_by_threads += u64::from(by_thread);
        Ok(())
    }

    fn next_timeout(&self) -> Time {
        let keeping = self.keeping.as_ref().map_or(Time::FAR, Keeping::next_timeout);
        let stack = self.stack.next_timeout().unwrap_or(Time::FAR);
        let stack = stack.min(self.sockets.next_timeout()).min(keeping);
        match self.stop {
            Stop::LeavingUntil(bound) => stack.min(bound),
            _ => stack,
        }
    }

    fn handle_ready(&mut self, source: Source, flags: EventFlags) {
        let Sockets { transport, callers, liveness, poller } = &mut self.sockets;
        let (stack, counters) = (&mut self.stack, &mut self.counters);
        let now = monotonic();
        match source {
            Source::Waker => self.handle_inbox(now),
            Source::Strangers(_) | Source::Peer { .. } => {
                transport.receive(source, now, counters, liveness, |run| {
                    stack.handle_datagrams(now, run);
                });
            }
            Source::Clients => {
                if let Some(callers) = callers {
                    callers.accept(now, poller, counters, to_stack(stack, now));
                }
            }
            Source::Caller(number) => {
                if let Some(callers) = callers {
                    callers.handle_ready(number, flags, poller, counters, to_stack(stack, now));
                }
            }
            Source::Watchers(link) => liveness.accept(link, now, poller),
            Source::Watcher(number) => liveness.handle_watcher(number),
            Source::Watched(index) => {
                if let Some((peer, link)) = liveness.handle_watched(index, flags, now, poller) {
                    transport.handle_refused(peer, link, now);
                }
            }
            Source::Program(serial) => self.handle_program(now, serial, flags),
        }
    }

    fn handle_timeouts(&mut self) {
        let now = monotonic();
        if self.stack.next_timeout().is_some_and(|due| due <= now) {
            self.stack.handle_timeout(now);
        }
        if self.keeping.as_ref().is_some_and(|keeping| keeping.next_timeout() <= now) {
            self.take_stored(now);
        }
        if let Stop::LeavingUntil(bound) = self.stop
            && bound <= now
        {
            tracing::warn!("the ring did not let this node go in time: it stops all the same");
            self.stop = Stop::Done;
        }
        let Sockets { transport, callers, liveness, poller } = &mut self.sockets;
        let counters = &mut self.counters;
        if transport.next_timeout() <= now {
            transport.handle_timeout(now, counters);
        }
        if liveness.next_timeout() <= now {
            liveness.handle_timeout(now, poller, |node| transport.probe(node, now, counters));
        }
        if let Some(callers) = callers {
            callers.resume(now, poller);
        }
    }

    fn handle_inbox(&mut self, now: Time) {
        self.inbox.open();
        self.take_stored(now);
        let Sockets { callers, poller, .. } = &mut self.sockets;
        if let Some(callers) = callers
            && callers.is_gated()
            && callers.accept(now, poller, &mut self.counters, to_stack(&mut self.stack, now))
        {
            self.inbox.look_again();
        }
        while let Some(work) = self.inbox.next() {
            match work {
                Work::Report(report) => self.handle_report(now, report),
                Work::Order(order) => self.handle_order(now, order),
            }
        }
    }
}

/// Takes what clients' connections bring to the stack.
fn to_stack(stack: &mut Stack, now: Time) -> impl FnMut(Arrived) + '_ {
    move |arrived| match arrived {
        Arrived::Frame(caller, frame) => {
            stack.handle_frame(now, Time(wall_clock()), caller, frame);
        }
        Arrived::Gone(caller) => stack.handle_disconnect(now, caller),
    }
}
