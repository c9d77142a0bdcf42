//! Copies of images, from agent to agent. What comes is believed only where it fits the root that the
//! book has.
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

use image::{Place, Root};
use wire::versions::RING;

mod giver;
mod taker;

pub use giver::Giver;
pub use taker::Taker;

/// Bytes of a request.
const ASK: usize = 68;

/// The first bytes of a request.
pub(crate) const MAGIC: [u8; 4] = *b"SFIM";

/// The request for an image.
fn ask(place: Place, root: &Root) -> [u8; ASK] {
    let mut bytes = [0; ASK];
    bytes[..4].copy_from_slice(&MAGIC);
    // Nobody answers with a version: all neighbours read the oldest.
    bytes[4] = RING.least;
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
    let known = bytes[..4] == MAGIC && RING.contains(bytes[4]) && bytes[5..8] == [0; 3];
    known.then(|| (place, bytes[36..].try_into().expect("a root")))
}
