//! Clients' connections: frames in, frames out, within bounds.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use admin::status::{Counters, HandshakeCounters};
use bytes::{Bytes, BytesMut};
use config::Rights;
use os::waker::Waker;
use rustix::io::Errno;
use tls::{Denied, Identity, Role};
use wire::client::{Frame, Hello, Outcome, Refusal, Reply};
use wire::limits::{MAX_CALLER_BACKLOG, MAX_CALLERS, MAX_CALLERS_BYTES};
use wire::versions::CLIENT;
use wire::{Caller, Malformed, Time};

use super::connection::{Connection, Taken};
use super::door::{Door, farewell};
use crate::poller::{EventFlags, Poller, Source};

/// Bytes read from a connection at a time, and before the others have their turn.
const READ: usize = 64 << 10;

/// The last words to a client whose certificate is denied.
const DENIED: &str = "your certificate is denied here: ask for a new one";

/// Connections accepted before the others have their turn.
const ACCEPT_BATCH: usize = 16;

/// The result of reading a connection.
pub(crate) enum Arrived {
    /// A frame.
    Frame(Caller, Frame),
    /// The connection has ended, and everything about it is gone.
    Gone(Caller),
}

#[derive(Debug)]
pub(crate) struct Callers {
    door: Door,
    address: SocketAddr,
    connections: BTreeMap<u64, Connection>,
    next: u64,
    /// The cluster that this is a node of, if clients have certificates.
    cluster: String,
    /// The calls that clients may make.
    rights: Rights,
    /// Certificates that are out.
    denied: Arc<Denied>,
    /// Bytes in all buffers, and how many there may be.
    buffered: usize,
    room: usize,
    /// Connections with frames that no write was tried for yet.
    unwritten: Vec<u64>,
    scratch: Box<[u8]>,
}

impl Callers {
    /// Takes clients who speak plain frames.
    pub fn listen(address: SocketAddr) -> io::Result<Callers> {
        Callers::new(Door::open(address)?, String::new(), Rights::default())
    }

    /// Takes clients who speak TLS and have a certificate, for the calls that they may make. The
    /// waker tells of those who have come in.
    pub fn listen_gated(
        address: SocketAddr,
        server: tls::Server,
        rights: Rights,
        waker: Arc<Waker>,
    ) -> io::Result<Callers> {
        let cluster = server.cluster().to_owned();
        Callers::new(Door::gated(address, server, waker)?, cluster, rights)
    }

