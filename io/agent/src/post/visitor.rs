//! Mirrors the logs that another agent's courier brings, and hears its words.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::Sender;

use bytes::BytesMut;
use memlog::Mirror;
use wire::Member;
use wire::agents::{Frame, Open, Piece, Route};

use super::Bells;
use crate::event::Event;
use crate::exchange::RankId;
use crate::streams::Stream;

/// Bytes that are read at a time.
const READ: usize = 256 << 10;

/// The most logs on a stream, and the most bytes of one.
const MAX_LOGS: usize = 65_536;
const MAX_LOG: u64 = 4 << 30;

/// Hears a courier until its stream ends. The purpose of the stream is read.
pub(crate) fn hear(
    mut stream: impl Stream,
    events: &Sender<Event>,
    bells: &Bells,
) -> io::Result<()> {
    let (mut input, mut room) = (BytesMut::new(), vec![0; READ]);
    let mut visitor = Visitor { from: None, mirrors: BTreeMap::new(), events, rung: BTreeSet::new() };
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

struct Visitor<'a> {
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
                self.from = Some(hello.from);
                return Ok(());
            }
            (Frame::Open(open), Some(_)) => return self.open(open),
            (Frame::Bytes(Piece { channel, at, bytes }), Some(_)) => {
                // A later log of the route may have taken its place.
                let Some((mirror, route)) = self.mirrors.get_mut(&channel) else { return Ok(()) };
                mirror.push(at, &bytes).map_err(io::Error::other)?;
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
            _ => return wrong("an agent begins with its hello, and says it once"),
        };
        // Without the main thread the agent is about to end.
        let _ = self.events.send(Event::Heard(from, word));
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
        let _ = self.events.send(Event::Mirrored(open.route, open.start, file));
        Ok(())
    }
}
