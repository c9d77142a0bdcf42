//! Mirrors the logs that another agent's courier brings, and hears its words.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::mem::discriminant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use memlog::{Kept, Mirror};
use wire::agents::{Frame, Kept as Reached, Open, Piece, Purpose};
use wire::{Member, NodeId};

use super::courier::MAX_LOG;
use crate::bells::Bells;
use crate::event::Event;
use crate::exchange::RankId;
use crate::keeping::{Shelf, Ticket};
use crate::streams::Stream;

/// Bytes that are read at a time.
const READ: usize = 256 << 10;

/// Kept logs wait for no more bytes than these before they go to the disk.
const AT_ONCE: usize = 2 << 20;

/// The most logs on a stream.
const MAX_LOGS: usize = 65_536;

/// Hears a courier until its stream ends, or the same agent has opened a later one. The purpose of
/// the stream is read.
pub(crate) fn hear(
    mut stream: impl Stream,
    events: &Sender<Event>,
    (me, bells, visits, shelf): (Member, &Bells, &Visits, &Shelf),
) -> io::Result<()> {
    let (mut input, mut room) = (BytesMut::new(), vec![0; READ]);
    let mut visitor = Visitor {
        me,
        visits,
        number: visits.next.fetch_add(1, Ordering::Relaxed),
        from: None,
        mirrors: BTreeMap::new(),
        keeps: BTreeMap::new(),
        come: 0,
        shelf,
        events,
        rung: BTreeSet::new(),
    };
    loop {
        while let Some(frame) = Frame::take(&mut input).map_err(io::Error::other)? {
            visitor.take(frame)?;
        }
        bells.ring(&visitor.rung);
        visitor.rung.clear();
        // Bytes that have come meanwhile go to the disk with these.
        if !stream.has_more() || visitor.come > AT_ONCE {
            visitor.flush()?;
        }
        match stream.read(&mut room)? {
            0 => return Ok(()),
            length => input.extend_from_slice(&room[..length]),
        }
    }
}

/// The last stream of each node: what an earlier one brings counts no more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visits {
    next: Arc<AtomicU64>,
    last: Arc<Mutex<BTreeMap<NodeId, u64>>>,
}

/// A log that is kept on the disk here.
struct Keep {
    kept: Kept,
    ticket: Ticket,
    open: Open,
    /// All before this byte was told to be there.
    told: u64,
}

struct Visitor<'a> {
    me: Member,
    visits: &'a Visits,
    /// The number of this stream.
    number: u64,
    from: Option<Member>,
    mirrors: BTreeMap<u32, (Mirror, Open)>,
    /// Logs that are kept on the disk here.
    keeps: BTreeMap<u32, Keep>,
    /// Bytes that have come since these were flushed.
    come: usize,
    shelf: &'a Shelf,
    events: &'a Sender<Event>,
    /// Receivers for whom something has come.
    rung: BTreeSet<RankId>,
}

