//! What is called: a service that gives back what it gets, and the same over bare sockets.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};

use bytes::Bytes;
use steadfast::{Call, Context, MethodId, Service, ServiceOutcome};

use crate::Outcome;

/// The one method of the echo service.
pub const ECHO: MethodId = MethodId::of("echo");

/// Gives back what it gets. Its state is how often it did.
#[derive(Default)]
pub struct Echo {
    calls: u64,
}

impl Service for Echo {
    fn call(&mut self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        self.calls += 1;
        ServiceOutcome::Ok(Bytes::copy_from_slice(call.body))
    }

    fn snapshot(&self) -> Result<Vec<u8>, String> {
        Ok(self.calls.to_le_bytes().to_vec())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let state = state.try_into().map_err(|_| format!("{} bytes are no count", state.len()))?;
        self.calls = u64::from_le_bytes(state);
        Ok(())
    }
}

/// Which bare socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    Udp,
    Tcp,
}

impl Transport {
    /// As it is spelt on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
        }
    }
}

/// Echoes messages of `size` bytes until the other side is gone; `ready` is told the address.
pub fn serve(transport: Transport, size: usize, ready: impl FnOnce(SocketAddr)) -> Outcome<()> {
    let mut buffer = vec![0; size];
    match transport {
        Transport::Udp => {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            ready(socket.local_addr()?);
            loop {
                let (length, from) = socket.recv_from(&mut buffer)?;
                socket.send_to(&buffer[..length], from)?;
            }
        }
        Transport::Tcp => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            ready(listener.local_addr()?);
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            while stream.read_exact(&mut buffer).is_ok() {
                stream.write_all(&buffer)?;
            }
            Ok(())
        }
    }
}

/// The calling side of [`serve`].
pub enum Floor {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Floor {
    /// Connects to an echo.
    pub fn connect(transport: Transport, address: SocketAddr) -> Outcome<Floor> {
        Ok(match transport {
            Transport::Udp => {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
                socket.connect(address)?;
                Floor::Udp(socket)
            }
            Transport::Tcp => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Floor::Tcp(stream)
            }
        })
    }

    /// One round trip of `buffer`.
    pub fn round(&mut self, buffer: &mut [u8]) -> Outcome<()> {
        match self {
            Floor::Udp(socket) => {
                socket.send(buffer)?;
                socket.recv(buffer)?;
            }
            Floor::Tcp(stream) => {
                stream.write_all(buffer)?;
                stream.read_exact(buffer)?;
            }
        }
        Ok(())
    }
}
