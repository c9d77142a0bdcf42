//! Links' connections over QUIC: quinn-proto is the machine, this drives it.
//!
//! Each connection has one stream, both ways. So it has its own congestion window: a class that
//! fills its window holds up no other.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Incoming, Transmit, VarInt,
};
use wire::limits::{MAX_LINK_VISITORS, MAX_LINKS_ACCEPTED, MAX_LINKS_DIALLED};

use crate::class::{CLASSES, Pipe};
use crate::datagrams::Datagrams;
use crate::event::Down;
use crate::flow::Flow;
use crate::news::News;
use crate::poller::{EventFlags, Poller, Source};
use crate::security::{Expect, InForce};

pub(crate) mod config;
mod connection;

use connection::Connection;

/// Connections in all: those of links, visitors, and some that still say farewell.
const MAX_CONNECTIONS: usize =
    CLASSES * (MAX_LINKS_ACCEPTED + MAX_LINKS_DIALLED) + 2 * MAX_LINK_VISITORS;

/// Runs that one connection sends before the others have their turn.
const TURN: usize = 8;

pub(crate) struct Quic {
    endpoint: Endpoint,
    trust: InForce,
    /// For IPv4 and IPv6. Those that nothing is dialled by, or listened at, are not there.
    sockets: [Option<Datagrams>; 2],
    connections: BTreeMap<usize, Connection>,
    /// Where the connection of a pipe is.
    places: BTreeMap<u64, usize>,
    timers: BTreeSet<(Instant, usize)>,
    /// Connections that have something to do, by urgency.
    dirty: BTreeSet<(u8, usize)>,
    /// Those that wait until their socket takes more.
    stalled: Vec<usize>,
    next: u64,
    /// Strangers must prove their addresses first.
    pub crowded: bool,
    buffer: Vec<u8>,
}

