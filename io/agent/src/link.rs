//! The end at which a rank is told something.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use os::passing::send_now;
use rustix::net::{Shutdown, shutdown};
use wire::rank::Frame;

/// A rank's stream, for writing.
#[derive(Debug)]
pub(crate) struct Link {
    pub number: u64,
    pub stream: OwnedFd,
    /// The version that both speak.
    pub version: u8,
}

impl Link {
    /// Tells it something, with a file. Nobody waits for one that does not listen: its stream ends, and
    /// it comes in once more, as soon as it does.
    pub fn tell(&self, frame: &Frame, file: Option<&File>) {
        if let Err(error) = send_now(&self.stream, &frame.encode(), file.map(AsFd::as_fd)) {
            tracing::debug!(%error, "a rank does not hear");
            let _ = shutdown(&self.stream, Shutdown::Both);
        }
    }
}
