//! Links that this side begins, until they are up.

use std::net::SocketAddr;
use std::time::Instant;

use rustix::rand::{GetRandomFlags, getrandom};
use tls::Peer;
use wire::limits::MAX_LINKS_DIALLED;

use super::Plane;
use super::state::{Dial, Link, Owner};
use crate::class::{CLASSES, Class, LinkId, Pipe, Way};
use crate::counters::count;
use crate::event::{Down, Event};
use crate::greeting::{Greeting, Token, take_answer};
use crate::options::Limits;
use crate::race::{Race, Step};
use crate::refusal::Malformed;
use crate::security::Expect;

impl Plane {
    pub(super) fn dial(
        &mut self,
        link: LinkId,
        to: Vec<SocketAddr>,
        (expect, limits): (Option<Expect>, Limits),
        now: Instant,
    ) {
        let dialled = self.links.values().filter(|link| link.token.is_none()).count();
        if dialled + self.dials.len() >= MAX_LINKS_DIALLED {
            self.shared.shut(link);
            (self.tell)(Event::Down { link, reason: Down::TooMany });
            return;
        }
        let race = Race::new(to, self.transports, limits, now);
        let (lanes, peers, early) = Default::default();
        self.dials.insert(link, Dial { race, expect, lanes, peers, early });
        self.go_on(link, now);
    }

    /// Does what the race says.
    fn go_on(&mut self, link: LinkId, now: Instant) {
        while let Some(step) = self.dials.get_mut(&link).and_then(|dial| dial.race.next()) {
            match step {
                Step::Open(way, address) => self.open_lane(link, way, address, now),
                Step::Drop(way) => self.drop_lane(link, way, now),
                Step::Greet(way) => self.greet(link, way, now),
                Step::Over(why) => self.down(link, why, now),
            }
        }
    }

    fn open_lane(&mut self, link: LinkId, way: Way, address: SocketAddr, now: Instant) {
        let Some(dial) = self.dials.get_mut(&link) else { return };
        dial.peers[way as usize] = None;
        let mut pipes = [Pipe { way, number: 0 }; CLASSES];
        for class in Class::ALL {
            match self.carriers.open(way, address, dial.expect.as_ref(), now) {
                Ok(pipe) => {
                    self.carriers.classify(pipe, class);
                    self.owners.insert(pipe, Owner::Dial(link, class));
                    pipes[class.index()] = pipe;
                }
                Err(why) => {
                    for pipe in &pipes[..class.index()] {
                        self.owners.remove(pipe);
                        self.carriers.close(*pipe, None, now);
                    }
                    dial.race.failed(way, why, now);
                    return;
                }
            }
        }
        dial.lanes[way as usize] = Some(pipes);
    }

    fn drop_lane(&mut self, link: LinkId, way: Way, now: Instant) {
        let Some(dial) = self.dials.get_mut(&link) else { return };
        for pipe in dial.lanes[way as usize].take().into_iter().flatten() {
            self.owners.remove(&pipe);
            self.carriers.close(pipe, None, now);
        }
    }

    /// Says on each connection which link and class it is of.
    fn greet(&mut self, link: LinkId, way: Way, now: Instant) {
        let Some(dial) = self.dials.get_mut(&link) else { return };
        let Some(pipes) = dial.lanes[way as usize] else { return };
        let Some(token) = draw() else {
            let why = Down::Lost("the system has no random bytes".into());
            dial.race.failed(way, why, now);
            return;
        };
        for (pipe, class) in pipes.into_iter().zip(Class::ALL) {
            if let Some(flow) = self.carriers.flow(pipe) {
                flow.output.say(Greeting { token, class }.encode());
            }
            self.carriers.touch(pipe);
        }
    }

