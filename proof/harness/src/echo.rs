//! The called services: one that returns its input, and the same over bare sockets.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use steadfast::{BoxError, Call, Context, MethodId, Service, ServiceOutcome};

use crate::Outcome;

/// The one method of the echo service.
pub const ECHO: MethodId = MethodId::of("echo");

/// The handler of a service whose state is the number of its calls.
pub trait Handler {
    /// Answers a call.
    fn handle(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome;
}

/// The service of a handler: it counts.
#[derive(Default)]
pub struct Counted<H> {
    calls: u64,
    handler: H,
}

impl<H: Handler + Send + 'static> Service for Counted<H> {
    fn call(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome {
        self.calls += 1;
        self.handler.handle(context, call)
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(self.calls.to_le_bytes().to_vec())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        let state = state.try_into().map_err(|_| format!("{} bytes are no count", state.len()))?;
        self.calls = u64::from_le_bytes(state);
        Ok(())
    }
}

/// Gives back what it gets.
#[derive(Default)]
pub struct Echo;

impl Handler for Echo {
    fn handle(&mut self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        ServiceOutcome::Ok(Bytes::copy_from_slice(call.body))
    }
}

/// Which bare socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// A stream.
    Tcp,
}

/// How a side of an echo waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waits {
    /// In the kernel, until it is woken.
    Asleep,
    /// It looks again and again, and has to be woken by nobody.
    Awake,
}

/// Tries again as long as nothing has come: a socket that sleeps never says so.
fn patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
            outcome => return outcome,
        }
    }
}

/// A stream that is read and written patiently.
pub struct Patient(TcpStream);

impl Patient {
    fn new(stream: TcpStream, waits: Waits) -> io::Result<Patient> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(waits == Waits::Awake)?;
        Ok(Patient(stream))
    }
}

impl Read for Patient {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        patiently(|| self.0.read(bytes))
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        patiently(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Answers messages of `size` bytes, datagrams by their first `answer` bytes, until the other side
/// is gone; `ready` is told the address.
pub fn serve(
    transport: Transport,
    size: usize,
    answer: usize,
    waits: Waits,
    ready: impl FnOnce(SocketAddr),
) -> Outcome<()> {
    match transport {
        Transport::Udp => {
            let mut buffer = vec![0; size];
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_nonblocking(waits == Waits::Awake)?;
            ready(socket.local_addr()?);
            loop {
                let (length, from) = patiently(|| socket.recv_from(&mut buffer))?;
                patiently(|| socket.send_to(&buffer[..length.min(answer)], from))?;
            }
        }
        Transport::Tcp => answer_tcp(size, waits, ready, |_| Ok(())),
    }
}

/// Gives back messages of `size` bytes from one connection, each after `first` was done, until it
/// ends.
pub fn answer_tcp(
    size: usize,
    waits: Waits,
    ready: impl FnOnce(SocketAddr),
    mut first: impl FnMut(&[u8]) -> Outcome<()>,
) -> Outcome<()> {
    let mut buffer = vec![0; size];
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    ready(listener.local_addr()?);
    let (stream, _) = listener.accept()?;
    let mut stream = Patient::new(stream, waits)?;
    while stream.read_exact(&mut buffer).is_ok() {
        first(&buffer)?;
        stream.write_all(&buffer)?;
    }
    Ok(())
}

/// The calling side of [`serve`].
pub enum Floor {
    /// By datagrams.
    Udp(UdpSocket),
    /// By a stream.
    Tcp(Patient),
}

impl Floor {
    /// Connects to an echo.
    pub fn connect(transport: Transport, address: SocketAddr, waits: Waits) -> Outcome<Floor> {
        Ok(match transport {
            Transport::Udp => {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
                socket.connect(address)?;
                socket.set_nonblocking(waits == Waits::Awake)?;
                Floor::Udp(socket)
            }
            Transport::Tcp => Floor::Tcp(Patient::new(TcpStream::connect(address)?, waits)?),
        })
    }

    /// One round trip of `buffer`.
    pub fn round(&mut self, buffer: &mut [u8]) -> Outcome<()> {
        self.send(buffer)?;
        self.receive(buffer)
    }

    /// The first half of a round trip.
    pub fn send(&mut self, buffer: &[u8]) -> Outcome<()> {
        match self {
            Floor::Udp(socket) => patiently(|| socket.send(buffer)).map(drop)?,
            Floor::Tcp(stream) => stream.write_all(buffer)?,
        }
        Ok(())
    }

    /// The second half: one datagram, or as many bytes.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Outcome<()> {
        match self {
            Floor::Udp(socket) => patiently(|| socket.recv(buffer)).map(drop)?,
            Floor::Tcp(stream) => stream.read_exact(buffer)?,
        }
        Ok(())
    }
}
