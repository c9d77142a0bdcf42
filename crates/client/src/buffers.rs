//! What both porches share: bounded buffers of a stream, a log of events, and drawing a session.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::time::SystemTime;

use bytes::{Buf, Bytes, BytesMut};
use wire::client::Frame;
use wire::limits::{MAX_ADDRESSES, MAX_CLIENT_EVENTS, MAX_LINK_BACKLOG};
use wire::{ClientId, Malformed};

use crate::{Config, ConnectError, Event};

/// Bytes that are read at a time.
pub(crate) const READ_SIZE: usize = 64 << 10;

/// Slices that are written at a time.
const SLICES: usize = 16;

/// What a stream has brought and no frame was made of yet. Never holds more than one frame and
/// one read: frames that would be longer are refused by their header.
#[derive(Debug, Default)]
pub(crate) struct Inbox(BytesMut);

impl Inbox {
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn take(&mut self) -> Result<Option<Frame>, Malformed> {
        Frame::take(&mut self.0)
    }
}

/// What a stream has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Bytes>,
    bytes: usize,
}

impl Outbox {
    /// False at the limit: the node does not read, and counts as lost.
    pub(crate) fn put(&mut self, frame: &Frame) -> bool {
        let bytes = frame.encode();
        self.bytes += bytes.len();
        self.queue.push_back(bytes);
        self.bytes <= MAX_LINK_BACKLOG
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next bytes to write.
    pub(crate) fn slices(&self) -> ([IoSlice<'_>; SLICES], usize) {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let count = self.queue.len().min(SLICES);
        for (slice, bytes) in slices.iter_mut().zip(&self.queue) {
            *slice = IoSlice::new(bytes);
        }
        (slices, count)
    }

    /// So many bytes were written.
    pub(crate) fn written(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(first) = self.queue.front_mut() {
            if count < first.len() {
                first.advance(count);
                return;
            }
            count -= first.len();
            self.queue.pop_front();
        }
    }
}

/// The last events, until somebody takes them.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    events: VecDeque<(SystemTime, Event)>,
}

impl EventLog {
    pub(crate) fn put(&mut self, event: Event) {
        if self.events.len() == MAX_CLIENT_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back((SystemTime::now(), event));
    }

    pub(crate) fn take(&mut self) -> Vec<(SystemTime, Event)> {
        self.events.drain(..).collect()
    }
}

/// A session's name and seed. They need to differ, not to be secret: the keys of the standard
/// library's hash maps, which come from the system, hashed with what differs between processes.
pub(crate) fn draw(addresses: Vec<SocketAddr>) -> Result<Config, ConnectError> {
    match addresses.len() {
        0 => return Err(ConnectError::NoAddress),
        1..=MAX_ADDRESSES => {}
        count => return Err(ConnectError::TooManyAddresses(count)),
    }
    let salt = (std::process::id(), SystemTime::now());
    let number = |purpose: u8| RandomState::new().hash_one((purpose, salt));
    Ok(Config { client: ClientId(number(0)), addresses, seed: number(1) })
}
