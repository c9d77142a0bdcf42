//! Links that others begin, from the first byte until they are up.

use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use tls::Peer;

use super::Plane;
use super::state::{Link, Owner};
use crate::class::{CLASSES, Class, Pipe};
use crate::counters::count;
use crate::event::Event;
use crate::greeting::{Greeting, Token, WELCOME};
use crate::refusal::{Malformed, Refusal};
use crate::visitors::Joined;

impl Plane {
    pub(super) fn entered(&mut self, pipe: Pipe, address: SocketAddr, now: Instant) {
        count(&self.shared.tally.entered);
        self.owners.insert(pipe, Owner::Visitor);
        let until = now + self.limits.greeting;
        if let Some(crowding) = self.visitors.enter(pipe, address, until) {
            count(&self.shared.tally.crowded);
            self.dismiss(crowding, None, now);
        }
    }

    pub(super) fn opened(&mut self, pipe: Pipe, peer: Option<Peer>, now: Instant) {
        match self.owners.get(&pipe) {
            Some(Owner::Visitor) => {
                let welcome =
                    self.carriers.trust().is_none_or(|trust| trust.welcomes(peer.as_ref()));
                if welcome {
                    self.visitors.identify(pipe, peer.map(|peer| peer.identity));
                } else {
                    self.refuse(pipe, Refusal::Unwelcome, now);
                }
            }
            Some(&Owner::Dial(link, class)) => self.dialled_open(link, pipe, class, peer, now),
            Some(Owner::Link { .. }) | None => {}
        }
    }

    pub(super) fn read_visitor(&mut self, pipe: Pipe, now: Instant) {
        let Some(flow) = self.carriers.flow(pipe) else { return };
        let open = self.visitors.get(pipe).is_some_and(|visitor| visitor.open);
        let greeting = if open { Greeting::take(&mut flow.input) } else { Err(Malformed::Early) };
        flow.tidy();
        let Ok(greeting) = greeting else {
            self.refuse(pipe, Refusal::Unreadable, now);
            return;
        };
        let Some(greeting) = greeting else { return };
        match self.visitors.greet(pipe, greeting) {
            Joined::Waits => self.carriers.classify(pipe, greeting.class),
            Joined::Refused(refusal) => self.refuse(pipe, refusal, now),
            Joined::Whole(pipes) => {
                self.carriers.classify(pipe, greeting.class);
                self.accept(pipes, greeting.token, now);
            }
        }
    }

    /// All four connections of a link are there.
    fn accept(&mut self, pipes: [Pipe; CLASSES], token: Token, now: Instant) {
        let control = self.visitors.get(pipes[0]);
        let Some((address, peer)) = control.map(|it| (it.address, it.peer.clone())) else { return };
        self.visitors.admit(&pipes, token);
        let accepted = self.links.values().filter(|link| link.token.is_some()).count();
        if accepted >= self.limits.accepted.min(wire::limits::MAX_LINKS_ACCEPTED) {
            self.visitors.link_ended(token);
            self.shared.tally.refused(Refusal::Crowded);
            for pipe in pipes {
                self.owners.remove(&pipe);
                self.carriers.close(pipe, Some(Refusal::Crowded), now);
            }
            return;
        }
        let link = self.shared.new_link();
        for (pipe, class) in pipes.into_iter().zip(Class::ALL) {
            self.owners.insert(pipe, Owner::Link { link, class, answered: true });
            if let Some(flow) = self.carriers.flow(pipe) {
                flow.output.say(Bytes::from_static(&[WELCOME]));
            }
            self.carriers.touch(pipe);
        }
        let transport = self.carriers.transport(pipes[0].way);
        self.begin(link, Link { pipes, token: Some(token) });
        (self.tell)(Event::Up { link, dialled: false, peer, address, transport });
    }

    pub(super) fn visitor_ended(&mut self, pipe: Pipe, now: Instant) {
        count(&self.shared.tally.left);
        self.dismiss(pipe, None, now);
    }

    fn refuse(&mut self, pipe: Pipe, refusal: Refusal, now: Instant) {
        self.shared.tally.refused(refusal);
        self.dismiss(pipe, Some(refusal), now);
    }

    /// Closes a visitor's connection, and the others of its link.
    fn dismiss(&mut self, pipe: Pipe, refusal: Option<Refusal>, now: Instant) {
        let others = self.visitors.leave(pipe);
        for pipe in others.into_iter().chain([pipe]) {
            self.owners.remove(&pipe);
            self.carriers.close(pipe, refusal, now);
        }
    }

    /// Closes those whose time is over.
    pub(super) fn dismiss_late(&mut self, now: Instant) {
        if self.visitors.next_timeout().is_none_or(|due| due > now) {
            return;
        }
        for pipe in self.visitors.late(now) {
            self.refuse(pipe, Refusal::Late, now);
        }
    }
}
