//! The parts that both drivers share: bounded buffers of a stream, a log of events, the draw of a
//! session, and the end of a call.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::time::SystemTime;

use bytes::{Buf, Bytes, BytesMut};
use wire::client::Frame;
use wire::limits::{MAX_ADDRESSES, MAX_CLIENT_EVENTS, MAX_LINK_BACKLOG};
use wire::{ClientId, Malformed};

use crate::{Answer, CallError, Config, ConnectError, Event};

/// How a call has ended, with what each replica said if all were asked.
pub(crate) type Ended = (Result<Bytes, CallError>, Vec<Answer>);

/// The result of a call that asks for a list: an error if nobody gave anything else.
pub(crate) fn listed((result, answers): Ended) -> Result<Vec<Answer>, CallError> {
    match result {
        Err(error) if answers.iter().all(|answer| answer.result.as_ref() == Err(&error)) => {
            Err(error)
        }
        _ => Ok(answers),
    }
}

/// Bytes that are read at a time.
pub(crate) const READ_SIZE: usize = 64 << 10;

/// Slices that are written at a time.
const SLICES: usize = 16;

/// Bytes that a stream received and that are no frame yet. It never stores more than one frame and
/// one read: longer frames are refused by their header.
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

/// Bytes that a stream has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Bytes>,
    bytes: usize,
}

impl Outbox {
    /// False at the limit: the node does not read, and counts as lost.
    pub(crate) fn put(&mut self, frame: &Frame) -> bool {
        let payload = frame.payload();
        self.bytes += payload.len();
        self.queue.extend(payload.pieces());
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
    Ok(Config::new(ClientId(number(0)), addresses, number(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outbox_goes_on_where_the_socket_stopped() {
        let frame = Frame::Bind(wire::client::Bind { name: "counter".into() });
        let whole: Vec<u8> = [frame.encode(), frame.encode(), frame.encode()].concat();
        let mut outbox = Outbox::default();
        for _ in 0..3 {
            assert!(outbox.put(&frame));
        }
        let mut sent = Vec::new();
        while !outbox.is_empty() {
            let (slices, count) = outbox.slices();
            let next: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
            let taken = next.len().min(11);
            sent.extend_from_slice(&next[..taken]);
            outbox.written(taken);
        }
        assert_eq!(sent, whole);
        assert_eq!(outbox.bytes, 0);
    }

    #[test]
    fn what_a_node_does_not_read_is_limited() {
        let frame = Frame::Bind(wire::client::Bind { name: "x".repeat(1 << 20) });
        let mut outbox = Outbox::default();
        let kept = (0..200).take_while(|_| outbox.put(&frame)).count();
        assert_eq!(kept, MAX_LINK_BACKLOG / frame.encode().len());
    }

    #[test]
    fn old_events_make_room_for_new_ones() {
        let mut log = EventLog::default();
        for port in 0..=u16::try_from(MAX_CLIENT_EVENTS).unwrap() {
            let address = SocketAddr::from(([10, 0, 0, 1], port));
            log.put(Event::Lost { address, trouble: crate::Trouble::Closed });
        }
        let events = log.take();
        assert_eq!(events.len(), MAX_CLIENT_EVENTS);
        assert!(matches!(events[0].1, Event::Lost { address, .. } if address.port() == 1));
        assert!(log.take().is_empty());
    }

    #[test]
    fn sessions_differ() {
        let addresses = || vec![SocketAddr::from(([127, 0, 0, 1], 1))];
        let (one, other) = (draw(addresses()).unwrap(), draw(addresses()).unwrap());
        assert_ne!(one.client, other.client);
        assert_ne!(one.seed, other.seed);
        let many = vec![SocketAddr::from(([127, 0, 0, 1], 1)); MAX_ADDRESSES + 1];
        assert!(matches!(draw(many), Err(ConnectError::TooManyAddresses(_))));
    }
}
