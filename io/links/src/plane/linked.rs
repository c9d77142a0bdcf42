//! Links that are up.

use std::time::Instant;

use bytes::Bytes;

use super::Plane;
use super::state::{Link, Owner};
use crate::class::{Class, LinkId, Pipe, Way};
use crate::counters::count;
use crate::event::{Down, Event};
use crate::framing;
use crate::greeting::take_answer;
use crate::refusal::{Malformed, Refusal};

impl Plane {
    /// A link is there from now on: messages may be sent.
    pub(super) fn begin(&mut self, link: LinkId, its: Link) {
        if its.token.is_some() {
            let flows = its.pipes.map(|pipe| self.carriers.flow(pipe).map(|it| it.output.meter()));
            let meters = flows.map(Option::unwrap_or_default);
            self.shared.open(link, meters);
        }
        its.pipes.iter().for_each(|pipe| self.carriers.widen(*pipe));
        self.links.insert(link, its);
    }

    /// Queues a message, which the meter has already.
    pub(super) fn push(&mut self, link: LinkId, class: Class, message: Bytes) {
        // A link that has gone meanwhile was told to be down.
        let Some(link) = self.links.get(&link) else { return };
        let pipe = link.pipes[class.index()];
        if let Some(flow) = self.carriers.flow(pipe) {
            framing::pieces(message, |piece| flow.output.push(piece));
        }
        self.carriers.touch(pipe);
    }

    /// Tells of each message that is there whole.
    pub(super) fn read_link(
        &mut self,
        pipe: Pipe,
        link: LinkId,
        class: Class,
        answered: bool,
        now: Instant,
    ) {
        let Some(flow) = self.carriers.flow(pipe) else { return };
        if !answered {
            match take_answer(&mut flow.input) {
                Ok(Some(Ok(()))) => {
                    self.owners.insert(pipe, Owner::Link { link, class, answered: true });
                }
                Ok(Some(Err(refusal))) => return self.down(link, Down::Refused(refusal), now),
                Ok(None) => return,
                Err(malformed) => return self.broken(link, malformed, now),
            }
        }
        let malformed = loop {
            match framing::take(&mut flow.input) {
                Ok(Some(bytes)) => (self.tell)(Event::Message { link, class, bytes }),
                Ok(None) => break None,
                Err(malformed) => break Some(malformed),
            }
        };
        flow.tidy();
        if let Some(malformed) = malformed {
            self.broken(link, malformed, now);
        }
    }

    fn broken(&mut self, link: LinkId, malformed: Malformed, now: Instant) {
        count(&self.shared.tally.malformed);
        self.down(link, Down::Malformed(malformed), now);
    }

    /// Ends a link, dialled or up, and tells of it. One that is not there stays so.
    pub(super) fn down(&mut self, link: LinkId, reason: Down, now: Instant) {
        let unreadable = matches!(reason, Down::Malformed(_)).then_some(Refusal::Unreadable);
        let pipes = if let Some(dial) = self.dials.remove(&link) {
            dial.pipes()
        } else if let Some(its) = self.links.remove(&link) {
            its.token.into_iter().for_each(|token| self.visitors.link_ended(token));
            its.pipes.to_vec()
        } else {
            return;
        };
        for pipe in pipes {
            self.owners.remove(&pipe);
            // Over TCP it would be taken for the beginning of a message.
            let refusal = unreadable.filter(|_| pipe.way == Way::Quic);
            self.carriers.close(pipe, refusal, now);
        }
        self.shared.shut(link);
        (self.tell)(Event::Down { link, reason });
    }
}
