//! The data plane: one thread, one loop around the stack.
//!
//! Each turn reads what the sockets have, up to a batch each, takes what executors and the
//! program's other threads have queued, fires timers only then (a node that was held up must read
//! before it accuses others), and does all that the stack asks for. Nothing here blocks but the
//! wait.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use admin::status::{Counters, ExclusionStatus};
use engine::{Event, Stack};
use job::Jobs;
use os::clock::{monotonic, wall_clock};
use os::waker::Waker;
use rustix::io::Errno;
use wire::Time;

use crate::celling::{SharedBook, SharedCalls};
use crate::control::Control;
use crate::events::Events;
use crate::incarnation::Founding;
use crate::key_file_writer::KeyFileWriter;
use crate::liveness::Liveness;
use crate::managing::SharedState;
use crate::poller::{EventFlags, Poller, Source};
use crate::registering::SharedRegistry;
use crate::shared::Shared;
use crate::sockets::tcp::{Arrived, Callers};
use crate::streams::Streams;
use crate::transport::Transport;

mod attached;
mod ending;
mod hung;
mod inbox;
mod keeping;
mod learning;
mod nodes;
mod orders;
mod outputs;
mod own;
mod pacing;
mod profile;
mod replicas;
mod reserve;
mod roster;
mod spin;
mod status;
mod storage;
mod waiting;

pub(crate) use ending::Ending;
pub(crate) use inbox::Inbox;
use inbox::Work;
pub(crate) use keeping::Keeping;
pub(crate) use nodes::Nodes;
pub(crate) use pacing::Pacing;
pub(crate) use profile::Profile;
use replicas::Hosting;
pub(crate) use replicas::Replicas;
use storage::Persisting;
pub(crate) use storage::group_of;
pub(crate) use waiting::Waiting;

pub(crate) struct Plane {
    pub stack: Stack,
    pub profile: Profile,
    /// Until the cluster is founded.
    pub founding: Option<Founding>,
    pub sockets: Sockets,
    pub inbox: Inbox,
    pub replicas: Replicas,
    /// Keeps the cluster's keys, if there are any.
    pub key_file: Option<KeyFileWriter>,
    /// The cluster's nodes: where they are reached, and what keeps them.
    pub nodes: Nodes,
    /// Moves large states.
    pub streams: Streams,
    /// Keeps groups on disk, if there are any.
    pub keeping: Option<Keeping>,
    pub waiting: Waiting,
    /// This node's replica of the cluster state.
    pub cluster_state: SharedState,
    pub changes: Changes,
    pub events: Events,
    pub counters: Counters,
    /// The last time that this node was excluded because it did not keep up.
    pub excluded: Option<ExclusionStatus>,
    pub pacing: Pacing,
    pub ending: Ending,
}

/// How other threads learn that something has changed that they look at.
pub(crate) struct Changes {
    pub count: Arc<AtomicU64>,
    /// The changes that all have been told of.
    turns: u64,
    /// `None`: this node has no part in the registry.
    pub registry: Option<SharedRegistry>,
    /// `None`: this node has no part in the book of jobs.
    pub jobs: Option<Shared<Jobs>>,
    /// `None`: this node is of no cell.
    pub cell: Option<SharedBook>,
    pub away: SharedCalls,
}

impl Changes {
    pub fn of(control: &Control) -> Changes {
        Changes {
            count: control.changes.clone(),
            turns: 0,
            registry: control.registry.clone(),
            jobs: control.jobs.clone(),
            cell: control.cell.clone(),
            away: control.away.clone(),
        }
    }

    /// The manager looks at the count; all others wait for more than a host's load to change.
    fn publish(&mut self, count: u64, turns: u64) {
        self.count.store(count, Ordering::Relaxed);
        if mem::replace(&mut self.turns, turns) != turns {
            self.registry.iter().for_each(Shared::nudge);
            self.jobs.iter().for_each(Shared::nudge);
            self.cell.iter().for_each(Shared::nudge);
        }
    }
}

/// In the order in which a dying node closes them: a peer that sees its liveness connection end
/// must find the ring's port closed.
pub(crate) struct Sockets {
    pub transport: Transport,
    pub callers: Option<Callers>,
    pub liveness: Liveness,
    pub poller: Poller,
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
        let _awake = self.pacing.begin();
        if let Some((path, news)) = self.pacing.reserve_news() {
            self.events.push(wall_clock(), Event::Reserve { path, news });
        }
        let mut ready = Vec::new();
        self.do_what_the_stack_asks();
        while !self.ending.is_over() {
            let due = self.next_timeout();
            self.pacing.wait(&self.sockets.poller, &mut self.counters, due, &mut ready)?;
            for (source, flags) in ready.drain(..) {
                self.handle_ready(source, flags);
            }
            self.handle_timeouts();
            self.do_what_the_stack_asks();
            if let Some((path, news)) = self.pacing.learn() {
                self.events.push(wall_clock(), Event::Reserve { path, news });
            }
            self.changes.publish(self.stack.changes(), self.stack.turns());
        }
        Ok(())
    }

    fn hosting(&mut self) -> Hosting<'_> {
        Hosting {
            replicas: &mut self.replicas,
            stack: &mut self.stack,
            poller: &self.sockets.poller,
            counters: &mut self.counters,
        }
    }

    fn persisting(&mut self) -> Option<Persisting<'_>> {
        let Plane { keeping, stack, events, ending, .. } = self;
        keeping.as_mut().map(|keeping| Persisting { keeping, stack, events, ending })
    }

    fn take_stored(&mut self, now: Time) {
        if let Some(mut persisting) = self.persisting() {
            persisting.take_stored(now);
        }
    }

    fn next_timeout(&self) -> Time {
        let keeping = self.keeping.as_ref().map_or(Time::FAR, Keeping::next_timeout);
        let stack = self.stack.next_timeout().unwrap_or(Time::FAR);
        let own = stack.min(keeping).min(self.ending.next_timeout()).min(self.nodes.retry_at);
        own.min(self.sockets.next_timeout())
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
            Source::Watcher(number) => {
                if let Some(stream) = liveness.handle_watcher(number, poller) {
                    self.streams.give(stream);
                }
            }
            Source::Watched(index) => {
                if let Some((place, link)) = liveness.handle_watched(index, flags, now, poller) {
                    transport.handle_refused(place, link, now);
                }
            }
            Source::Program(serial) => self.hosting().handle_program(now, serial, flags),
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
        if self.nodes.retry_at <= now {
            self.retry_nodes(now);
        }
        if self.ending.next_timeout() <= now {
            self.ending.handle_timeout();
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
                Work::Report(report) => self.hosting().handle_report(now, report),
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
