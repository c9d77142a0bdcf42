//! Processes that answer on bare sockets: the floors that calls are compared with.
//!
//! A message that all must have before its sender goes on has a floor of its own: a datagram to
//! each of several processes and the answers of all, alone and behind a client's TCP round trip.

use std::net::SocketAddr;

use crate::Outcome;
use crate::echo::{Floor, Transport, Waits, answer_tcp};
use crate::process::{Line, Process, Role};

/// Bytes of an answer: as many as the ring's acknowledgement has, more or less.
const ANSWER: usize = 32;

/// An echo process on a bare socket, and the connection to it.
pub struct EchoProcess {
    process: Process,
    floor: Floor,
}

impl EchoProcess {
    /// Starts it, on the processor `core` if that is given.
    pub fn start(
        transport: Transport,
        size: usize,
        core: Option<usize>,
        waits: Waits,
    ) -> Outcome<EchoProcess> {
        EchoProcess::spawn(
            &Role::Echo { transport, size, answer: size, waits, core },
            transport,
            waits,
        )
    }

    /// Starts a child that answers, and connects to it.
    pub fn spawn(role: &Role, transport: Transport, waits: Waits) -> Outcome<EchoProcess> {
        let mut process = Process::start(role)?;
        let Line::Ready { ready } = serde_json::from_str(&process.line()?)? else {
            return Err("the echo is not ready".into());
        };
        let floor = Floor::connect(transport, ready, waits)?;
        Ok(EchoProcess { process, floor })
    }

    /// The number of the process, which has one thread.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The connection to it.
    pub fn floor(&mut self) -> &mut Floor {
        &mut self.floor
    }

    /// One round trip, again and again.
    pub fn rounds(&mut self, size: usize) -> Box<dyn FnMut() -> Outcome<()> + '_> {
        let mut buffer = vec![7; size];
        Box::new(move || self.floor.round(&mut buffer))
    }
}

/// So many processes, each of which answers a datagram.
pub struct Fan(Vec<EchoProcess>);

impl Fan {
    /// Starts so many, for datagrams of `size` bytes.
    pub fn start(size: usize, peers: usize) -> Outcome<Fan> {
        let (transport, waits) = (Transport::Udp, Waits::Asleep);
        let role = Role::Echo { transport, size, answer: ANSWER, waits, core: None };
        let peer = |_| EchoProcess::spawn(&role, transport, waits);
        Ok(Fan((0..peers).map(peer).collect::<Outcome<_>>()?))
    }

    /// A datagram to each, and the answers of all.
    pub fn round(&mut self, buffer: &mut [u8]) -> Outcome<()> {
        for peer in &mut self.0 {
            peer.floor().send(buffer)?;
        }
        for peer in &mut self.0 {
            peer.floor().receive(buffer)?;
        }
        Ok(())
    }

    /// One round, again and again.
    pub fn rounds(&mut self, size: usize) -> Box<dyn FnMut() -> Outcome<()> + '_> {
        let mut buffer = vec![7; size];
        Box::new(move || self.round(&mut buffer))
    }
}

/// Answers a client's messages of `size` bytes, each after a round of a fan. For a child.
pub fn serve(size: usize, peers: usize, ready: impl FnOnce(SocketAddr)) -> Outcome<()> {
    let mut fan = Fan::start(size, peers)?;
    let mut datagram = vec![7; size];
    answer_tcp(size, Waits::Asleep, ready, |_| fan.round(&mut datagram))
}

/// A process that does so, and the connection to it.
pub fn behind_tcp(size: usize, peers: usize) -> Outcome<EchoProcess> {
    EchoProcess::spawn(&Role::Fan { size, peers }, Transport::Tcp, Waits::Asleep)
}
