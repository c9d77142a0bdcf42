//! Carries logs and words to another agent: a thread that is a reader of the logs, as a rank is.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use memlog::{Bell, Broken, Reader};
use wire::Member;
use wire::agents::{Frame, Hello, MAGIC, MAX_PIECE, Open, Piece, Purpose, Route, Word};
use wire::versions::RING;

use crate::event::Event;
use crate::inbox::Inbox;
use crate::options::Tls;
use crate::streams::{self, SILENT, Stream};

/// Pauses before an agent that is not there is looked for again: the first, and the longest.
const AGAIN: Duration = Duration::from_millis(10);
const SELDOM: Duration = Duration::from_secs(1);

/// An agent that is not there for so long is counted on no more.
const AWAY: Duration = Duration::from_secs(3);

/// Bytes that are written at a time, so that no log waits long for others.
const ROUND: usize = 1 << 20;

/// The most bytes of a log that is carried.
pub(super) const MAX_LOG: u64 = 4 << 30;

/// A log that is carried, and what for.
pub(super) type Carried = (Route, Purpose);

/// Something to carry.
#[derive(Debug)]
pub(super) enum Parcel {
    /// A log of a sender's start: what it has, and what comes.
    Log(Carried, u64, Arc<File>),
    /// This log has another reader now.
    Close(Carried),
    /// A word.
    Word(Word),
}

/// The way to another agent.
pub(super) type Courier = Inbox<Parcel>;

impl Courier {
    /// One that goes to this agent. `events` hears each time that it has come there.
    pub fn start(
        (me, to): (Member, Member),
        at: String,
        tls: Option<Tls>,
        events: Sender<Event>,
    ) -> io::Result<Courier> {
        let (courier, parcels) = Inbox::new()?;
        let mut way = Way {
            me,
            to,
            at,
            tls,
            parcels,
            bell: courier.bell(),
            logs: BTreeMap::new(),
            words: VecDeque::new(),
            stream: None,
            channels: Vec::new(),
            next: 0,
            turn: 0,
            last: Instant::now(),
        };
        let body = move || {
            way.run(|there| {
                let event = if there { Event::Reached(to) } else { Event::Unreached(to) };
                let _ = events.send(event);
            });
        };
        thread::Builder::new().name("steadfast courier".into()).spawn(body)?;
        Ok(courier)
    }
}

/// A log that is carried.
struct Channel {
    number: u32,
    carried: Carried,
    reader: Reader,
    released: u64,
}

impl Channel {
    /// A log of a start that is over was carried as a whole.
    fn is_over(&self) -> bool {
        matches!(self.carried.1, Purpose::Kept(_)) && !self.reader.has_more()
    }

    /// Adds what comes next in the log to the frames.
    fn carry(&mut self, frames: &mut Vec<u8>, bytes: &mut Vec<u8>) -> Result<(), Broken> {
        let next = self.reader.copy_next(MAX_PIECE, bytes)?;
        let released = match next {
            // Before bytes that were written where it has let go; those that come were there still.
            Some((_, released)) => released,
            None => self.reader.released()?,
        };
        if released > self.released {
            self.released = released;
            frames.extend_from_slice(&Frame::Released(self.number, released).encode());
        }
        if let Some((at, _)) = next {
            let bytes = Bytes::copy_from_slice(bytes);
            let piece = Piece { channel: self.number, at, bytes };
            frames.extend_from_slice(&Frame::Bytes(piece).encode());
        }
        Ok(())
    }
}

struct Way {
    me: Member,
    to: Member,
    at: String,
    tls: Option<Tls>,
    parcels: Receiver<Parcel>,
    bell: Arc<Bell>,
    logs: BTreeMap<Carried, (u64, Arc<File>)>,
    words: VecDeque<Word>,
    stream: Option<Box<dyn Stream>>,
    channels: Vec<Channel>,
    /// The number of the next channel of this stream.
    next: u32,
    /// The log that is carried first in the next round.
    turn: usize,
    /// When something was written.
    last: Instant,
}

impl Way {
    /// `told` hears whether the other agent is there.
    fn run(&mut self, told: impl Fn(bool)) {
        let (mut pause, mut broken) = (AGAIN, None::<Instant>);
        while self.take_parcels() {
            let carried = match self.stream.is_some() {
                true => self.carry(),
                false => self.go().map(|()| {
                    told(true);
                    true
                }),
            };
            match carried {
                Ok(true) => {}
                Ok(false) => {
                    // It has lasted until there was nothing more to carry.
                    (pause, broken) = (AGAIN, None);
                    self.sleep();
                }
                Err(error) => {
                    tracing::debug!(at = self.at, %error, "another agent is not there");
                    self.stream = None;
                    // Words are said again when it is reached.
                    self.words.clear();
                    if broken.get_or_insert_with(Instant::now).elapsed() > AWAY {
                        told(false);
                    }
                    if !self.rest(pause) {
                        return;
                    }
                    pause = (2 * pause).min(SELDOM);
                }
            }
        }
    }

