//! The end at which a rank is told something.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use os::passing::send;
use wire::rank::Frame;

/// A rank's stream, for writing.
#[derive(Debug)]
pub(crate) struct Link {
    pub number: u64,
    pub stream: OwnedFd,
}

impl Link {
    /// Tells it something, with a file. One that does not listen is lost by its own fault.
    pub fn tell(&self, frame: &Frame, file: Option<&File>) {
        if let Err(error) = send(&self.stream, &frame.encode(), file.map(AsFd::as_fd)) {
            tracing::debug!(%error, "a rank does not hear");
        }
    }
}
