//! Copies of images, from agent to agent: over TLS between hosts, over a Unix socket between agents
//! of one machine. What comes is believed only where it fits the root that the book has.
//!
//! ```text
//! ask       0      4         5     8     12      20      28           36     68
//!          +------+---------+-----+------+-----+-------+------------+------+
//!          | SFIM | version |0 0 0| rank | job | start | generation | root |
//!          +------+---------+-----+------+-----+-------+------------+------+
//! answer    0        8         16
//!          +--------+---------+----------+------
//!          | length | length  | manifest | data      lengths of both; 0 and 0: it is not here
//!          +--------+---------+----------+------
//! ```
//!
//! All numbers are little-endian. A connection carries one image.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use image::{Place, Root};
use tls::SecureStream;
use wire::PROTOCOL_VERSION;

mod giver;
mod taker;

pub use giver::{Door, Giver};
pub use taker::Taker;

/// How long either side may say nothing.
const SILENT: Duration = Duration::from_secs(10);

/// Bytes of a request.
const ASK: usize = 68;

const MAGIC: [u8; 4] = *b"SFIM";

/// A stream of either kind.
trait Stream: Read + Write {}

impl Stream for UnixStream {}
impl Stream for SecureStream {}

/// The request for an image.
fn ask(place: Place, root: &Root) -> [u8; ASK] {
    let mut bytes = [0; ASK];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4] = PROTOCOL_VERSION;
    bytes[8..12].copy_from_slice(&place.rank.to_le_bytes());
    bytes[12..20].copy_from_slice(&place.job.to_le_bytes());
    bytes[20..28].copy_from_slice(&place.start.to_le_bytes());
    bytes[28..36].copy_from_slice(&place.generation.to_le_bytes());
    bytes[36..].copy_from_slice(root);
    bytes
}

fn asked(bytes: &[u8; ASK]) -> Option<(Place, Root)> {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let rank = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
    let place = Place { rank, job: number(12), start: number(20), generation: number(28) };
    let known = bytes[..4] == MAGIC && bytes[4] == PROTOCOL_VERSION && bytes[5..8] == [0; 3];
    known.then(|| (place, bytes[36..].try_into().expect("a root")))
}

fn tcp(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENT))?;
    stream.set_write_timeout(Some(SILENT))?;
    stream.set_nodelay(true)
}

/// An address of another host, if it is none of this machine's sockets.
fn address(at: &str) -> Option<SocketAddr> {
    at.parse().ok()
}
