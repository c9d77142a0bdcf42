//! A peer that speaks QUIC by hand: it sends what no link would, and reads only what it is told to.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, StreamId,
};
use steadfast_links::Class;
use tls::{Client, Credentials, Port};

use super::{DEADLINE, greeting};

struct Lane {
    machine: quinn_proto::Connection,
    stream: Option<StreamId>,
    lost: Option<ConnectionError>,
}

pub struct RawQuic {
    socket: UdpSocket,
    endpoint: Endpoint,
    config: ClientConfig,
    name: String,
    lanes: BTreeMap<usize, Lane>,
}

impl RawQuic {
    pub fn new(credentials: &Credentials) -> RawQuic {
        // When it is gone, nobody else gets its port by chance.
        let socket = UdpSocket::bind(os::ports::free_ring_addresses(1)[0]).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
        let client = Client::new(credentials, Port::Cell).unwrap();
        let config = QuicClientConfig::try_from(client.config()).unwrap();
        let config = ClientConfig::new(Arc::new(config));
        let name = tls::any_node(&credentials.identity.cluster);
        RawQuic { socket, endpoint, config, name, lanes: BTreeMap::new() }
    }

    /// Opens a connection with its stream.
    pub fn connect(&mut self, to: SocketAddr) -> usize {
        let now = Instant::now();
        let (handle, machine) =
            self.endpoint.connect(now, self.config.clone(), to, &self.name).unwrap();
        self.lanes.insert(handle.0, Lane { machine, stream: None, lost: None });
        self.until(|it| it.lanes[&handle.0].stream.map(|_| ()));
        handle.0
    }

    /// The four connections of a link, with their greetings sent.
    pub fn dial(&mut self, to: SocketAddr, token: u8) -> [usize; 4] {
        Class::ALL.map(|class| {
            let lane = self.connect(to);
            self.write(lane, &greeting(token, class));
            lane
        })
    }

    pub fn write(&mut self, lane: usize, bytes: &[u8]) {
        let lane = self.lanes.get_mut(&lane).unwrap();
        let taken = lane.machine.send_stream(lane.stream.unwrap()).write(bytes).unwrap();
        assert_eq!(taken, bytes.len(), "a test's bytes fit into a window");
        self.drive();
    }

    /// Reads so many bytes of one connection, and none of the others.
    pub fn read(&mut self, lane: usize, count: usize) -> Vec<u8> {
        let mut got = Vec::new();
        self.until(|it| {
            let lane = it.lanes.get_mut(&lane).unwrap();
            let mut stream = lane.machine.recv_stream(lane.stream.unwrap());
            let mut chunks = stream.read(true).unwrap();
            while got.len() < count
                && let Ok(Some(chunk)) = chunks.next(count - got.len())
            {
                got.extend_from_slice(&chunk.bytes);
            }
            let _ = chunks.finalize();
            (got.len() == count).then_some(())
        });
        got
    }

    /// Why the other side has ended this connection.
    pub fn end(&mut self, lane: usize) -> ConnectionError {
        self.until(|it| it.lanes[&lane].lost.clone())
    }

    /// Lets all connections go on until there is something.
    fn until<T>(&mut self, mut look: impl FnMut(&mut RawQuic) -> Option<T>) -> T {
        let end = Instant::now() + DEADLINE;
        loop {
            self.drive();
            if let Some(found) = look(self) {
                self.drive();
                return found;
            }
            assert!(Instant::now() < end, "it did not happen");
            self.receive();
        }
    }

    fn receive(&mut self) {
        let mut buffer = [0; 2048];
        let Ok((length, from)) = self.socket.recv_from(&mut buffer) else { return };
        let (data, mut reply) = (BytesMut::from(&buffer[..length]), Vec::new());
        let event = self.endpoint.handle(Instant::now(), from, None, None, data, &mut reply);
        if let Some(DatagramEvent::ConnectionEvent(handle, event)) = event {
            self.lanes.get_mut(&handle.0).unwrap().machine.handle_event(event);
        }
    }

    fn drive(&mut self) {
        let now = Instant::now();
        for (&handle, lane) in &mut self.lanes {
            if lane.machine.poll_timeout().is_some_and(|due| due <= now) {
                lane.machine.handle_timeout(now);
            }
            while let Some(event) = lane.machine.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(ConnectionHandle(handle), event) {
                    lane.machine.handle_event(event);
                }
            }
            while let Some(event) = lane.machine.poll() {
                match event {
                    Event::Connected => lane.stream = lane.machine.streams().open(Dir::Bi),
                    Event::ConnectionLost { reason } => lane.lost = Some(reason),
                    _ => {}
                }
            }
            let mut buffer = Vec::new();
            while let Some(transmit) = lane.machine.poll_transmit(now, 1, &mut buffer) {
                let _ = self.socket.send_to(&buffer[..transmit.size], transmit.destination);
                buffer.clear();
            }
        }
    }
}
