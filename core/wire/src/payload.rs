//! A message to be ordered, in two pieces, so that its bulk is copied once: into its datagram.

use alloc::vec::Vec;

use bytes::Bytes;
use zerocopy::{Immutable, IntoBytes};

/// Bytes from this many on are shared: fewer are copied more quickly than written apart.
const SHARED: usize = 1 << 10;

/// Splits these bytes into the part that is copied behind a frame's head, and the part that follows
/// it as it is.
pub(crate) fn pieces(bytes: &Bytes) -> (&[u8], Bytes) {
    if bytes.len() < SHARED { (bytes, Bytes::new()) } else { (&[], bytes.clone()) }
}

/// A multicast message: a head that was written for it, and a body that others share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// The first bytes.
    pub head: Bytes,
    /// The bytes after them.
    pub body: Bytes,
}

/// A header as the owner of its bytes. `Bytes` of a copied slice would allocate again at the first
/// clone, and a payload is cloned at once: for the ring, and for who waits for its delivery.
struct Header<T>(T);

impl<T: IntoBytes + Immutable> AsRef<[u8]> for Header<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Payload {
    /// A fixed header, and the body behind it.
    pub(crate) fn new<T>(header: T, body: Bytes) -> Payload
    where
        T: IntoBytes + Immutable + Send + 'static,
    {
        Payload { head: Bytes::from_owner(Header(header)), body }
    }

    /// Its bytes.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// It has no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// So many bytes from this one on, in two pieces.
    ///
    /// # Panics
    /// If it has fewer.
    pub fn range(&self, from: usize, count: usize) -> [&[u8]; 2] {
        let middle = self.head.len();
        let (start, end) = (from.min(middle), (from + count).min(middle));
        let behind = |at: usize| at.saturating_sub(middle);
        [&self.head[start..end], &self.body[behind(from)..behind(from + count)]]
    }

    /// So many bytes from this one on. They are shared unless they are in both pieces.
    ///
    /// # Panics
    /// If it has fewer.
    pub fn part(&self, from: usize, count: usize) -> Bytes {
        let middle = self.head.len();
        if from + count <= middle {
            return self.head.slice(from..from + count);
        }
        if from >= middle {
            return self.body.slice(from - middle..from + count - middle);
        }
        self.range(from, count).concat().into()
    }

    /// These very pieces, not others like them.
    pub fn is(&self, other: &Payload) -> bool {
        self.head.as_ptr() == other.head.as_ptr() && self.len() == other.len()
    }

    /// It has these bytes.
    pub fn equals(&self, bytes: &[u8]) -> bool {
        self.len() == bytes.len()
            && bytes.starts_with(&self.head)
            && bytes[self.head.len()..] == self.body
    }

    /// The pieces that are not empty.
    pub fn pieces(self) -> impl Iterator<Item = Bytes> {
        [self.head, self.body].into_iter().filter(|piece| !piece.is_empty())
    }

    /// All in one piece: copied if there are two.
    pub fn whole(self) -> Bytes {
        if self.body.is_empty() {
            return self.head;
        }
        let mut whole = Vec::with_capacity(self.len());
        whole.extend_from_slice(&self.head);
        whole.extend_from_slice(&self.body);
        whole.into()
    }
}

impl From<Bytes> for Payload {
    fn from(head: Bytes) -> Payload {
        Payload { head, body: Bytes::new() }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(head: Vec<u8>) -> Payload {
        Bytes::from(head).into()
    }
}

impl From<&'static str> for Payload {
    fn from(head: &'static str) -> Payload {
        Bytes::from(head).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pieces_are_one_message() {
        let payload = Payload { head: "abc".into(), body: "defgh".into() };
        let whole = payload.clone().whole();
        assert_eq!(whole, "abcdefgh");
        for from in 0..=whole.len() {
            for count in 0..=whole.len() - from {
                assert_eq!(payload.range(from, count).concat(), whole[from..from + count]);
                assert_eq!(payload.part(from, count), whole[from..from + count]);
            }
        }
        assert!(payload.equals(&whole));
        assert!(!payload.equals(b"abcdefg") && !payload.equals(b"abcdefgX"));
        assert!(!payload.equals(b"Xbcdefgh"));
    }

    #[test]
    fn a_piece_is_known_from_another_like_it() {
        let payload = Payload::from(Bytes::copy_from_slice(b"abc"));
        assert!(payload.is(&payload.clone()));
        let other = Payload::from(Bytes::copy_from_slice(b"abc"));
        assert!(payload == other && !payload.is(&other));
    }
}