    /// False: nobody will bring any more.
    fn take_parcels(&mut self) -> bool {
        loop {
            match self.parcels.try_recv() {
                Ok(parcel) => self.take(parcel),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn take(&mut self, parcel: Parcel) {
        match parcel {
            Parcel::Log(carried, start, file) => {
                self.logs.insert(carried, (start, file));
                if let Err(error) = self.close(carried).and_then(|()| self.begin(carried)) {
                    tracing::info!(at = self.at, %error, "the way to another agent is broken");
                    self.stream = None;
                }
            }
            Parcel::Close(carried) => {
                self.logs.remove(&carried);
                if self.close(carried).is_err() {
                    self.stream = None;
                }
            }
            Parcel::Word(word) => self.words.push_back(word),
        }
    }

    /// Waits for as long before the next try. False: nobody will bring any more.
    fn rest(&mut self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            match self.parcels.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(parcel) => self.take(parcel),
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Goes to the other agent, with all logs from their beginnings.
    fn go(&mut self) -> io::Result<()> {
        let mut stream = streams::go(&self.at, self.tls.as_ref())?;
        stream.write_all(&MAGIC)?;
        let hello = Hello { version: RING.least, from: self.me, to: self.to };
        stream.write_all(&Frame::Hello(hello).encode())?;
        (self.stream, self.next) = (Some(stream), 0);
        self.channels.clear();
        let all: Vec<Carried> = self.logs.keys().copied().collect();
        all.into_iter().try_for_each(|carried| self.begin(carried))
    }

    /// A log is carried no more.
    fn close(&mut self, carried: Carried) -> io::Result<()> {
        let Some(place) = self.channels.iter().position(|it| it.carried == carried) else {
            return Ok(());
        };
        let number = self.channels.swap_remove(place).number;
        let Some(stream) = &mut self.stream else { return Ok(()) };
        stream.write_all(&Frame::Closed(number).encode())
    }

    /// Begins to carry a log. One that makes no sense is let be: its sender is broken.
    fn begin(&mut self, carried: Carried) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let Some((start, file)) = self.logs.get(&carried) else { return Ok(()) };
        let reader = Reader::open(file);
        let reader = reader.and_then(|reader| {
            let at = reader.released().map_err(io::Error::other)?;
            let fits = reader.capacity() <= MAX_LOG;
            if fits { Ok((reader, at)) } else { Err(io::ErrorKind::FileTooLarge.into()) }
        });
        let (reader, at) = match reader {
            Ok(reader) => reader,
            Err(error) => {
                tracing::warn!(?carried, %error, "a log cannot be read");
                self.logs.remove(&carried);
                return Ok(());
            }
        };
        let (channel, capacity) = (self.next, reader.capacity());
        self.next += 1;
        let (route, purpose) = carried;
        let open = Open { channel, purpose, route, start: *start, capacity, at };
        stream.write_all(&Frame::Open(open).encode())?;
        self.channels.push(Channel { number: channel, carried, reader, released: at });
        Ok(())
    }

    /// Carries what there is now. False: there was nothing.
    fn carry(&mut self) -> io::Result<bool> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        let mut frames = Vec::new();
        for word in self.words.drain(..) {
            frames.extend_from_slice(&Frame::Word(word).encode());
        }
        let (many, mut bytes) = (self.channels.len(), Vec::new());
        let mut over = Vec::new();
        for round in 0..many {
            let place = (self.turn + round) % many;
            let channel = &mut self.channels[place];
            if let Err(error) = channel.carry(&mut frames, &mut bytes) {
                tracing::warn!(log = ?channel.carried, %error, "a log cannot be read");
                over.push(channel.carried);
            } else if channel.is_over() {
                over.push(channel.carried);
            }
            if frames.len() >= ROUND {
                self.turn = place + 1;
                break;
            }
        }
        if frames.is_empty() && self.last.elapsed() > SILENT / 3 {
            frames.extend_from_slice(&Frame::Alive.encode());
        }
        if !frames.is_empty() {
            self.last = Instant::now();
            stream.write_all(&frames)?;
            stream.flush()?;
        }
        for carried in &over {
            self.logs.remove(carried);
            self.close(*carried)?;
        }
        Ok(!frames.is_empty())
    }

    /// Sleeps until there is something, or it is time for a sign of life.
    fn sleep(&mut self) {
        let heard = self.bell.begin();
        let there = |channel: &Channel| channel.reader.has_more();
        let brought = match self.parcels.try_recv() {
            Ok(parcel) => {
                self.take(parcel);
                true
            }
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Disconnected) => true,
        };
        if !brought && !self.channels.iter().any(there) {
            self.bell.sleep(heard, SILENT / 3);
        }
        self.bell.end();
    }
}
