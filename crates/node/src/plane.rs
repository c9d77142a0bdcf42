//! The data plane: one thread, one loop around the stack.
//!
//! Each turn reads what the sockets have, up to a batch each, takes what executors and the
//! program's other threads have queued, fires timers only then (a node that was held up must read
//! before it accuses others), and does all that the stack asks for. Nothing here blocks but the wait.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use engine::{BenchError, BenchProgress, BenchRequest, BenchResult, Event, Output, Stack};
use rustix::io::Errno;
use wire::ordered::GroupOptions;
use wire::{Duration, GroupId, Member, NodeId, Time};

use crate::admin::KeyAsk;
use crate::error::HostError;
use crate::events::{Events, Interest, Stamped};
use crate::executor::{Done, Executor, Overloaded, StateReply};
use crate::keeper::{self, Keeper, Kept};
use crate::liveness::Liveness;
use crate::poller::{EventFlags, Poller, Source, Waker};
use crate::realtime::{Realtime, RealtimeStatus, Spinner};
use crate::sockets::tcp::{Arrived, Callers};
use crate::status::{Counters, Status, TlsStatus};
use crate::timer::{monotonic, sharpen, wall_clock};
use crate::transport::Transport;

/// A clean stop that is not over after this long is cut short: the others will find out.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// Names of clients in a status.
const NAMES_TOLD: usize = 64;

/// Results and orders taken in one turn.
const QUEUE_BATCH: usize = 256;

/// What comes of a benchmark.
pub(crate) type BenchOutcome = Result<BenchResult, BenchError>;

/// What the program's other threads want of the data plane.
pub(crate) enum Order {
    Host {
        name: String,
        options: GroupOptions,
        executor: Executor,
        reply: SyncSender<Result<(), HostError>>,
    },
    Unhost {
        name: String,
        reply: SyncSender<Result<(), HostError>>,
    },
    State {
        name: String,
        reply: StateReply,
    },
    Status {
        reply: SyncSender<Status>,
    },
    Bench {
        request: BenchRequest,
        reply: SyncSender<BenchOutcome>,
    },
    BenchProgress {
        reply: SyncSender<Option<BenchProgress>>,
    },
    StopBench,
    Subscribe {
        interest: Interest,
        reply: SyncSender<(Vec<Stamped>, Receiver<Stamped>)>,
    },
    /// What the admin asks of the cluster's key; the number of the key that it is about.
    Key {
        ask: KeyAsk,
        reply: SyncSender<Result<u8, String>>,
    },
    /// The key file has this.
    KeyKept(Kept),
    Stop,
}

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
    /// Keeps the cluster's keys, if there are any.
    pub keeper: Option<Keeper>,
    /// Who waits for the outcome of a benchmark.
    pub bench: Option<SyncSender<BenchOutcome>>,
    pub events: Events,
    pub counters: Counters,
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

