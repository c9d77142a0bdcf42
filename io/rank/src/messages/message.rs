//! A message that a program takes.

use std::sync::Arc;

use memlog::Found;

use crate::error::JobError;

/// Where the bytes of a message are.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Up to this place in a log of one's own.
    Sent(u64),
    /// In its sender's log.
    Came(Found),
}

/// So many bytes of a message are looked at at once.
const PIECE: usize = 64 << 10;

impl Place {
    /// A checksum of the bytes there. Another one, if its sender has let them go: then it cannot be
    /// taken either.
    pub fn body(&self) -> u32 {
        let Place::Came(found) = self else { return 0 };
        let length = found.head.length as usize;
        let (mut check, mut piece) = (0, vec![0; length.min(PIECE)]);
        for from in (0..length).step_by(PIECE) {
            let piece = &mut piece[..(length - from).min(PIECE)];
            if !found.copy(from, piece) {
                break;
            }
            check = crc32c::crc32c_append(check, piece);
        }
        check
    }
}

/// The bytes of a message that was taken.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// In its sender's log, which keeps them until no image needs them any more.
    There(Found),
    /// In an image.
    Saved(Arc<Vec<u8>>),
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::Saved(Arc::new(bytes))
    }
}

/// A message that was taken. Its bytes are to be read before the next safe point.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its sender.
    pub from: u32,
    /// Its tag.
    pub tag: u32,
    pub(super) body: Body,
}

impl Message {
    /// Its bytes.
    pub fn length(&self) -> usize {
        match &self.body {
            Body::There(found) => found.head.length as usize,
            Body::Saved(bytes) => bytes.len(),
        }
    }

    /// Copies its bytes from this one on, a multiple of 8: as many as there is room for.
    ///
    /// # Errors
    /// Its sender has let it go.
    ///
    /// # Panics
    /// It has not so many bytes.
    pub fn read(&self, from: usize, to: &mut [u8]) -> Result<(), JobError> {
        assert!(from <= self.length(), "the message has so many bytes");
        match &self.body {
            Body::There(found) if !found.copy(from, to) => Err(JobError::Gone(self.from)),
            Body::There(_) => Ok(()),
            Body::Saved(bytes) => {
                let many = to.len().min(bytes.len() - from);
                to[..many].copy_from_slice(&bytes[from..from + many]);
                Ok(())
            }
        }
    }

    /// All of its bytes.
    ///
    /// # Errors
    /// Its sender has let it go.
    pub fn bytes(&self) -> Result<Vec<u8>, JobError> {
        let mut bytes = vec![0; self.length()];
        self.read(0, &mut bytes)?;
        Ok(bytes)
    }
}
