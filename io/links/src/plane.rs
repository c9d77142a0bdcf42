//! The thread of all links: it waits for sockets, lets each go on a little, and does what other
//! threads ask for.
//!
//! Everything that is read is told at once, and nothing is read while it is told. So a slow `tell`
//! fills the other side's windows, and no queue here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use wire::limits::MAX_LINK_VISITORS;

use crate::carriers::Carriers;
use crate::class::{Class, LinkId, Pipe};
use crate::event::{Down, Event};
use crate::news::News;
use crate::options::{Limits, Transports};
use crate::poller::{EventFlags, Source};
use crate::shared::{Command, Shared};
use crate::visitors::Visitors;

mod accepting;
mod dialling;
mod linked;
mod state;

use state::{Dial, Link, Owner};

/// How often commands are looked for before sockets are.
const ROUNDS: usize = 4;

pub(crate) struct Plane {
    shared: Arc<Shared>,
    carriers: Carriers,
    transports: Transports,
    limits: Limits,
    tell: Box<dyn FnMut(Event) + Send>,
    owners: BTreeMap<Pipe, Owner>,
    visitors: Visitors,
    dials: BTreeMap<LinkId, Dial>,
    links: BTreeMap<LinkId, Link>,
    news: Vec<News>,
}

impl Plane {
    pub fn new(
        shared: Arc<Shared>,
        carriers: Carriers,
        transports: Transports,
        limits: Limits,
        tell: Box<dyn FnMut(Event) + Send>,
    ) -> Plane {
        Plane {
            shared,
            carriers,
            transports,
            limits,
            tell,
            owners: BTreeMap::new(),
            visitors: Visitors::new(MAX_LINK_VISITORS),
            dials: BTreeMap::new(),
            links: BTreeMap::new(),
            news: Vec::new(),
        }
    }

    /// Runs until the last handle is gone.
    pub fn run(mut self) {
        self.shared.belong_to_this_thread();
        let (mut ready, mut commands) = (Vec::new(), Vec::new());
        let mut more = false;
        while !self.shared.is_closed() {
            let now = Instant::now();
            let due = if more { Some(now) } else { self.next_timeout() };
            if let Err(error) = self.carriers.poller().wait(now, due, &mut ready) {
                tracing::error!(%error, "links end: epoll fails");
                break;
            }
            let now = Instant::now();
            self.handle_ready(&mut ready, now);
            self.handle_timeouts(now);
            more = self.obey_and_write(&mut commands, now);
        }
        self.stop();
    }

    fn handle_ready(&mut self, ready: &mut Vec<(Source, EventFlags)>, now: Instant) {
        for (source, flags) in ready.drain(..) {
            if source == Source::Waker {
                self.shared.waker.lower();
                continue;
            }
            let visitors = self.visitors.count();
            self.carriers.handle_ready(source, flags, visitors, now, &mut self.news);
            self.take_news(now);
        }
    }

    fn handle_timeouts(&mut self, now: Instant) {
        self.carriers.handle_timeouts(now);
        self.dismiss_late(now);
        self.handle_dial_timeouts(now);
    }

    fn next_timeout(&self) -> Option<Instant> {
        let dials = self.dials.values().filter_map(Dial::next_timeout).min();
        let others = [self.carriers.next_timeout(), self.visitors.next_timeout()];
        others.into_iter().flatten().chain(dials).min()
    }

    /// Does what is asked for. False: nothing was.
    fn obey(&mut self, commands: &mut Vec<Command>, now: Instant) -> bool {
        self.shared.take_commands(commands);
        let some = !commands.is_empty();
        for command in commands.drain(..) {
            match command {
                Command::Dial { link, to, expect, patience } => {
                    let dial = patience.unwrap_or(self.limits.dial);
                    self.dial(link, to, (expect, Limits { dial, ..self.limits }), now);
                }
                Command::Send { link, class, message } => self.send(link, class, message),
                Command::Close(link) => self.down(link, Down::Closed, now),
            }
        }
        some
    }

    /// Does what is asked for, and writes, until nothing is left that does not have to wait. True:
    /// there is more, and others have their turn first.
    fn obey_and_write(&mut self, commands: &mut Vec<Command>, now: Instant) -> bool {
        for _ in 0..ROUNDS {
            let asked = self.obey(commands, now);
            let more = self.carriers.flush(now, &mut self.news);
            let told = !self.news.is_empty();
            self.take_news(now);
            // News may have led to commands, or to something to write.
            if more || !asked && !told {
                return more;
            }
        }
        true
    }

    fn take_news(&mut self, now: Instant) {
        // News are taken in their order, and more may come while they are.
        while !self.news.is_empty() {
            for news in std::mem::take(&mut self.news) {
                match news {
                    News::Entered(pipe, address) => self.entered(pipe, address, now),
                    News::Open(pipe, peer) => self.opened(pipe, peer, now),
                    News::Read(pipe) => self.read(pipe, now),
                    News::Ended(pipe, why) => self.ended(pipe, why, now),
                }
            }
        }
    }

    fn read(&mut self, pipe: Pipe, now: Instant) {
        match self.owners.get(&pipe) {
            None => {}
            Some(Owner::Visitor) => self.read_visitor(pipe, now),
            Some(&Owner::Dial(link, _)) => self.read_answer(pipe, link, now),
            Some(&Owner::Link { link, class, answered }) => {
                self.read_link(pipe, link, class, answered, now);
            }
        }
    }

    fn ended(&mut self, pipe: Pipe, why: Down, now: Instant) {
        match self.owners.get(&pipe) {
            None => self.carriers.close(pipe, None, now),
            Some(Owner::Visitor) => self.visitor_ended(pipe, now),
            Some(&Owner::Dial(link, _)) => self.dial_failed(link, pipe.way, why, now),
            Some(&Owner::Link { link, .. }) => self.down(link, why, now),
        }
    }

    fn send(&mut self, link: LinkId, class: Class, message: Bytes) {
        if let Some(dial) = self.dials.get_mut(&link) {
            dial.early.push((class, message));
        } else {
            self.push(link, class, message);
        }
    }

    /// Tells of the end of everything.
    fn stop(mut self) {
        let now = Instant::now();
        let mut commands = Vec::new();
        self.shared.take_commands(&mut commands);
        for command in commands {
            // Dialled, and never tried.
            if let Command::Dial { link, .. } = command {
                (self.tell)(Event::Down { link, reason: Down::Stopped });
            }
        }
        let links: Vec<LinkId> = self.dials.keys().chain(self.links.keys()).copied().collect();
        for link in links {
            self.down(link, Down::Stopped, now);
        }
        let pipes: Vec<Pipe> = self.owners.keys().copied().collect();
        pipes.into_iter().for_each(|pipe| self.carriers.close(pipe, None, now));
        // The others are told once; if that is lost, they find out by themselves.
        self.carriers.flush(now, &mut self.news);
        // The port is free before those who wait for the end of `tell` look.
        drop(self.carriers);
    }
}