/// What other threads have for the data plane.
pub(crate) struct Inbox {
    pub waker: Arc<Waker>,
    pub orders: Receiver<Order>,
    pub results: Receiver<Done>,
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
        self.realtime = self.wishes.apply();
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
        self.counters.wakeups += u64::from(!ready.is_empty());
        let by_thread = ready.iter().any(|(source, _)| *source == Source::Waker);
        self.counters.wakeups_by_threads += u64::from(by_thread);
        Ok(())
    }

    fn next_timeout(&self) -> Time {
        let stack = self.stack.next_timeout().unwrap_or(Time::FAR).min(self.sockets.next_timeout());
        match self.stop {
            Stop::LeavingUntil(bound) => stack.min(bound),
            _ => stack,
        }
    }

    fn handle_ready(&mut self, source: Source, flags: EventFlags) {
        let Sockets { transport, callers, liveness, poller } = &mut self.sockets;
        let (stack, counters) = (&mut self.stack, &mut self.counters);
        let now = monotonic();
        let arrived = |arrived| match arrived {
            Arrived::Frame(caller, frame) => {
                stack.handle_frame(now, Time(wall_clock()), caller, frame);
            }
            Arrived::Gone(caller) => stack.handle_disconnect(now, caller),
        };
        match source {
            Source::Waker => self.handle_inbox(now),
            Source::Strangers(_) | Source::Peer { .. } => {
                transport.receive(source, now, counters, liveness, |run| {
                    stack.handle_datagrams(now, run);
                });
            }
            Source::Clients => {
                if let Some(callers) = callers {
                    callers.accept(now, poller, counters, arrived);
                }
            }
            Source::Caller(number) => {
                if let Some(callers) = callers {
                    callers.handle_ready(number, flags, poller, counters, arrived);
                }
            }
            Source::Watchers(link) => liveness.accept(link, poller),
            Source::Watcher(number) => liveness.handle_watcher(number),
            Source::Watched(index) => {
                if let Some((peer, link)) = liveness.handle_watched(index, flags, now, poller) {
                    transport.handle_refused(peer, link, now);
                }
            }
        }
    }

    fn handle_timeouts(&mut self) {
        let now = monotonic();
        if self.stack.next_timeout().is_some_and(|due| due <= now) {
            self.stack.handle_timeout(now);
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
        self.inbox.waker.lower();
        self.take_guests(now);
        for _ in 0..QUEUE_BATCH {
            let Ok(done) = self.inbox.results.try_recv() else { break };
            self.handle_done(now, done);
        }
        for _ in 0..QUEUE_BATCH {
            let Ok(order) = self.inbox.orders.try_recv() else { return };
            self.handle_order(now, order);
        }
        // There may be more.
        self.inbox.waker.wake();
    }

    fn take_guests(&mut self, now: Time) {
        let Sockets { callers: Some(callers), poller, .. } = &mut self.sockets else { return };
        let stack = &mut self.stack;
        let more = callers.take_guests(poller, &mut self.counters, |arrived| match arrived {
            Arrived::Frame(caller, frame) => {
                stack.handle_frame(now, Time(wall_clock()), caller, frame);
            }
            Arrived::Gone(caller) => stack.handle_disconnect(now, caller),
        });
        if more {
            self.inbox.waker.wake();
        }
    }

    fn handle_done(&mut self, now: Time, done: Done) {
        if let Some(executor) = self.executors.get_mut(&done.group) {
            if executor.serial != done.serial {
                // Of an earlier replica of this group, whose tickets mean nothing any more.
                return;
            }
            executor.done(&done);
        }
        self.counters.handlers_panicked += u64::from(done.panicked);
        self.stack.handle_executed(now, done.group, done.ticket, done.executed);
    }

    fn handle_order(&mut self, now: Time, order: Order) {
        // Whoever asked may have given up: then nobody takes the answer.
        match order {
            Order::Host { name, options, executor, reply } => {
                let result = self.stack.host(now, &name, options).map(|group| {
                    self.executors.insert(group, executor);
                });
                let _ = reply.try_send(result.map_err(HostError::from));
            }
            Order::Unhost { name, reply } => {
                let group = GroupId::of(&name);
                let result = match self.executors.get_mut(&group) {
                    Some(executor) if !executor.leaving => {
                        // It still has to execute what is ordered before its departure.
                        executor.leaving = true;
                        self.stack.unhost(now, group);
                        Ok(())
                    }
                    _ => Err(HostError::NotHosted(name)),
                };
                let _ = reply.try_send(result);
            }
            Order::State { name, reply } => match self.executors.get(&GroupId::of(&name)) {
                Some(executor) if !executor.leaving => executor.state(reply),
                _ => {
                    let _ = reply.try_send(Err(HostError::NotHosted(name)));
                }
            },
            Order::Status { reply } => {
                let _ = reply.try_send(self.status());
            }
            Order::Bench { request, reply } => match self.stack.bench(now, request) {
                Ok(()) => self.bench = Some(reply),
                Err(error) => {
                    let _ = reply.try_send(Err(error));
                }
            },
            Order::BenchProgress { reply } => {
                let _ = reply.try_send(self.stack.bench_progress());
            }
            Order::StopBench => self.stack.stop_bench(now),
            Order::Subscribe { interest, reply } => {
                let past = self.events.history();
                let _ = reply.try_send((past, self.events.subscribe(interest)));
            }
            Order::Key { ask, reply } => {
                let _ = reply.try_send(self.change_key(now, ask));
            }
            Order::KeyKept(kept) => {
                let kept = self.sockets.transport.seal().and_then(|seal| kept.apply(seal));
                if let Some((key, sealing)) = kept {
                    self.stack.handle_key_kept(now, key, sealing);
                }
            }
            Order::Stop => {
                if self.stop == Stop::No {
                    self.stop = Stop::LeavingUntil(now + LEAVE_WITHIN);
                    self.stack.leave(now);
                }
            }
        }
    }

    fn change_key(&mut self, now: Time, ask: KeyAsk) -> Result<u8, String> {
        let sealing = self.stack.status().keys.ok_or(engine::KeyError::NotSealed);
        let sealing = sealing.map_err(|error| error.to_string())?;
        let under_way = sealing.change.map(|change| change.key.number);
        let (number, done) = match ask {
            KeyAsk::Rotate => {
                let key = keeper::next_key(sealing.sealing);
                let key = key.map_err(|error| format!("no random bytes: {error}"))?;
                (Some(key.name.number), self.stack.change_key(now, key))
            }
            KeyAsk::Force => (under_way, self.stack.force_key_change(now)),
            KeyAsk::Abort => (under_way, self.stack.abort_key_change(now)),
        };
        done.map(|()| number.unwrap_or_default()).map_err(|error| error.to_string())
    }

    fn status(&self) -> Status {
        let clients = self.sockets.callers.as_ref().map_or(0, Callers::count) as u64;
        let callers = self.sockets.callers.as_ref();
        let handshakes = callers.and_then(Callers::handshakes).unwrap_or_default();
        let counters = Counters { clients, handshakes, ..self.counters.clone() };
        let names = callers.map(Callers::names).unwrap_or_default();
        let clients = names.into_iter().take(NAMES_TOLD).collect();
        let tls = TlsStatus { clients, ..self.tls.clone() };
        let configured = self.configured.clone();
        let (cluster, client) = (&self.cluster, self.client_address);
        let transport = &self.sockets.transport;
        let status = self.stack.status();
        let seal = transport.seal_status().map(|seal| seal.with_change(status.keys.as_ref()));
        let mut status = Status {
            realtime: self.realtime.clone(),
            tls,
            sockets: transport.sockets(),
            seal,
            ..Status::new(status, cluster, configured, client, counters)
        };
        status.ring.links = transport.status(monotonic());
        status
    }

    fn do_what_the_stack_asks(&mut self) {
        loop {
            let now = monotonic();
            while let Some(output) = self.stack.poll_output() {
                self.do_output(now, output);
            }
            // Sending and writing may show that somebody is gone, and the stack then asks for more.
            let Sockets { transport, callers, liveness, poller } = &mut self.sockets;
            transport.flush(now, &mut self.counters);
            let counters = &mut self.counters;
            if let Some(event) = transport.take_event() {
                self.handle_event(Event::Ring(event));
            } else if let Some(node) = transport.take_unreachable(now, counters, liveness) {
                self.stack.handle_unreachable(now, node);
            } else if let Some(gone) =
                callers.as_mut().and_then(|callers| callers.flush(poller, &mut self.counters))
            {
                self.stack.handle_disconnect(now, gone);
            } else {
                break;
            }
        }
        self.counters.events_dropped += self.events.deliver();
    }

    fn do_output(&mut self, now: Time, output: Output) {
        let Sockets { transport, callers, .. } = &mut self.sockets;
        match output {
            Output::Send { to, datagram, route } => {
                transport.send(to, &datagram, route, now, &mut self.counters);
            }
            Output::Frame { caller, frame } => {
                if let Some(callers) = callers {
                    callers.push(caller, &frame);
                }
            }
            Output::Close { caller } => {
                if let Some(callers) = callers {
                    callers.close(caller);
                }
            }
            Output::Run { group, command } => {
                self.counters.commands += 1;
                // A handler that runs here takes its time; others wait for what is to be sent.
                transport.flush(now, &mut self.counters);
                let Some(executor) = self.executors.get_mut(&group) else { return };
                match executor.run(command) {
                    Ok(None) => {}
                    Ok(Some(done)) => {
                        self.counters.handlers_panicked += u64::from(done.panicked);
                        self.stack.handle_executed(now, group, done.ticket, done.executed);
                    }
                    Err(Overloaded) => self.take_out_overloaded(now, group),
                }
            }
            Output::Probe(node) => transport.probe(node, now, &mut self.counters),
            Output::Key(command) => {
                if let Some(keeper) = &self.keeper {
                    keeper.carry_out(command);
                }
            }
            Output::Bench(outcome) => {
                if let Some(reply) = self.bench.take() {
                    let _ = reply.try_send(outcome);
                }
            }
            Output::Event(event) => self.handle_event(event),
        }
    }

    /// A replica that cannot keep up must not stay: it would answer too late as primary, and
    /// leaving commands out would make it differ.
    fn take_out_overloaded(&mut self, now: Time, group: GroupId) {
        self.counters.replicas_overloaded += 1;
        tracing::error!(%group, "this node's replica has fallen too far behind: it is taken out");
        self.executors.remove(&group);
        self.stack.abandon(now, group);
    }

    fn handle_event(&mut self, event: Event) {
        match &event {
            Event::Malformed(reason) => self.counters.malformed.count(reason),
            Event::Left if self.stop != Stop::No => self.stop = Stop::Done,
            Event::JoinRefused { name, .. } => {
                self.executors.remove(&GroupId::of(name));
            }
            Event::View { group, replicas, .. } => {
                let gone = !replicas.iter().any(|(member, _)| *member == self.me);
                if gone && self.executors.get(group).is_some_and(|executor| executor.leaving) {
                    self.executors.remove(group);
                }
            }
            _ => {}
        }
        self.events.push(wall_clock(), event);
    }
}
