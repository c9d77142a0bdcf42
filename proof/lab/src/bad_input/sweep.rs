//! One port, and how bytes get there.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use steadfast::{NodeConfig, NodeId};
use wire::Random;

use super::corpus;
use harness::cluster::Cluster;
use harness::{Outcome, bail};

/// A node that keeps a connection open after its client has ended it is at fault.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Datagrams between two short rests: the socket's buffer must not drop any before they are read.
const BURST: usize = 64;

/// Where the bytes go.
enum Port {
    Ring(UdpSocket),
    Client(SocketAddr),
    Admin(PathBuf),
}

/// Spoilt messages for one port.
pub struct Sweep {
    port: Port,
    good: Vec<Bytes>,
    random: Random,
}

impl Sweep {
    /// One for each port of the node.
    pub fn all(cluster: &Cluster, group: &str, node: NodeId, seed: u64) -> Outcome<Vec<Sweep>> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(cluster.ring(node))?;
        let client = cluster.client(node).ok_or("the node takes no clients")?;
        let name = NodeConfig::default().cluster;
        let ports = [
            (Port::Ring(socket), corpus::datagrams(&name)),
            (Port::Client(client), corpus::streams(group)),
            (Port::Admin(cluster.admin(node)), corpus::lines(group)),
        ];
        let sweep = |(port, good)| Sweep { port, good, random: Random::new(seed) };
        Ok(ports.into_iter().map(sweep).collect())
    }

    pub fn name(&self) -> &'static str {
        match self.port {
            Port::Ring(_) => "ring",
            Port::Client(_) => "client",
            Port::Admin(_) => "admin",
        }
    }

    /// Among a node's counters, those that tell of this port.
    pub fn refused(&self, counters: &Value) -> i64 {
        match self.port {
            Port::Ring(_) => total(&counters["malformed"]),
            Port::Client(_) => total(&counters["frames_malformed"]),
            Port::Admin(_) => total(&counters["admin_malformed"]),
        }
    }

    /// Sends so many spoilt messages.
    pub fn feed(&mut self, count: usize) -> Outcome<()> {
        for number in 1..=count {
            let good = self.random.below(self.good.len() as u64) as usize;
            let bytes = corpus::spoil(&self.good[good], &mut self.random);
            match &self.port {
                Port::Ring(socket) => send(socket, &bytes, number)?,
                Port::Client(address) => {
                    let stream = TcpStream::connect(address)?;
                    stream.set_read_timeout(Some(TIMEOUT))?;
                    exchange(&stream, &bytes, |stream| stream.shutdown(Shutdown::Write))?;
                }
                Port::Admin(path) => {
                    let stream = UnixStream::connect(path)?;
                    stream.set_read_timeout(Some(TIMEOUT))?;
                    exchange(&stream, &bytes, |stream| stream.shutdown(Shutdown::Write))?;
                }
            }
        }
        Ok(())
    }
}

fn total(counter: &Value) -> i64 {
    match counter {
        Value::Object(reasons) => reasons.values().map(total).sum(),
        number => number.as_i64().unwrap_or(0),
    }
}

fn send(socket: &UdpSocket, bytes: &[u8], number: usize) -> Outcome<()> {
    socket.send(bytes)?;
    if number.is_multiple_of(BURST) {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Writes the bytes, ends the stream, and reads what comes until the node ends it, too.
fn exchange<S>(mut stream: &S, bytes: &[u8], end: impl FnOnce(&S) -> io::Result<()>) -> Outcome<()>
where
    for<'a> &'a S: Read + Write,
{
    // The node may close the stream before all is written: that is its right.
    let _ = stream.write_all(bytes);
    let _ = end(stream);
    let mut answer = [0; 4096];
    loop {
        match stream.read(&mut answer) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => bail!("the node leaves a connection open: {error}"),
        }
    }
}
