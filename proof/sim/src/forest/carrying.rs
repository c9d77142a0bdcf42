//! Links are dialled, carry messages, and end.

use std::net::SocketAddr;

use cells::{LinkId, Message};
use wire::Duration;

use super::cell::CellModel;
use super::happening::{Dial, Happening};
use super::world::Forest;
use crate::celled::{At, place_of};
use crate::check::{Verdict, demand};
use crate::wires::{Due, Taken};

/// The node that answers at an address, if it does.
fn answers(cells: &[CellModel], address: &SocketAddr) -> Option<At> {
    let at = place_of(address);
    cells.get(at.cell).filter(|model| model.acts(at.node)).map(|_| at)
}

/// A datagram that nobody answers is sent again after this time, as that of a dial is at first.
const AGAIN: Duration = Duration::from_millis(150);

impl Forest {
    pub(super) fn dial(
        &mut self,
        at: At,
        link: LinkId,
        (to, patience): (Vec<SocketAddr>, Duration),
    ) {
        let (life, until) = (self.cells[at.cell].life(at.node), self.now() + patience);
        self.dial_on(Dial { at, life, link, to: to.into(), patience, until });
    }

    /// Tries the first address, once more or for the first time.
    pub(super) fn dial_on(&mut self, mut dial: Dial) {
        let now = self.now();
        let Dial { at, life, link, .. } = dial;
        let Some(address) = dial.to.front() else {
            return self.queue.push(now, Happening::Dialled { at, life, link, to: None });
        };
        let At { cell, node } = place_of(address);
        let round_trip = self.net.latency(at.cell, cell) * 2;
        let is_silent = self.net.is_cut(at.cell, cell)
            || self.cells.get(cell).is_some_and(|it| it.runs(node) && !it.acts(node));
        let found = answers(&self.cells, address);
        if !is_silent && found.is_some() {
            let happening = Happening::Dialled { at, life, link, to: found };
            return self.queue.push(now + round_trip, happening);
        }
        let next = if !is_silent {
            now + round_trip
        } else if now + AGAIN < dial.until {
            return self.queue.push(now + AGAIN, Happening::Dial(dial));
        } else {
            dial.until
        };
        dial.to.pop_front();
        dial.until = next + dial.patience;
        self.queue.push(next, Happening::Dial(dial));
    }

    pub(super) fn dialled(&mut self, at: At, life: u64, link: LinkId, to: Option<At>) {
        if self.cells[at.cell].life(at.node) != life {
            return;
        }
        let to = to.filter(|to| self.cells[to.cell].acts(to.node));
        let to = to.filter(|to| !self.net.is_cut(at.cell, to.cell));
        let Some(to) = to else {
            return self.touch(at, |model, now, at| model.link_down(now, at.node, link));
        };
        let theirs = (to, self.cells[to.cell].life(to.node));
        let accepted = self.net.join(self.queue.now(), (at, life, link), theirs);
        let [from, target] = [at, to].map(|it| Some((self.cells[it.cell].path.clone(), it.node)));
        self.touch(to, |model, now, at| model.link_up(now, at.node, accepted, from));
        self.touch(at, |model, now, at| model.link_up(now, at.node, link, target));
    }

    pub(super) fn send(&mut self, at: At, link: LinkId, message: Message) {
        // A call that has come down again has lost its caller's name.
        if let Message::CarryFor(_, carry) | Message::Carry(carry) = &message {
            let to = self.net.other_end(at, link);
            let (number, course) = (carry.call.number, carry.course);
            self.calls.note_hops(&self.cells, carry);
            self.trace
                .say(self.queue.now(), || format!("call {number} {at:?} -> {to:?} {course:?}"));
        }
        let due = self.net.send(self.now(), at, link, message);
        self.arrives(due);
    }

    pub(super) fn close(&mut self, at: At, link: LinkId) {
        let due = self.net.close(self.now(), at, link);
        self.arrives(due);
    }

    /// These will arrive, or may now, if they have waited.
    pub(super) fn arrives(&mut self, all: impl IntoIterator<Item = Due>) {
        for Due { at, wire, end } in all {
            self.queue.push(at, Happening::Arrive { wire, end });
        }
    }

    /// The first message arrives, unless the way is cut or the node is stopped: then it waits.
    pub(super) fn arrive(&mut self, wire: usize, end: usize) -> Verdict {
        let to = self.net.target(wire, end);
        if self.cells[to.cell].is_stopped(to.node) {
            return Ok(());
        }
        let taken = self.net.take(self.now(), wire, end);
        let Some(Taken { at, life, link, message }) = taken else { return Ok(()) };
        if self.cells[at.cell].life(at.node) != life {
            return Ok(());
        }
        let Some(message) = message else {
            self.touch(at, |model, now, at| model.link_down(now, at.node, link));
            return Ok(());
        };
        // Bytes travel, and the other side has to read them.
        if self.net.messages.is_multiple_of(64) {
            let read = Message::decode(&message.encode());
            demand(read.as_ref() == Ok(&message), "messages are read as written", || {
                format!("{message:?} is read as {read:?}")
            })?;
        }
        self.message(at, link, message);
        Ok(())
    }

    /// A process is gone: its links' other ends are told by the kernel.
    pub(super) fn end_links(&mut self, at: At) {
        for link in self.net.links_of(at) {
            self.close(at, link);
        }
    }
}
