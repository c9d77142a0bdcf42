//! The log of the messages to one rank.

use std::env;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use channel::Channels;
use memlog::{Bell, LastKept, Writer};
use wire::rank::SPILL_VARIABLE;

use super::message::Place;

/// Bytes of a log at first.
const FIRST: usize = 64 << 10;

/// The most bytes of a log, while its receiver may let go what is in it. Beyond them the sender waits.
pub(super) const MOST: u64 = memlog::IN_MEMORY;

/// The most bytes of a log whose receiver waits itself, and so reaches no safe point.
const LIMIT: u64 = 4 << 30;

/// A log to another host grows when it has been full for so long.
const FAR_FULL: Duration = Duration::from_secs(10);

/// Messages of more bytes than this are beyond the limit of a job.
pub(super) const LONGEST: u64 = 1 << 30;

/// The folder for logs that are too long for memory, if the agent has one.
pub(super) fn spill() -> Option<PathBuf> {
    let folder = PathBuf::from(env::var_os(SPILL_VARIABLE)?);
    memlog::is_on_disk(&folder).then_some(folder)
}

/// The messages to one rank that it may need again.
#[derive(Debug)]
pub(super) struct Outgoing {
    writer: Writer,
    /// Wakes the receiver.
    bell: Option<Bell>,
    /// How far the log is on disks, where that is told.
    kept: Option<LastKept>,
    /// The most bytes that the log may have now.
    most: u64,
    /// The receiver needs no messages up to this one, also of those that have yet to be sent again.
    pub needless: u64,
    /// How much of the ring was saved last, and is being saved: its bytes, and those written by then.
    pub saved: Option<(u64, u64)>,
    pub saving: Option<(u64, u64)>,
}

impl Outgoing {
    pub fn new() -> io::Result<Outgoing> {
        Writer::new(FIRST, None).map(Outgoing::of)
    }

    pub fn of(writer: Writer) -> Outgoing {
        let (bell, kept, saved, saving) = (None, None, None, None);
        Outgoing { writer, bell, kept, most: MOST, needless: 0, saved, saving }
    }

    pub fn file(&self) -> &File {
        self.writer.file()
    }

    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// There is to be room for another message. True: the messages are in another log now.
    pub fn grow(
        &mut self,
        length: u64,
        channels: &mut Channels<Place>,
        to: u32,
    ) -> io::Result<bool> {
        if self.writer.has_room(length) {
            return Ok(false);
        }
        let least = (4 * length).next_power_of_two();
        let wanted = (2 * self.writer.capacity()).max(least);
        // A long message has its room in any case.
        if wanted > self.most.max(least) {
            return Ok(false);
        }
        let capacity = usize::try_from(wanted).map_err(io::Error::other)?;
        // One with room for few long messages is as quick as memory.
        let waits = wanted > MOST.max(least);
        let mut larger = Writer::new(capacity, waits.then(spill).flatten().as_deref())?;
        let mut bytes = Vec::new();
        for (head, place) in channels.places_mut(to) {
            let Place::Sent(end) = place else { continue };
            bytes.resize(head.length as usize, 0);
            self.writer.copy(*end, &mut bytes);
            let pushed = larger.push((head.number, head.tag, head.check), [&bytes, &[]]);
            *end = pushed.map_err(|_| io::Error::other("a larger log has no room"))?;
        }
        let left = channels.left(to);
        let last = channels.whole_log(to, left).next();
        if let Some((head, Place::Sent(end))) = last
            && head.number == left
        {
            larger.publish(*end);
        }
        // Another file will tell of it.
        self.kept = None;
        self.writer = larger;
        if waits {
            // Among what the program says to its user: the log takes room, and its receiver takes time.
            eprintln!(
                "steadfast: the log of messages to rank {to} has {} MiB: that rank waits, and reaches \
                 no safe point where it could let them go",
                wanted >> 20
            );
        }
        Ok(true)
    }

    /// The log has been full for so long. If its receiver waits for messages, it reaches no safe point,
    /// so the log may grow beyond its usual limit. Of one at another host nobody here knows that. False:
    /// it has grown as far as it may.
    pub fn make_room(&mut self, full: Duration) -> bool {
        let waits = self.bell.as_ref().is_some_and(|bell| match bell.is_carrier() {
            true => full > FAR_FULL,
            false => bell.is_asleep(),
        });
        if waits && self.most <= self.writer.capacity() {
            self.most = (2 * self.writer.capacity()).min(LIMIT);
        }
        self.most < LIMIT || self.writer.capacity() < LIMIT
    }

    /// Writes a message; `None`: there is no room for it now.
    pub fn push(&mut self, mark: (u64, u32, u32), parts: [&[u8]; 2]) -> Option<u64> {
        self.writer.push(mark, parts).ok()
    }

    /// The receiver may see all before this place.
    pub fn publish(&mut self, end: u64) {
        self.writer.publish(end);
        self.bell.iter().for_each(Bell::ring);
    }

    /// The receiver has this bell.
    pub fn rings(&mut self, bell: Bell) {
        bell.ring();
        self.bell = Some(bell);
    }

    /// This memory says how far the log is on disks.
    pub fn keeps(&mut self, kept: LastKept) {
        self.kept = Some(kept);
    }

    /// Nobody tells any more how far it is on disks.
    pub fn keeps_not(&mut self) {
        self.kept = None;
    }

    /// The last message that is on all disks; `None`: nobody says it.
    pub fn last_kept(&self) -> Option<u64> {
        self.kept.as_ref().map(LastKept::number)
    }

    pub fn release(&mut self, end: u64) {
        self.writer.release(end);
    }
}
