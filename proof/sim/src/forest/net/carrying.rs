//! Links are dialled, carry messages, and end.

use std::net::SocketAddr;

use cells::{LinkId, Message, Path};
use wire::Duration;

use super::super::cell::{CellModel, place_of};
use super::super::happening::Happening;
use super::super::place::At;
use super::super::world::Forest;
use super::{End, NO_ANSWER};
use crate::check::{Verdict, demand};

/// The node that answers at an address, if it does.
fn answers(cells: &[CellModel], address: &SocketAddr) -> Option<At> {
    let (cell, node) = place_of(address);
    cells.get(cell).filter(|model| model.acts(node)).map(|_| At { cell, node })
}

impl Forest {
    pub(in super::super) fn dial(
        &mut self,
        at: At,
        life: u64,
        link: LinkId,
        to: &[SocketAddr],
        _: &Path,
    ) {
        let (mut took, mut found) = (Duration::ZERO, None);
        for address in to {
            let (cell, node) = place_of(address);
            let latency = self.net.latency(at.cell, cell);
            let is_silent = self.net.is_cut(at.cell, cell)
                || self.cells.get(cell).is_some_and(|it| it.runs(node) && !it.acts(node));
            if is_silent {
                took += NO_ANSWER;
                continue;
            }
            took += latency * 2;
            found = answers(&self.cells, address);
            if found.is_some() {
                break;
            }
        }
        let happening = Happening::Dialled { at, life, link, to: found };
        self.queue.push(self.now() + took, happening);
    }

    pub(in super::super) fn dialled(&mut self, at: At, life: u64, link: LinkId, to: Option<At>) {
        if self.cells[at.cell].life(at.node) != life {
            return;
        }
        let to = to.filter(|to| self.cells[to.cell].acts(to.node));
        let to = to.filter(|to| !self.net.is_cut(at.cell, to.cell));
        let Some(to) = to else {
            return self.touch(at, |model, now, at| model.link_down(now, at.node, link));
        };
        self.net.accepted += 1;
        let accepted = LinkId(self.net.accepted);
        let latency = self.net.latency(at.cell, to.cell);
        let theirs = (to, self.cells[to.cell].life(to.node), accepted);
        self.net.join([(at, life, link), theirs], latency);
        let [from, target] = [at, to].map(|it| Some((self.cells[it.cell].path.clone(), it.node)));
        self.touch(to, |model, now, at| model.link_up(now, at.node, accepted, from));
        self.touch(at, |model, now, at| model.link_up(now, at.node, link, target));
    }

    pub(in super::super) fn send(&mut self, at: At, link: LinkId, message: Message) {
        if let Message::CarryFor(_, carry) = &message {
            let to = self.net.by_link.get(&(at, link));
            let to = to.map(|(wire, end)| self.net.wires[*wire].ends[1 - *end].at);
            let (number, course) = (carry.call.number, carry.course);
            self.trace
                .say(self.queue.now(), || format!("call {number} {at:?} -> {to:?} {course:?}"));
        }
        self.put(at, link, Some(message));
    }

    pub(in super::super) fn close(&mut self, at: At, link: LinkId) {
        self.put(at, link, None);
        self.forget_end(at, link);
    }

    fn put(&mut self, at: At, link: LinkId, message: Option<Message>) {
        let Some(&(wire, end)) = self.net.by_link.get(&(at, link)) else { return };
        let now = self.now();
        let latency = self.net.wires[wire].latency;
        let other = &mut self.net.wires[wire].ends[1 - end];
        if !other.is_open {
            return;
        }
        let arrives = now + latency;
        other.arriving.push_back((arrives, message));
        self.net.messages += 1;
        self.queue.push(arrives, Happening::Arrive { wire, end: 1 - end });
    }

    fn forget_end(&mut self, at: At, link: LinkId) {
        if let Some((wire, end)) = self.net.by_link.remove(&(at, link)) {
            let wire_model = &mut self.net.wires[wire];
            wire_model.ends[end].is_open = false;
            wire_model.ends[end].arriving.clear();
            if wire_model.ends.iter().all(|end| !end.is_open) {
                self.net.free.push(wire);
            }
        }
    }

    /// The first message arrives, unless the way is cut or the node is stopped: then it waits.
    pub(in super::super) fn arrive(&mut self, wire: usize, end: usize) -> Verdict {
        let now = self.now();
        let [one, other] = [0, 1].map(|end| self.net.wires[wire].ends[end].at);
        let target = &self.net.wires[wire].ends[end];
        let (at, link, life) = (target.at, target.link, target.life);
        let is_due = target.arriving.front().is_some_and(|(due, _)| *due <= now);
        if !target.is_open || !is_due || self.net.is_cut(one.cell, other.cell) {
            return Ok(());
        }
        if self.cells[at.cell].is_stopped(at.node) {
            return Ok(());
        }
        let target = &mut self.net.wires[wire].ends[end];
        let Some((_, message)) = target.arriving.pop_front() else { return Ok(()) };
        if self.cells[at.cell].life(at.node) != life {
            return Ok(());
        }
        match message {
            Some(message) => {
                // Bytes travel, and the other side has to read them.
                if self.net.messages.is_multiple_of(64) {
                    let read = Message::decode(&message.encode());
                    demand(read.as_ref() == Ok(&message), "messages are read as written", || {
                        format!("{message:?} is read as {read:?}")
                    })?;
                }
                self.message(at, link, message);
            }
            None => self.closed(wire, end),
        }
        Ok(())
    }

    /// A link's end is told that the other one is closed.
    pub(in super::super) fn closed(&mut self, wire: usize, end: usize) {
        let End { at, link, life, is_open, .. } = self.net.wires[wire].ends[end];
        if is_open {
            self.forget_end(at, link);
            if self.cells[at.cell].life(at.node) == life {
                self.touch(at, |model, now, at| model.link_down(now, at.node, link));
            }
        }
    }

    /// A process is gone: its links' other ends are told by the kernel.
    pub(in super::super) fn end_links(&mut self, at: At) {
        let range = (at, LinkId(0))..=(at, LinkId(u64::MAX));
        let links: Vec<LinkId> =
            self.net.by_link.range(range).map(|((_, link), _)| *link).collect();
        for link in links {
            self.close(at, link);
        }
    }

    /// Messages that waited go on: of one node, or between two cells.
    pub(in super::super) fn go_on(&mut self, waited: impl Fn(At, At) -> bool) {
        let now = self.now();
        for (place, wire) in self.net.wires.iter().enumerate() {
            let [one, other] = [wire.ends[0].at, wire.ends[1].at];
            if !waited(one, other) {
                continue;
            }
            for end in 0..2 {
                for (due, _) in &wire.ends[end].arriving {
                    self.queue.push((*due).max(now), Happening::Arrive { wire: place, end });
                }
            }
        }
    }
}
