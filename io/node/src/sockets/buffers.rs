//! Memory for what arrives, used again and again.
//!
//! Datagrams are not copied out of the buffer that the kernel wrote them into: they are slices of
//! it, and it can be used again when the last of them is gone. But a slice that lives long keeps
//! all of its buffer. So a reading that fills less than an eighth of one is copied out of it: what
//! a node keeps pins at most eight times its own size.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use super::segments::MAX_READ;

/// Readings of at most this many bytes are copied.
const COPIED: usize = MAX_READ / 8;

/// Copies lie one after the other in pieces of this size.
const PIECE: usize = 2 * COPIED;

/// Buffers that are out and are watched for their return; a window's worth (`MAX_WINDOW`
/// datagrams of 1,400 bytes are 22). Further ones are given back to the system when their
/// slices are gone.
const WATCHED: usize = 32;

/// Buffers looked at for one that has come back.
const LOOKS: usize = 4;

#[derive(Debug)]
pub(crate) struct Buffers {
    /// The one to read into, in its full length.
    current: BytesMut,
    /// Whole buffers of which slices are out, oldest first.
    out: VecDeque<Bytes>,
    /// Where copies are made.
    piece: BytesMut,
}

impl Buffers {
    pub fn new() -> Buffers {
        Buffers {
            current: BytesMut::zeroed(MAX_READ),
            out: VecDeque::with_capacity(WATCHED),
            piece: BytesMut::with_capacity(PIECE),
        }
    }

    /// Where to read into.
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.current
    }

    /// The first `length` bytes of what was read, to be sliced and kept.
    pub fn share(&mut self, length: usize) -> Bytes {
        if length <= COPIED {
            // In steady state this finds the copies of earlier readings gone, and takes their
            // place.
            self.piece.reserve(length);
            self.piece.extend_from_slice(&self.current[..length]);
            return self.piece.split().freeze();
        }
        let next = self.returned().unwrap_or_else(|| BytesMut::zeroed(MAX_READ));
        let whole = std::mem::replace(&mut self.current, next).freeze();
        if self.out.len() == WATCHED {
            self.out.pop_front();
        }
        self.out.push_back(whole.clone());
        whole.slice(..length)
    }

    /// A buffer whose slices are gone. The oldest is the likeliest; one that is still in use goes
    /// to the end, so that it does not stand before those that have come back.
    fn returned(&mut self) -> Option<BytesMut> {
        for _ in 0..LOOKS.min(self.out.len()) {
            match self.out.pop_front()?.try_into_mut() {
                Ok(buffer) => return Some(buffer),
                Err(in_use) => self.out.push_back(in_use),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(buffers: &mut Buffers, length: usize, byte: u8) -> Bytes {
        buffers.room()[..length].fill(byte);
        buffers.share(length)
    }

    #[test]
    fn what_is_kept_stays_as_it_was_read() {
        let mut buffers = Buffers::new();
        let mut kept = VecDeque::new();
        for round in 0..1_000usize {
            let length = [1, COPIED, COPIED + 1, MAX_READ, 700][round % 5];
            let byte = round as u8;
            kept.push_back((read(&mut buffers, length, byte), byte, length));
            if kept.len() > round % 7 {
                kept.pop_front();
            }
            for (bytes, byte, length) in &kept {
                assert_eq!(bytes.len(), *length);
                assert!(bytes.iter().all(|b| b == byte));
            }
        }
    }

    #[test]
    fn a_buffer_is_used_again_when_its_slices_are_gone() {
        let mut buffers = Buffers::new();
        let mut places = std::collections::BTreeSet::new();
        for round in 0..100 {
            let whole = read(&mut buffers, MAX_READ, round);
            places.insert(whole.as_ptr() as usize);
            let last = whole.slice(MAX_READ - 10..);
            drop(whole);
            assert_eq!(last.len(), 10);
        }
        assert!(places.len() <= 3, "{} buffers where two would do", places.len());
    }

    #[test]
    fn a_small_reading_does_not_keep_a_large_buffer() {
        let mut buffers = Buffers::new();
        let before = buffers.room().as_ptr();
        let kept: Vec<Bytes> = (0..100).map(|byte| read(&mut buffers, COPIED, byte)).collect();
        assert_eq!(buffers.room().as_ptr(), before);
        assert!(buffers.out.is_empty());
        drop(kept);
    }

    #[test]
    fn buffers_that_do_not_come_back_are_not_watched_for_ever() {
        let mut buffers = Buffers::new();
        let kept: Vec<Bytes> = (0..3 * WATCHED).map(|_| read(&mut buffers, MAX_READ, 1)).collect();
        assert_eq!(buffers.out.len(), WATCHED);
        drop(kept);
    }
}
