//! Links are dialled, carry messages, and end.

use std::net::SocketAddr;

use cells::{LinkId, Message};
use wire::{Duration, Incarnation, Time};

use super::world::{Dial, Happening, System};
use crate::celled::{At, place_of};
use crate::check::{Verdict, demand};
use crate::wires::{Due, Taken};

/// An address that does not answer holds up those behind it for so long, as in `io/celld`.
const DIAL: Duration = Duration::from_secs(1);

/// A host that does not answer is asked again after this time, as transports do.
const AGAIN: Duration = Duration::from_millis(50);

impl System {
    pub(super) fn dial(
        &mut self,
        at: Time,
        (from, life): (At, Incarnation),
        link: LinkId,
        to: Vec<SocketAddr>,
    ) {
        let dial = Dial { from, life, link, to, next: 0, until: at + DIAL };
        self.queue.push(at, Happening::Try(dial));
    }

    /// A dial tries an address, and the next one when that is refused or does not answer.
    pub(super) fn try_dial(&mut self, mut dial: Dial) {
        let now = self.now();
        let Dial { from, life, link, .. } = dial;
        if self.cells[from.cell].life(System::place(from)) != Some(life) {
            return;
        }
        let Some(address) = dial.to.get(dial.next) else {
            return self.cells[from.cell].link_down(now, System::place(from), life, link);
        };
        let to = place_of(address);
        let place = System::place(to);
        let (is_cut, host) = (self.wires.is_cut(from.cell, to.cell), &self.cells[to.cell]);
        if is_cut || host.is_silent(place) {
            if now < dial.until {
                self.queue.push(now + AGAIN, Happening::Try(dial));
            } else {
                (dial.next, dial.until) = (dial.next + 1, now + DIAL);
                self.queue.push(now, Happening::Try(dial));
            }
            return;
        }
        let Some(theirs) = host.life(place) else {
            // Nobody is there: its host says so.
            let way = self.wires.latency(from.cell, to.cell) * 2;
            (dial.next, dial.until) = (dial.next + 1, now + way + DIAL);
            return self.queue.push(now + way, Happening::Try(dial));
        };
        let accepted = self.wires.join(now, (from, life.0, link), (to, theirs.0));
        let way = self.wires.latency(from.cell, to.cell);
        let [ours, other] = [from, to].map(|it| (self.cells[it.cell].path().clone(), it.node));
        // The dialling side's last word of the handshake comes a way later than the link is up.
        self.cells[to.cell].link_up(now + way, place, theirs, (accepted, ours));
        let own = System::place(from);
        self.cells[from.cell].link_up(now + way, own, life, (link, other));
    }

    /// These will arrive, or may now, if they have waited.
    pub(super) fn arrives(&mut self, all: impl IntoIterator<Item = Due>) {
        for Due { at, wire, end } in all {
            self.queue.push(at, Happening::Arrive { wire, end });
        }
    }

    /// The first message arrives, unless the way is cut: then it waits.
    pub(super) fn arrive(&mut self, wire: usize, end: usize) -> Verdict {
        let now = self.now();
        let Some(taken) = self.wires.take(now, wire, end) else { return Ok(()) };
        let Taken { at, life, link, message } = taken;
        let (place, life) = (System::place(at), Incarnation(life));
        self.trace.note(now, 1, at.cell, [u64::from(at.node.0), link.0]);
        let Some(message) = message else {
            self.cells[at.cell].link_down(now, place, life, link);
            return Ok(());
        };
        // Bytes travel, and the other side has to read them.
        if self.wires.messages.is_multiple_of(64) {
            let read = Message::decode(&message.encode());
            demand(read.as_ref() == Ok(&message), "messages are read as written", || {
                format!("{message:?} is read as {read:?}")
            })?;
        }
        self.say(|| format!("{at:?} <- {link:?} {message:?}"));
        self.cells[at.cell].message(now, place, life, link, message);
        Ok(())
    }
}