impl Quic {
    /// Takes connections at this socket, if there is one.
    pub fn new(listen: Option<Datagrams>, trust: InForce, poller: &Poller) -> io::Result<Quic> {
        let server = listen.is_some().then(|| trust.get().quic_server.clone());
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), server, false, None);
        let mut quic = Quic {
            endpoint,
            trust,
            sockets: [None, None],
            connections: BTreeMap::new(),
            places: BTreeMap::new(),
            timers: BTreeSet::new(),
            dirty: BTreeSet::new(),
            stalled: Vec::new(),
            next: 0,
            crowded: false,
            buffer: Vec::new(),
        };
        if let Some(socket) = listen {
            quic.register(socket, poller)?;
        }
        Ok(quic)
    }

    fn register(&mut self, socket: Datagrams, poller: &Poller) -> io::Result<()> {
        let place = place(socket.address()?);
        poller.add(&socket, Source::Datagrams(place), EventFlags::IN)?;
        self.sockets[place] = Some(socket);
        Ok(())
    }

    /// Begins a connection to the one who is expected. It is open when the news say so.
    pub fn open(
        &mut self,
        to: SocketAddr,
        expect: Option<&Expect>,
        now: Instant,
        poller: &Poller,
    ) -> Result<Pipe, Down> {
        let lost = |error: io::Error| Down::Lost(error.to_string());
        if self.sockets[place(to)].is_none() {
            let any = match to {
                SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
                SocketAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
            };
            let socket = Datagrams::bind(any).map_err(lost)?;
            self.register(socket, poller).map_err(lost)?;
        }
        let trust = self.trust.get();
        let name = trust.name(expect)?;
        let (handle, connection) = self
            .endpoint
            .connect(now, trust.quic_client.clone(), to, &name)
            .map_err(|error| Down::Lost(error.to_string()))?;
        Ok(self.insert(handle, connection, true))
    }

    fn insert(
        &mut self,
        handle: ConnectionHandle,
        connection: quinn_proto::Connection,
        dialled: bool,
    ) -> Pipe {
        let pipe = Pipe::quic(self.next);
        self.next += 1;
        let connection = Connection::new(pipe, connection, dialled);
        self.dirty.insert((connection.rank, handle.0));
        self.places.insert(pipe.number, handle.0);
        self.connections.insert(handle.0, connection);
        pipe
    }

    /// Reads a socket that epoll reported.
    pub fn handle_ready(
        &mut self,
        place: usize,
        flags: EventFlags,
        now: Instant,
        poller: &Poller,
        news: &mut Vec<News>,
    ) {
        let Some(mut socket) = self.sockets.get_mut(place).and_then(Option::take) else { return };
        if flags.contains(EventFlags::ERR) {
            socket.refused(|to, bytes| self.handle_refusal(to, bytes, news));
        }
        let mut replies: Vec<(Transmit, Vec<u8>)> = Vec::new();
        socket.receive(|from, datagram| {
            let reply = self.handle_datagram(from, datagram, now, news);
            replies.extend(reply);
        });
        for (transmit, bytes) in replies {
            send(&mut socket, &transmit, &bytes);
        }
        if flags.contains(EventFlags::OUT) {
            socket.flush();
            if !socket.is_full() {
                let _ = poller.modify(&socket, Source::Datagrams(place), EventFlags::IN);
                for handle in std::mem::take(&mut self.stalled) {
                    self.mark(handle);
                }
            }
        }
        self.sockets[place] = Some(socket);
    }

    fn handle_datagram(
        &mut self,
        from: SocketAddr,
        datagram: BytesMut,
        now: Instant,
        news: &mut Vec<News>,
    ) -> Option<(Transmit, Vec<u8>)> {
        let mut reply = Vec::new();
        match self.endpoint.handle(now, from, None, None, datagram, &mut reply)? {
            DatagramEvent::ConnectionEvent(handle, event) => {
                if let Some(connection) = self.connections.get_mut(&handle.0) {
                    connection.machine.handle_event(event);
                    self.mark(handle.0);
                }
                None
            }
            DatagramEvent::Response(transmit) => Some((transmit, reply)),
            DatagramEvent::NewConnection(incoming) => {
                let transmit = self.accept(incoming, now, &mut reply, news)?;
                Some((transmit, reply))
            }
        }
    }

    fn accept(
        &mut self,
        incoming: Incoming,
        now: Instant,
        reply: &mut Vec<u8>,
        news: &mut Vec<News>,
    ) -> Option<Transmit> {
        if self.connections.len() >= MAX_CONNECTIONS {
            return Some(self.endpoint.refuse(incoming, reply));
        }
        if self.crowded && incoming.may_retry() && !incoming.remote_address_validated() {
            return self.endpoint.retry(incoming, reply).ok();
        }
        let from = incoming.remote_address();
        let config = self.trust.get().quic_server.clone();
        match self.endpoint.accept(incoming, now, reply, Some(config)) {
            Ok((handle, connection)) => {
                let pipe = self.insert(handle, connection, false);
                news.push(News::Entered(pipe, from));
                None
            }
            Err(error) => error.response,
        }
    }

    /// Nobody took a datagram: its connection is dead. Whoever forges this must have seen the
    /// datagram.
    fn handle_refusal(&mut self, to: SocketAddr, bytes: &[u8], news: &mut Vec<News>) {
        let refused = self.connections.values_mut().find(|it| it.has_sent(to, bytes));
        if let Some(connection) = refused
            && !connection.is_over()
        {
            let why = Down::Lost("nobody listens there".into());
            news.push(News::Ended(connection.pipe, why));
        }
    }

    fn mark(&mut self, handle: usize) {
        if let Some(connection) = self.connections.get(&handle) {
            self.dirty.insert((connection.rank, handle));
        }
    }

    fn get(&mut self, number: u64) -> Option<&mut Connection> {
        self.connections.get_mut(self.places.get(&number)?)
    }

    pub fn flow(&mut self, number: u64) -> Option<&mut Flow> {
        Some(&mut self.get(number)?.flow)
    }

    /// Something was put into the output.
    pub fn touch(&mut self, number: u64) {
        if let Some(&handle) = self.places.get(&number) {
            self.mark(handle);
        }
    }

    /// Those of a smaller rank send first.
    pub fn rank(&mut self, number: u64, rank: u8) {
        if let Some(connection) = self.get(number) {
            connection.rank = rank;
        }
    }

    /// Much may be on its way from now on.
    pub fn widen(&mut self, number: u64) {
        if let Some(connection) = self.get(number) {
            connection.machine.set_receive_window(config::WINDOW.into());
        }
        self.touch(number);
    }

    /// Ends a connection, with a code for the other side.
    pub fn close(&mut self, number: u64, code: u8, now: Instant) {
        let Some(handle) = self.places.remove(&number) else { return };
        if let Some(connection) = self.connections.get_mut(&handle) {
            connection.closed = true;
            connection.machine.close(now, VarInt::from(code), Bytes::new());
            self.mark(handle);
        }
    }

    /// Does what is due.
    pub fn handle_timeouts(&mut self, now: Instant) {
        while let Some(&(due, handle)) = self.timers.first()
            && due <= now
        {
            self.timers.pop_first();
            if let Some(connection) = self.connections.get_mut(&handle) {
                connection.timer = None;
                connection.machine.handle_timeout(now);
                self.mark(handle);
            }
        }
    }

    /// When something is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Lets each connection with something to do have a turn. True: some want another one.
    pub fn flush(&mut self, now: Instant, poller: &Poller, news: &mut Vec<News>) -> bool {
        for (_, handle) in std::mem::take(&mut self.dirty) {
            self.drive(handle, now, poller, news);
        }
        !self.dirty.is_empty()
    }

    fn drive(&mut self, handle: usize, now: Instant, poller: &Poller, news: &mut Vec<News>) {
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        connection.take_events(news);
        connection.write();
        let more = self.transmit(handle, now, poller);
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        while let Some(event) = connection.machine.poll_endpoint_events() {
            let answer = self.endpoint.handle_event(ConnectionHandle(handle), event);
            if let Some(event) = answer {
                connection.machine.handle_event(event);
            }
        }
        if let Some(timer) = connection.timer.take() {
            self.timers.remove(&(timer, handle));
        }
        if connection.machine.is_drained() {
            // The endpoint has forgotten it: its place may be taken by another.
            let pipe = connection.pipe;
            self.places.remove(&pipe.number);
            let over = self.connections.remove(&handle).is_none_or(|it| it.is_over());
            if !over {
                news.push(News::Ended(pipe, Down::Silent));
            }
            return;
        }
        connection.timer = connection.machine.poll_timeout();
        self.timers.extend(connection.timer.map(|timer| (timer, handle)));
        if more {
            self.mark(handle);
        }
    }

    /// Sends what the connection may send, up to a turn. True: there may be more.
    fn transmit(&mut self, handle: usize, now: Instant, poller: &Poller) -> bool {
        let Some(connection) = self.connections.get_mut(&handle) else { return false };
        let place = place(connection.machine.remote_address());
        let Some(socket) = &mut self.sockets[place] else { return false };
        for _ in 0..TURN {
            if socket.is_full() {
                let flags = EventFlags::IN | EventFlags::OUT;
                let _ = poller.modify(&*socket, Source::Datagrams(place), flags);
                self.stalled.push(handle);
                return false;
            }
            self.buffer.clear();
            let run = socket.run();
            let Some(transmit) = connection.machine.poll_transmit(now, run, &mut self.buffer)
            else {
                return false;
            };
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            connection.remember(&self.buffer[..transmit.size], segment);
            send(socket, &transmit, &self.buffer);
        }
        true
    }
}

fn send(socket: &mut Datagrams, transmit: &Transmit, bytes: &[u8]) {
    let segment = transmit.segment_size.unwrap_or(transmit.size);
    if transmit.size > 0 {
        socket.send(transmit.destination, &bytes[..transmit.size], segment);
    }
}

/// The place of a family's socket.
fn place(address: SocketAddr) -> usize {
    usize::from(address.is_ipv6())
}
