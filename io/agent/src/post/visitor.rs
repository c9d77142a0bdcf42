//! Mirrors the logs that another agent's courier brings, and hears its words.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use memlog::Mirror;
use wire::agents::{Frame, Open, Piece, Route};
use wire::{Member, NodeId};

use super::Bells;
use super::courier::MAX_LOG;
use crate::event::Event;
use crate::exchange::RankId;
use crate::streams::Stream;

/// Bytes that are read at a time.
const READ: usize = 256 << 10;

/// The most logs on a stream.
const MAX_LOGS: usize = 65_536;

/// Hears a courier until its stream ends, or the same agent has opened a later one. The purpose of
/// the stream is read.
pub(crate) fn hear(
    mut stream: impl Stream,
    events: &Sender<Event>,
    (me, bells, visits): (Member, &Bells, &Visits),
) -> io::Result<()> {
    let (mut input, mut room) = (BytesMut::new(), vec![0; READ]);
    let mut visitor = Visitor {
        me,
        visits,
        number: visits.next.fetch_add(1, Ordering::Relaxed),
        from: None,
        mirrors: BTreeMap::new(),
        events,
        rung: BTreeSet::new(),
    };
    loop {
        while let Some(frame) = Frame::take(&mut input).map_err(io::Error::other)? {
            visitor.take(frame)?;
        }
        bells.ring(&visitor.rung);
        visitor.rung.clear();
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

struct Visitor<'a> {
    me: Member,
    visits: &'a Visits,
    /// The number of this stream.
    number: u64,
    from: Option<Member>,
    mirrors: BTreeMap<u32, (Mirror, Route)>,
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
            (Frame::Bytes(Piece { channel, at, bytes }), Some(_)) => {
                // A later log of the route may have taken its place.
                let Some((mirror, route)) = self.mirrors.get_mut(&channel) else { return Ok(()) };
                if mirror.push(at, &bytes).is_err() {
                    // Its writer is broken. Others come by the same stream.
                    self.mirrors.remove(&channel);
                    return Ok(());
                }
                self.rung.insert((route.job, route.to));
                return Ok(());
            }
            (Frame::Released(channel, at), Some(_)) => {
                let mirror = self.mirrors.get_mut(&channel);
                mirror.into_iter().for_each(|(mirror, _)| mirror.release(at));
                return Ok(());
            }
            (Frame::Word(word), Some(from)) => (from, word),
            (Frame::Alive, Some(_)) => return Ok(()),
            (Frame::Closed(channel), Some(_)) => {
                self.mirrors.remove(&channel);
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
        if self.mirrors.len() >= MAX_LOGS || open.capacity > MAX_LOG {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "too many or too long logs"));
        }
        // An earlier log of the route is read no more.
        self.mirrors.retain(|_, (_, route)| *route != open.route);
        let mirror = Mirror::new(open.capacity, open.at)?;
        let file = mirror.file().try_clone()?;
        self.mirrors.insert(open.channel, (mirror, open.route));
        let node = self.from.map_or(self.me.node, |from| from.node);
        self.report(node, Event::Mirrored(open.route, open.start, file))
    }
}
