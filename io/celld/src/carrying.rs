//! The task that owns the router.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use admin::cell::Neighbour;
use cells::{Chosen, End, Event, Output, Path, Router};
use config::Rights;
use os::clock::monotonic;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use wire::Time;
use wire::client::Targets;

use crate::calls::Calls;
use crate::desk::Desk;
use crate::door::{Door, News};
use crate::groups::Groups;
use crate::inbound::{Inbound, MAX_INBOUND};
use crate::options::{CarryError, Options};
use crate::own::Own;
use crate::routes::Routes;
use crate::seen::Seen;
use crate::wires::{self, Wires};

/// Things that are taken before the router looks at the whole.
const BATCH: usize = 64;

/// Corrections of the book that were not taken are given again after this time.
const CORRECT_AGAIN: wire::Duration = wire::Duration::from_millis(250);

/// How often the node is told of the links' round trips. It is told of other links at once.
const TELL_AGAIN: wire::Duration = wire::Duration::from_secs(10);

/// A timer that is due again at once waits so long.
const BREATH: wire::Duration = wire::Duration::from_millis(1);

/// The process's work, which ends with this.
#[derive(Debug)]
pub struct Carrying {
    links: links::Links,
    at: SocketAddr,
    calls_at: SocketAddr,
    rights: watch::Sender<Rights>,
    tasks: [JoinHandle<()>; 2],
}

impl Carrying {
    /// Begins to carry for the node, whose admin socket must answer. To be called in a runtime.
    ///
    /// # Errors
    /// The node does not answer, or links cannot be had.
    pub fn start(options: Options) -> Result<Carrying, CarryError> {
        let Options { admin, listen, told, calls, security, tls, door, .. } = options;
        let Options { rights, direct, parent, shape, .. } = options;
        let mut node = admin::Client::connect(&admin)?;
        let own = Own::new(node.status()?.client.ok_or(CarryError::NoClients)?, tls);
        let status = node.cell(None, Duration::ZERO)?;
        let path = status.book().ok_or(CarryError::Book)?.path().clone();
        let (tell, inbound) = mpsc::channel(MAX_INBOUND);
        let wires = Wires::start(listen, security, tell.clone())?;
        let at = reached(wires.links().address().unwrap_or(listen), told);
        let (doors, doors_now) = watch::channel(Targets::default());
        let me = (status.node.node, path.clone());
        let routes = Routes::new(tell.clone());
        let news = News { doors: doors_now, routes: routes.told() };
        let door = Door::open(calls, me, door, news, tell.clone())
            .map_err(|error| CarryError::Door(calls, error))?;
        let calls_at = reached(door.address()?, told);
        let links = wires.links().clone();
        let (rights, rights_now) = watch::channel(rights);
        let task = Task {
            router: Router::new(status.node.node, Chosen::from(shape)),
            seen: Seen::new(path.clone(), parent),
            wires,
            desk: Desk::open(status.node.node, admin, tell.clone())?,
            groups: Groups::new(own.clone(), direct, tell.clone()),
            calls: Calls::new(path, own, rights_now, tell),
            routes,
            doors,
            callers: BTreeMap::new(),
            next_caller: 0,
            links_at: at,
            calls_at,
            correct_at: Time::ZERO,
            tell_at: Time::ZERO,
            told: Vec::new(),
        };
        let tasks = [tokio::spawn(task.run(inbound)), tokio::spawn(door.serve())];
        Ok(Carrying { links, at, calls_at, rights, tasks })
    }

    /// Where other cells reach the links.
    pub fn address(&self) -> SocketAddr {
        self.at
    }

    /// Where callers of the own cell call other ones.
    pub fn calls_address(&self) -> SocketAddr {
        self.calls_at
    }

    /// Links that begin later show and check this.
    ///
    /// # Errors
    /// The certificates cannot be used: those of before stay in force.
    pub fn renew(&self, security: links::Security) -> Result<(), links::LinksError> {
        self.links.renew(security)
    }

    /// These rules are in force from now on.
    pub fn permit(&self, rights: Rights) {
        self.rights.send_replace(rights);
    }
}

impl Drop for Carrying {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Where others reach what listens here.
fn reached(at: SocketAddr, told: IpAddr) -> SocketAddr {
    if at.ip().is_unspecified() { SocketAddr::new(told, at.port()) } else { at }
}

struct Task {
    router: Router<Chosen>,
    seen: Seen,
    wires: Wires,
    desk: Desk,
    groups: Groups,
    calls: Calls,
    routes: Routes,
    /// The nodes at which callers of this cell call others.
    doors: watch::Sender<Targets>,
    /// Callers that wait for the ends of their calls.
    callers: BTreeMap<u64, oneshot::Sender<End>>,
    next_caller: u64,
    links_at: SocketAddr,
    calls_at: SocketAddr,
    correct_at: Time,
    /// When the node is told of the links, and what it knows of them.
    tell_at: Time,
    told: Vec<(Path, wire::NodeId, bool)>,
}

impl Task {
    async fn run(mut self, mut inbound: mpsc::Receiver<Inbound>) {
        loop {
            let now = monotonic();
            let due = self.next_timeout(now).max(now + BREATH);
            let wake = Instant::now() + due.since(now);
            tokio::select! {
                event = inbound.recv() => match event {
                    Some(event) => self.take(event),
                    None => return,
                },
                () = sleep_until(wake) => {}
            }
            for _ in 0..BATCH {
                let Ok(event) = inbound.try_recv() else { break };
                self.take(event);
            }
            self.look();
        }
    }

