//! The plain bytes of a connection, on their way in and out.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Buf, Bytes, BytesMut};

/// Bytes that wait in a class of a link. Those who send add, the thread takes off.
pub(crate) type Meter = Arc<AtomicUsize>;

/// Both directions. A carrier owns one for each connection.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub input: BytesMut,
    pub output: Output,
}

impl Flow {
    /// Pieces share the input's memory: an idle connection is to hold none of it.
    pub fn tidy(&mut self) {
        if self.input.is_empty() {
            self.input = BytesMut::new();
        }
    }
}

/// Pieces that wait for the socket. The meter has all their bytes.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pieces: VecDeque<Bytes>,
    meter: Meter,
}

impl Output {
    /// Adds a piece that the meter does not have yet.
    pub fn say(&mut self, piece: Bytes) {
        self.meter.fetch_add(piece.len(), Ordering::Relaxed);
        self.push(piece);
    }

    /// Adds a piece that the meter has.
    pub fn push(&mut self, piece: Bytes) {
        self.pieces.push_back(piece);
    }

    /// The meter of those who send.
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// From now on, this is the meter. It gets what waits.
    pub fn set_meter(&mut self, meter: Meter) {
        let waits: usize = self.pieces.iter().map(Bytes::len).sum();
        meter.fetch_add(waits, Ordering::Relaxed);
        self.meter = meter;
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Puts the first pieces into `slices`, and gives how many.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece);
        }
        self.pieces.len().min(slices.len())
    }

    /// So many of the first bytes are gone.
    pub fn advance(&mut self, mut count: usize) {
        self.meter.fetch_sub(count, Ordering::Relaxed);
        while let Some(first) = self.pieces.front_mut() {
            if count < first.len() {
                first.advance(count);
                return;
            }
            count -= first.len();
            self.pieces.pop_front();
        }
    }

    /// Lets `take` have pieces, whole or their beginnings, until it wants no more. It gives how many
    /// bytes it has taken, which are gone from the pieces already.
    pub fn drain<E>(
        &mut self,
        take: impl FnOnce(&mut [Bytes]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let count = take(self.pieces.make_contiguous())?;
        self.meter.fetch_sub(count, Ordering::Relaxed);
        while self.pieces.front().is_some_and(Bytes::is_empty) {
            self.pieces.pop_front();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meter_has_what_waits_whoever_takes_it() {
        let mut output = Output::default();
        let meter = output.meter();
        output.say(Bytes::from_static(b"abc"));
        output.say(Bytes::from_static(b"defgh"));
        assert_eq!(meter.load(Ordering::Relaxed), 8);
        output.advance(4);
        assert_eq!((meter.load(Ordering::Relaxed), output.is_empty()), (4, false));
        let taken: Result<(), ()> = output.drain(|pieces| {
            assert_eq!(pieces, [&b"efgh"[..]]);
            pieces[0].advance(3);
            Ok(3)
        });
        assert_eq!((taken, meter.load(Ordering::Relaxed)), (Ok(()), 1));
        output.advance(1);
        assert!(output.is_empty());
    }
}
