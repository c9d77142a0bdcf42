//! Memory for datagrams, used again and again.

use alloc::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Pieces that are watched for their return. More are given back to the system when the last
/// datagram in them is gone.
const WATCHED: usize = 64;

/// Pieces looked at for one that has come back.
const LOOKS: usize = 4;

/// A buffer where datagrams are written one after the other. Each is a slice of a larger piece, and
/// a piece is used again when its datagrams are gone: in steady state nothing is allocated. A
/// datagram that is kept for long keeps its whole piece.
#[derive(Debug)]
pub struct Arena {
    current: BytesMut,
    /// Full pieces, oldest first. Their remaining buffers are empty.
    full: VecDeque<BytesMut>,
    piece: usize,
}

impl Arena {
    /// Memory in pieces of so many bytes.
    pub fn new(piece: usize) -> Arena {
        Arena { current: BytesMut::new(), full: VecDeque::new(), piece }
    }

    /// An empty buffer with room for `length` bytes. Split off what was written.
    pub fn room(&mut self, length: usize) -> &mut BytesMut {
        self.current.clear();
        if self.current.capacity() < length {
            let next = self.returned(length);
            let size = self.piece.max(length);
            let next = next.unwrap_or_else(|| BytesMut::with_capacity(size));
            let full = core::mem::replace(&mut self.current, next);
            if self.full.len() == WATCHED {
                self.full.pop_front();
            }
            self.full.push_back(full);
        }
        &mut self.current
    }

    /// The bytes written into [`room`](Arena::room) so far, to write on.
    pub fn written(&mut self) -> &mut BytesMut {
        &mut self.current
    }

    /// The same as [`take`](Arena::take), to be changed before it is sent.
    pub fn draft(&mut self) -> BytesMut {
        self.current.split()
    }

    /// Takes the bytes written into [`room`](Arena::room).
    pub fn take(&mut self) -> Bytes {
        self.current.split().freeze()
    }

    /// A piece whose datagrams are gone. The oldest is the likeliest; one that is still in use goes
    /// to the end, so that it does not stand before those that have come back.
    fn returned(&mut self, length: usize) -> Option<BytesMut> {
        for _ in 0..LOOKS.min(self.full.len()) {
            let mut piece = self.full.pop_front()?;
            if piece.try_reclaim(self.piece.max(length)) {
                return Some(piece);
            }
            self.full.push_back(piece);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    fn write(arena: &mut Arena, length: usize, byte: u8) -> Bytes {
        arena.room(length).resize(length, byte);
        arena.take()
    }

    #[test]
    fn what_is_kept_stays_and_what_is_gone_makes_room() {
        let mut arena = Arena::new(1_000);
        let mut kept = VecDeque::new();
        let mut pieces = BTreeSet::new();
        for round in 0..2_000usize {
            let length = [1, 90, 400, 999, 1_000, 1_700][round % 6];
            let bytes = write(&mut arena, length, round as u8);
            if length == 1_000 {
                pieces.insert(bytes.as_ptr() as usize);
            }
            kept.push_back((bytes, round as u8, length));
            if kept.len() > 20 {
                kept.pop_front();
            }
            for (bytes, byte, length) in &kept {
                assert!(bytes.len() == *length && bytes.iter().all(|b| b == byte));
            }
        }
        assert!(pieces.len() < 60, "{} pieces for at most 20 datagrams", pieces.len());
    }

    #[test]
    fn pieces_that_do_not_come_back_are_not_watched_for_ever() {
        let mut arena = Arena::new(100);
        let kept = (0..3 * WATCHED).map(|_| write(&mut arena, 100, 1));
        let kept: VecDeque<Bytes> = kept.collect();
        assert!(arena.full.len() <= WATCHED);
        drop(kept);
    }
}