    fn new(door: Door, cluster: String, rights: Rights) -> io::Result<Callers> {
        Ok(Callers {
            address: door.address()?,
            door,
            connections: BTreeMap::new(),
            next: 1,
            cluster,
            rights,
            denied: Arc::default(),
            buffered: 0,
            room: MAX_CALLERS_BYTES,
            unwritten: Vec::new(),
            scratch: vec![0; READ].into(),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Handshakes, if clients come through a gate.
    pub fn handshakes(&self) -> Option<HandshakeCounters> {
        self.door.handshakes()
    }

    /// How many connections each name in clients' certificates has.
    pub fn names(&self) -> BTreeMap<String, u64> {
        let mut names = BTreeMap::new();
        for secure in self.connections.values().filter_map(|it| it.secure.as_ref()) {
            *names.entry(secure.peer.identity.to_string()).or_default() += 1;
        }
        names
    }

    pub fn count(&self) -> usize {
        self.connections.len()
    }

    pub fn register(&self, poller: &Poller) -> Result<(), Errno> {
        self.door.register(poller)
    }

    /// When [`resume`](Callers::resume) is due.
    pub fn next_timeout(&self) -> Time {
        self.door.next_timeout()
    }

    /// Accepts again after a rest.
    pub fn resume(&mut self, now: Time, poller: &Poller) {
        self.door.resume(now, poller);
    }

    /// Whether it is the waker, and not epoll, that tells of new connections.
    pub fn is_gated(&self) -> bool {
        matches!(self.door, Door::Gated { .. })
    }

    /// Takes in those who have come, up to a batch, and tells of those that had to go for them.
    /// True if there may be more.
    pub fn accept(
        &mut self,
        now: Time,
        poller: &Poller,
        counters: &mut Counters,
        mut take: impl FnMut(Arrived),
    ) -> bool {
        for _ in 0..ACCEPT_BATCH {
            let Some(connection) = self.door.next(now, poller, counters) else { return false };
            let Some(number) = self.admit(connection, poller, counters, &mut take) else {
                continue;
            };
            // Its first words may have come with the handshake's last: epoll does not tell of them.
            let caller = Caller(number);
            if !self.take_frames(number, counters, |frame| take(Arrived::Frame(caller, frame))) {
                self.remove(number);
                take(Arrived::Gone(caller));
            }
        }
        true
    }

    /// These rights are in force from now on, and whose certificate is in the list is out. Returns
    /// the connections that ended.
    pub fn renew(&mut self, rights: Rights, denied: Arc<Denied>) -> Vec<Caller> {
        self.rights = rights;
        let mut out = Vec::new();
        for (number, connection) in &mut self.connections {
            let secure = connection.secure.as_ref();
            if secure.is_some_and(|secure| denied.denies(&secure.peer)) {
                connection.say(&farewell(DENIED));
                out.push(*number);
            }
        }
        self.denied = denied;
        out.iter().for_each(|number| self.remove(*number));
        out.into_iter().map(Caller).collect()
    }

    /// Gives a connection its number, if there is room or somebody makes it.
    fn admit(
        &mut self,
        mut connection: Connection,
        poller: &Poller,
        counters: &mut Counters,
        take: &mut impl FnMut(Arrived),
    ) -> Option<u64> {
        // The gate let it in, and the list may have changed since.
        if connection.secure.as_ref().is_some_and(|it| self.denied.denies(&it.peer)) {
            connection.say(&farewell(DENIED));
            counters.connections_refused += 1;
            return None;
        }
        if self.connections.len() >= MAX_CALLERS {
            counters.connections_refused += 1;
            // Connections without a greeting must not keep clients out.
            let idle =
                |(_, connection): &(&u64, &Connection)| !connection.greeted || connection.closing;
            let Some(number) = self.connections.iter().find(idle).map(|(number, _)| *number) else {
                let reason =
                    format!("this node has {MAX_CALLERS} clients, its limit: use another node");
                connection.say(&farewell(&reason));
                return None;
            };
            self.remove(number);
            take(Arrived::Gone(Caller(number)));
        }
        let number = self.next;
        let flags = EventFlags::IN | EventFlags::RDHUP;
        if poller.add(&connection.stream, Source::Caller(number), flags).is_err() {
            counters.connections_refused += 1;
            return None;
        }
        self.next += 1;
        counters.connections += 1;
        self.buffered += connection.held();
        if !connection.is_written() {
            self.unwritten.push(number);
        }
        self.connections.insert(number, connection);
        Some(number)
    }

    /// Reads and writes what a connection that epoll reported can.
    pub fn handle_ready(
        &mut self,
        number: u64,
        flags: EventFlags,
        poller: &Poller,
        counters: &mut Counters,
        mut take: impl FnMut(Arrived),
    ) {
        if flags.contains(EventFlags::OUT) && !self.write(number, poller, counters) {
            take(Arrived::Gone(Caller(number)));
            return;
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
            && !self.read(number, counters, |frame| take(Arrived::Frame(Caller(number), frame)))
        {
            self.remove(number);
            take(Arrived::Gone(Caller(number)));
        }
        while let Some(caller) = self.relieve(counters) {
            take(Arrived::Gone(caller));
        }
    }

    /// Ends the connection that holds most, if all together hold too much: who hoards competes with
    /// himself, and not with those whose requests are short.
    fn relieve(&mut self, counters: &mut Counters) -> Option<Caller> {
        if self.buffered <= self.room {
            return None;
        }
        let most = self.connections.iter().max_by_key(|(_, connection)| connection.held());
        let number = *most?.0;
        counters.connections_refused += 1;
        self.remove(number);
        Some(Caller(number))
    }

    /// Reads; false if the connection has ended.
    fn read(&mut self, number: u64, counters: &mut Counters, take: impl FnMut(Frame)) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else {
            return true;
        };
        let before = connection.held();
        let taken = connection.read(&mut self.scratch);
        self.buffered = self.buffered + connection.held() - before;
        if !connection.is_written() && !connection.waits_to_write {
            // TLS has something of its own to say, such as a new key.
            self.unwritten.push(number);
        }
        match taken {
            Taken::Some => self.take_frames(number, counters, take),
            Taken::Nothing => true,
            Taken::End => false,
            Taken::Broken => {
                counters.frames_malformed.count(&Malformed::Field("TLS record"));
                false
            }
        }
    }

    /// Takes the frames out of a connection's input; false if it has ended.
    fn take_frames(
        &mut self,
        number: u64,
        counters: &mut Counters,
        mut take: impl FnMut(Frame),
    ) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else {
            return true;
        };
        let before = connection.held();
        let malformed = loop {
            if !connection.greeted && is_no_greeting(&connection.input) {
                break Some(Malformed::Magic);
            }
            match Frame::take(&mut connection.input) {
                Ok(Some(frame)) => {
                    connection.greeted = true;
                    counters.frames_in += 1;
                    if let Frame::Hello(Hello { speaks: theirs, .. }) = frame
                        && CLIENT.common(theirs).is_none()
                    {
                        // The stack says farewell; here it is counted.
                        let other = Malformed::Version { theirs, ours: CLIENT };
                        counters.frames_malformed.count(&other);
                    }
                    match denied((&self.rights, &self.cluster), connection, &frame) {
                        None => take(frame),
                        Some(reply) => {
                            counters.calls_denied += 1;
                            connection.output_bytes += reply.len();
                            connection.output.push_back(reply);
                            self.unwritten.push(number);
                        }
                    }
                }
                Ok(None) => break None,
                Err(malformed) => break Some(malformed),
            }
        };
        if connection.input.is_empty() {
            // Frames share the buffer's memory: an idle connection is to hold none of it.
            connection.input = BytesMut::new();
        }
        self.buffered = self.buffered + connection.held() - before;
        if let Some(malformed) = malformed {
            counters.frames_malformed.count(&malformed);
            connection.say(&farewell(&malformed.to_string()));
            return false;
        }
        true
    }

    /// Queues a frame; `flush` writes it.
    pub fn push(&mut self, caller: Caller, frame: &Frame) {
        // A client that has gone meanwhile gets nothing, and finds its reply kept.
        if let Some(connection) = self.connections.get_mut(&caller.0)
            && !connection.closing
        {
            let payload = frame.payload();
            self.buffered += payload.len();
            connection.output_bytes += payload.len();
            connection.output.extend(payload.pieces());
            if !connection.waits_to_write || connection.output_bytes > MAX_CALLER_BACKLOG {
                self.unwritten.push(caller.0);
            }
        }
    }

    /// Ends a connection when all that is queued for it is written.
    pub fn close(&mut self, caller: Caller) {
        if let Some(connection) = self.connections.get_mut(&caller.0) {
            connection.closing = true;
            self.unwritten.push(caller.0);
        }
    }

    /// Writes what was queued. Returns a connection that ended by it; call until none does.
    pub fn flush(&mut self, poller: &Poller, counters: &mut Counters) -> Option<Caller> {
        while let Some(number) = self.unwritten.pop() {
            if self.connections.contains_key(&number) && !self.write(number, poller, counters) {
                return Some(Caller(number));
            }
        }
        self.relieve(counters)
    }

    /// Writes; false if the connection has ended, and is removed.
    fn write(&mut self, number: u64, poller: &Poller, counters: &mut Counters) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else {
            return true;
        };
        let before = connection.held();
        let result = connection.write(counters);
        self.buffered -= before - connection.held();
        let done = connection.is_written();
        let slow = connection.output_bytes > MAX_CALLER_BACKLOG;
        if slow {
            counters.clients_slow += 1;
        }
        if result.is_err() || slow || done && connection.closing {
            self.remove(number);
            return false;
        }
        if connection.waits_to_write == done {
            let mut flags = EventFlags::IN | EventFlags::RDHUP;
            flags.set(EventFlags::OUT, !done);
            connection.waits_to_write = !done;
            if poller.modify(&connection.stream, Source::Caller(number), flags).is_err() {
                self.remove(number);
                return false;
            }
        }
        true
    }

    fn remove(&mut self, number: u64) {
        if let Some(connection) = self.connections.remove(&number) {
            self.buffered -= connection.held();
        }
    }
}

/// The answer to a call that its client has no right to make, at a node of this cluster.
fn denied(
    (rights, cluster): (&Rights, &str),
    connection: &Connection,
    frame: &Frame,
) -> Option<Bytes> {
    let Frame::Request(request) = frame else { return None };
    if rights.are_all() {
        return None;
    }
    let identity = connection.secure.as_ref().map(|secure| &secure.peer.identity);
    // A node's gateway, and the process with its links, have asked the same rights of their callers.
    let is_node = |it: &Identity| matches!(it.role, Role::Node(_)) && it.cluster == cluster;
    if identity.is_some_and(is_node) {
        return None;
    }
    let name = identity.map(|identity| identity.name_in(cluster));
    let reason = rights.refuse(name.as_deref(), request.group, request.method)?;
    let reply = Reply {
        number: request.number,
        group: request.group,
        view: request.view,
        targets: None,
        outcome: Outcome::Refused(Refusal::Denied, reason),
    };
    Some(Frame::Reply(reply).encode())
}

/// Nobody's memory is given to those who have not introduced themselves: before that the stream
/// must look like a greeting, which is short.
fn is_no_greeting(input: &[u8]) -> bool {
    const LENGTH: std::ops::RangeInclusive<u8> = 0..=160;
    const ZERO: std::ops::RangeInclusive<u8> = 0..=0;
    const HELLO: std::ops::RangeInclusive<u8> = 1..=1;
    let header = [LENGTH, ZERO, ZERO, ZERO, HELLO];
    input.iter().zip(&header).any(|(byte, possible)| !possible.contains(byte))
}

#[cfg(test)]
mod tests;