impl Visitor<'_> {
    fn take(&mut self, frame: Frame) -> io::Result<()> {
        let wrong = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        let (from, word) = match (frame, self.from) {
            (Frame::Hello(hello), None) => {
                if hello.to != self.me {
                    return wrong("it looks for another agent, or another life of this one");
                }
                let mut last = self.visits.last.lock().unwrap_or_else(PoisonError::into_inner);
                let last = last.entry(hello.from.node).or_default();
                *last = self.number.max(*last);
                self.from = Some(hello.from);
                return Ok(());
            }
            (Frame::Open(open), Some(_)) => return self.open(open),
            (Frame::Bytes(piece), Some(_)) => return self.push(&piece),
            (Frame::Released(channel, at), Some(_)) => {
                let mirror = self.mirrors.get_mut(&channel);
                mirror.into_iter().for_each(|(mirror, _)| mirror.release(at));
                let released = self.keeps.get_mut(&channel).map(|it| it.kept.release(at));
                return self.heed(channel, released.unwrap_or(Ok(())));
            }
            (Frame::Word(word), Some(from)) => (from, word),
            (Frame::Alive, Some(_)) => return Ok(()),
            (Frame::Closed(channel), Some(_)) => {
                self.mirrors.remove(&channel);
                self.keeps.remove(&channel);
                return Ok(());
            }
            _ => return wrong("an agent begins with its hello, and says it once"),
        };
        self.report(from.node, Event::Heard(from, word))
    }

    /// Reports to the main thread, if this is the node's last stream.
    fn report(&self, node: NodeId, event: Event) -> io::Result<()> {
        let last = self.visits.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.get(&node).is_some_and(|last| *last > self.number) {
            return Err(io::Error::other("the agent has opened another stream"));
        }
        // Without the main thread the agent is about to end.
        let _ = self.events.send(event);
        Ok(())
    }

    fn open(&mut self, open: Open) -> io::Result<()> {
        let many = self.mirrors.len() + self.keeps.len();
        if many >= MAX_LOGS || open.capacity > MAX_LOG {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "too many or too long logs"));
        }
        // An earlier log of the route is read no more.
        let same = |its: &Open| discriminant(&its.purpose) == discriminant(&open.purpose);
        let other = |its: &Open| its.route != open.route || !same(its);
        self.mirrors.retain(|_, (_, its)| other(its));
        self.keeps.retain(|_, keep| other(&keep.open));
        if open.purpose == Purpose::Keep {
            return self.keep(open);
        }
        let mirror = Mirror::new(open.capacity, open.at)?;
        let file = mirror.file().try_clone()?;
        self.mirrors.insert(open.channel, (mirror, open));
        if open.purpose == Purpose::Read { self.mirrored(open, file) } else { Ok(()) }
    }

    /// A log is to be on the disk here. Where it cannot be, nobody is to wait for that.
    fn keep(&mut self, open: Open) -> io::Result<()> {
        match self.shelf.create(open.route, open.start, (open.capacity, open.at)) {
            Ok((ticket, kept)) => {
                self.keeps.insert(open.channel, Keep { kept, ticket, open, told: open.at });
                Ok(())
            }
            Err(error) => {
                tracing::error!(%error, "messages of another host cannot be kept here");
                self.reached(open, u64::MAX)
            }
        }
    }

    fn reached(&self, Open { route, start, capacity, .. }: Open, until: u64) -> io::Result<()> {
        let Some(from) = self.from else { return Ok(()) };
        self.report(from.node, Event::Keeps(from, Reached { route, start, capacity, until }))
    }

    /// The next bytes of a log. A later log of the route may have taken its place; and if its writer is
    /// broken, others come by the same stream.
    fn push(&mut self, Piece { channel, at, bytes }: &Piece) -> io::Result<()> {
        self.come += bytes.len();
        if let Some((mirror, open)) = self.mirrors.get_mut(channel) {
            let (open, pushed) = (*open, mirror.push(*at, bytes));
            let Purpose::Kept(reaches) = open.purpose else {
                match pushed {
                    Ok(()) => _ = self.rung.insert((open.route.job, open.route.to)),
                    Err(_) => _ = self.mirrors.remove(channel),
                }
                return Ok(());
            };
            // Its reader will have no other: it gets it as a whole.
            if mirror.last() >= reaches {
                let file = mirror.file().try_clone()?;
                self.mirrors.remove(channel);
                return self.mirrored(open, file);
            }
        }
        let pushed = self.keeps.get_mut(channel).map(|keep| keep.kept.push(*at, bytes));
        self.heed(*channel, pushed.unwrap_or(Ok(())))
    }

    fn mirrored(&self, open: Open, file: File) -> io::Result<()> {
        let node = self.from.map_or(self.me.node, |from| from.node);
        self.report(node, Event::Mirrored(open, file))
    }

    /// A disk that fails is as none: nobody is to wait for it.
    fn heed(&mut self, channel: u32, done: io::Result<()>) -> io::Result<()> {
        let Err(error) = done else { return Ok(()) };
        let Some(Keep { open, .. }) = self.keeps.remove(&channel) else { return Ok(()) };
        tracing::error!(%error, "messages of another host cannot be kept here any more");
        self.reached(open, u64::MAX)
    }

    /// Has the disk take what has come for it, and reports it.
    fn flush(&mut self) -> io::Result<()> {
        self.come = 0;
        // All that had come when a log was let go has been flushed by then.
        let news = |(channel, keep): (&u32, &Keep)| {
            (keep.kept.is_dirty() || keep.kept.whole() > keep.told).then_some(*channel)
        };
        let news: Vec<u32> = self.keeps.iter().filter_map(news).collect();
        for channel in news {
            let Some(keep) = self.keeps.get_mut(&channel) else { continue };
            let flushed = if keep.kept.is_dirty() { keep.kept.flush().map(drop) } else { Ok(()) };
            if let Err(error) = flushed {
                self.heed(channel, Err(error))?;
                continue;
            }
            keep.told = keep.kept.whole();
            let (open, told, last) = (keep.open, keep.told, keep.kept.show(keep.told));
            self.shelf.reaches(keep.ticket, last);
            self.reached(open, told)?;
        }
        Ok(())
    }
}