    /// A connection is open: is the right one there?
    pub(super) fn dialled_open(
        &mut self,
        link: LinkId,
        pipe: Pipe,
        class: Class,
        peer: Option<Peer>,
        now: Instant,
    ) {
        let Some(dial) = self.dials.get_mut(&link) else { return };
        let way = pipe.way;
        let expected = match self.carriers.trust() {
            None => Ok(()),
            Some(trust) => trust.check(dial.expect.as_ref(), peer.as_ref()),
        };
        let theirs = peer.map(|peer| peer.identity);
        let known = &mut dial.peers[way as usize];
        match expected {
            Err(why) => dial.race.failed(way, why, now),
            Ok(()) if known.is_some() && *known != theirs => {
                let why = "its connections lead to different nodes";
                dial.race.failed(way, Down::Unexpected(why.into()), now);
            }
            Ok(()) => {
                *known = theirs;
                dial.race.opened(way, class);
            }
        }
        self.go_on(link, now);
    }

    /// The answer on any of the connections is that on all of them.
    pub(super) fn read_answer(&mut self, pipe: Pipe, link: LinkId, now: Instant) {
        let Some(flow) = self.carriers.flow(pipe) else { return };
        let chosen = self.dials.get(&link).and_then(|dial| dial.race.chosen());
        let answer = match take_answer(&mut flow.input) {
            // A refusal may come as soon as the other side knows the certificate.
            Ok(Some(Ok(()))) if chosen != Some(pipe.way) => Err(Malformed::Early),
            answer => answer,
        };
        match answer {
            Ok(None) => {}
            Ok(Some(Ok(()))) => self.welcomed(pipe, link, now),
            Ok(Some(Err(refusal))) => {
                self.dial_failed(link, pipe.way, Down::Refused(refusal), now);
            }
            Err(malformed) => {
                count(&self.shared.tally.malformed);
                self.dial_failed(link, pipe.way, Down::Malformed(malformed), now);
            }
        }
    }

    fn welcomed(&mut self, first: Pipe, link: LinkId, now: Instant) {
        let Some(gauge) = self.shared.gauge(link) else { return };
        let Some(dial) = self.dials.remove(&link) else { return };
        let (way, address) = (first.way, dial.race.address());
        let (Some(pipes), Some(address)) = (dial.lanes[way as usize], address) else { return };
        for (pipe, class) in pipes.into_iter().zip(Class::ALL) {
            let answered = pipe == first;
            self.owners.insert(pipe, Owner::Link { link, class, answered });
            if let Some(flow) = self.carriers.flow(pipe) {
                flow.output.set_meter(gauge[class.index()].clone());
            }
        }
        let [quic, tcp] = dial.peers;
        let peer = if way == Way::Quic { quic } else { tcp };
        self.begin(link, Link { pipes, token: None });
        let transport = self.carriers.transport(way);
        (self.tell)(Event::Up { link, dialled: true, peer, address, transport });
        dial.early.into_iter().for_each(|(class, message)| self.push(link, class, message));
        // More may have come behind the answer.
        for pipe in pipes {
            self.read(pipe, now);
        }
    }

    pub(super) fn dial_failed(&mut self, link: LinkId, way: Way, why: Down, now: Instant) {
        if let Some(dial) = self.dials.get_mut(&link) {
            dial.race.failed(way, why, now);
        }
        self.go_on(link, now);
    }

    pub(super) fn handle_dial_timeouts(&mut self, now: Instant) {
        let due = |dial: &Dial| dial.next_timeout().is_some_and(|due| due <= now);
        let late: Vec<LinkId> =
            self.dials.iter().filter(|(_, dial)| due(dial)).map(|(link, _)| *link).collect();
        for link in late {
            if let Some(dial) = self.dials.get_mut(&link) {
                dial.race.handle_timeout(now);
            }
            self.go_on(link, now);
        }
    }
}

/// A number that no other link has, and that nobody can guess.
fn draw() -> Option<Token> {
    let mut bytes = [0; 16];
    let length = getrandom(&mut bytes, GetRandomFlags::empty()).ok()?;
    // So few bytes are never cut short.
    (length == bytes.len()).then_some(Token(bytes))
}