    fn next_timeout(&self, now: Time) -> Time {
        let router = self.router.next_timeout(now, &self.seen.sight());
        let corrects = !self.seen.corrections(self.links_at, self.calls_at).is_empty();
        let correct = corrects.then_some(self.correct_at);
        let routes = self.routes.next_timeout();
        router.into_iter().chain(correct).chain(routes).fold(self.tell_at, Time::min)
    }

    fn take(&mut self, event: Inbound) {
        let now = monotonic();
        let Task { router, seen, wires, .. } = self;
        match event {
            Inbound::Book(seen_now) => {
                let (status, book) = *seen_now;
                seen.see(status, book);
            }
            Inbound::Blind => {
                // Another life of the node knows nothing of the links.
                self.told = Vec::new();
                seen.lose_sight();
            }
            Inbound::Links(event) => match wires.take(event) {
                Some(wires::News::Up(link, proven)) => {
                    router.handle_link_up(now, link, proven, &seen.sight());
                }
                Some(wires::News::Down(link)) => router.handle_link_down(now, link, &seen.sight()),
                Some(wires::News::Message(link, message)) => {
                    router.handle_message(now, link, message, &seen.sight());
                }
                None => {}
            },
            Inbound::Verdict { ask, verdict } => {
                router.handle_verdict(ask, verdict, &seen.sight());
            }
            Inbound::Located { group, follower, targets } => {
                if self.groups.follows(&group, follower) {
                    router.handle_located(now, &group, targets, &seen.sight());
                }
            }
            Inbound::Call { made, done } => {
                self.next_caller += 1;
                self.callers.insert(self.next_caller, done);
                router.call(now, self.next_caller, *made, &seen.sight());
            }
            Inbound::Bound { to, group } => self.routes.want(now, to, group),
            Inbound::Probed { token, targets, is_reached } => {
                self.routes.probed(token, targets, is_reached);
            }
            Inbound::Executed { call, end } => router.handle_executed(call, end, &seen.sight()),
        }
        self.act();
    }

    /// Looks at the whole, after something has happened or is due.
    fn look(&mut self) {
        let now = monotonic();
        while let Some((token, name)) = self.routes.next_question(now) {
            self.router.find(now, token, name, &self.seen.sight());
        }
        self.router.look(now, &self.seen.sight());
        self.act();
        if self.correct_at <= now {
            let corrections = self.seen.corrections(self.links_at, self.calls_at);
            if !corrections.is_empty() {
                self.correct_at = now + CORRECT_AGAIN;
            }
            for command in corrections {
                self.desk.order(None, command);
            }
        }
        let doors = self.seen.doors();
        self.doors.send_if_modified(|before| {
            let is_news = *before != doors;
            *before = doors;
            is_news
        });
        self.tell_neighbours(now);
    }

    /// Tells the node which links there are: at once if there are others, else now and then.
    fn tell_neighbours(&mut self, now: Time) {
        let neighbours = self.router.neighbours();
        // A round trip is news when it is measured first.
        let end = |(path, node, round_trip): &(Path, wire::NodeId, Duration)| {
            (path.clone(), *node, !round_trip.is_zero())
        };
        let ends: Vec<_> = neighbours.iter().map(end).collect();
        if ends == self.told && now < self.tell_at {
            return;
        }
        let told = neighbours.into_iter().map(|(cell, node, round_trip)| Neighbour {
            cell,
            node,
            round_trip_us: u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX),
        });
        let is_told = self.desk.tell_neighbours(told.collect());
        self.tell_at = now + if is_told { TELL_AGAIN } else { CORRECT_AGAIN };
        if is_told {
            self.told = ends;
        }
    }

    /// Does what the router wants done.
    fn act(&mut self) {
        while let Some(output) = self.router.poll_output() {
            match output {
                Output::Dial { link, to, cell, patience } => {
                    self.wires.dial(link, to, (&cell, patience));
                }
                Output::Close(link) => self.wires.close(link),
                Output::Send { link, class, message } => {
                    if !self.wires.send(link, class, &message) {
                        let sight = self.seen.sight();
                        self.router.handle_link_down(monotonic(), link, &sight);
                    }
                }
                Output::Order { ask, command } => {
                    if !self.desk.order(Some(ask), command) {
                        self.router.handle_verdict(ask, Err(None), &self.seen.sight());
                    }
                }
                Output::Locate(group) => self.groups.locate(group),
                Output::Forget(group) => self.groups.forget(&group),
                Output::Execute { call, request, left, origin } => {
                    match self.calls.refuse(origin.as_ref(), &request) {
                        None => self.calls.execute(call, request, left),
                        Some(end) => self.router.handle_executed(call, end, &self.seen.sight()),
                    }
                }
                Output::Found { token, found } => self.routes.found(token, found),
                Output::Ended { token, end } => {
                    if let Some(done) = self.callers.remove(&token) {
                        // A caller that has gone needs no answer.
                        let _ = done.send(end);
                    }
                }
                Output::Event(event) => tell(&event),
            }
        }
    }
}

/// Writes an event into the log.
fn tell(event: &Event) {
    match event {
        Event::LinkUp { path, node } => tracing::info!(cell = %path, %node, "a link is up"),
        Event::LinkDown { path, node, is_silent } => {
            tracing::info!(cell = %path, %node, is_silent, "a link is down");
        }
        Event::Attached { to, epoch } => tracing::info!(%to, %epoch, "this cell is attached"),
        Event::Refused { by, reason } => {
            tracing::warn!(%by, reason, "this cell is not attached there");
        }
        Event::Shunned { by } => tracing::warn!(%by, "the attachment has ended: once more"),
        Event::Misbehaved { path, why } => {
            tracing::warn!(cell = %path, why, "a neighbour says what it may not");
        }
    }
}
