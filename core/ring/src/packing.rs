//! The queue of messages to order, and how it is cut into datagrams; and the other way round.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::{BufMut, Bytes, BytesMut};
use wire::limits::{MAX_MESSAGE, MAX_SEND_QUEUE, MAX_SEND_QUEUE_BYTES};
use wire::ring::{CHUNK_OVERHEAD, Chunk, DATA_OVERHEAD, Level, push_pieces};
use wire::{Arena, Member, Payload};

use crate::{Fill, Refused};

/// Messages in the order in which they were handed in.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    messages: VecDeque<(Payload, Level)>,
    bytes: usize,
    /// The most messages, and the most bytes, that were here at a time.
    most: (usize, usize),
    /// Bytes of the first message that have been sent on the present ring. The message stays
    /// here until its last part is sent, so that a new ring can have it from its start.
    sent: usize,
}

impl SendQueue {
    pub fn push(&mut self, message: Payload, level: Level) -> Result<(), Refused> {
        if message.len() > MAX_MESSAGE {
            return Err(Refused::TooLarge(message.len()));
        }
        if !self.has_room(message.len()) {
            return Err(Refused::QueueFull);
        }
        self.bytes += message.len();
        self.messages.push_back((message, level));
        let (messages, bytes) = self.most;
        self.most = (messages.max(self.messages.len()), bytes.max(self.bytes));
        Ok(())
    }

    /// A message of this length would be taken.
    pub fn has_room(&self, length: usize) -> bool {
        self.messages.len() < MAX_SEND_QUEUE && self.bytes + length <= MAX_SEND_QUEUE_BYTES
    }

    /// Takes back a message of which nothing was sent: these very bytes, not others like them.
    pub fn withdraw(&mut self, message: &Payload) -> bool {
        let at = self.messages.iter().rposition(|(waiting, _)| waiting.is(message));
        let Some(at) = at.filter(|at| *at > 0 || self.sent == 0) else { return false };
        self.messages.remove(at);
        self.bytes -= message.len();
        true
    }

    /// How full it is: messages, and their bytes.
    pub fn fill(&self) -> (Fill, Fill) {
        let fill = |now, most, limit| Fill { now, most, limit };
        (
            fill(self.messages.len(), self.most.0, MAX_SEND_QUEUE),
            fill(self.bytes, self.most.1, MAX_SEND_QUEUE_BYTES),
        )
    }

    pub fn len(&self) -> usize {
        self.messages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Another ring: the first message is to be sent from its start.
    pub fn rewind(&mut self) {
        self.sent = 0;
    }

    /// The body of the next datagram: as many whole messages as fit, or a part of one that fits
    /// into no datagram. A message that would fit into the next one is not cut: two datagrams
    /// would have to arrive for it instead of one. All have the same level: an agreed message must
    /// not wait for a safe one behind it.
    ///
    /// It is written into `arena`, behind room for what comes first in its datagram. With it:
    /// whether somebody waits to know who holds it.
    pub fn pack(&mut self, room: usize, arena: &mut Arena) -> Option<(BytesMut, bool)> {
        assert!(room > CHUNK_OVERHEAD, "a datagram has room for a chunk");
        let safe = |level: Level| level == Level::Safe;
        let level = self.messages.front()?.1;
        let mut waited = false;
        let draft = arena.room(DATA_OVERHEAD + room);
        draft.put_bytes(0, DATA_OVERHEAD);
        let room = DATA_OVERHEAD + room;
        let fits = |(_, next): &&(Payload, Level)| safe(*next) == safe(level);
        while let Some((message, next)) = self.messages.front().filter(fits) {
            let waits = *next != Level::Agreed;
            let left = room.saturating_sub(draft.len() + CHUNK_OVERHEAD);
            let rest = message.len() - self.sent;
            if rest <= left {
                push_pieces(draft, self.sent == 0, true, level, message.range(self.sent, rest));
                waited |= waits;
                self.bytes -= message.len();
                self.sent = 0;
                self.messages.pop_front();
                if room.saturating_sub(draft.len()) <= CHUNK_OVERHEAD {
                    break;
                }
            } else if draft.len() == DATA_OVERHEAD
                || message.len() > room - DATA_OVERHEAD - CHUNK_OVERHEAD && left > 0
            {
                push_pieces(draft, self.sent == 0, false, level, message.range(self.sent, left));
                self.sent += left;
                break;
            } else {
                break;
            }
        }
        Some((arena.draft(), waited))
    }

    pub fn check(&self) {
        assert!(self.messages.len() <= MAX_SEND_QUEUE);
        assert_eq!(
            self.bytes,
            self.messages.iter().map(|(message, _)| message.len()).sum::<usize>()
        );
        assert!(self.bytes <= MAX_SEND_QUEUE_BYTES);
        assert!(self.sent == 0 || self.sent < self.messages[0].0.len());
    }
}

/// Puts the parts of messages together, per sender. At most one message per sender is under way,
/// because each sends its messages one after the other.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    parts: Vec<(Member, Vec<u8>)>,
}

impl Assembly {
    /// The whole message, if `chunk` is its end. Parts without a beginning are dropped: they
    /// belong to a message of which another ring has seen, or will see, the rest.
    pub fn add(&mut self, sender: Member, chunk: Chunk) -> Option<Bytes> {
        let at = self.parts.iter().position(|(who, _)| *who == sender);
        if chunk.first {
            if let Some(at) = at {
                self.parts.swap_remove(at);
            }
            if chunk.last {
                return (chunk.bytes.len() <= MAX_MESSAGE).then_some(chunk.bytes);
            }
            self.parts.push((sender, chunk.bytes.to_vec()));
            return None;
        }
        let at = at?;
        let part = &mut self.parts[at].1;
        if part.len() + chunk.bytes.len() > MAX_MESSAGE {
            self.parts.swap_remove(at);
            return None;
        }
        part.extend_from_slice(&chunk.bytes);
        chunk.last.then(|| self.parts.swap_remove(at).1.into())
    }

    pub fn clear(&mut self) {
        self.parts.clear();
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use wire::ring::Data;
    use wire::{Incarnation, NodeId, RingId};

    use super::*;

    const SENDER: Member = Member { node: NodeId(1), incarnation: Incarnation(1) };

    fn unpack(assembly: &mut Assembly, body: Bytes) -> Vec<Bytes> {
        let data = Data {
            ring: RingId::default(),
            ack_wanted: false,
            complete: false,
            hop: 0,
            sequence: 1,
            stable: 0,
            origin: None,
            body,
        };
        let chunks: Vec<_> = data.chunks().collect();
        chunks.into_iter().filter_map(|chunk| assembly.add(SENDER, chunk)).collect()
    }

    /// The next body of at most 100 bytes.
    fn pack(queue: &mut SendQueue) -> Option<Bytes> {
        let (draft, _) = queue.pack(100, &mut Arena::new(1_000))?;
        Some(draft.freeze().slice(DATA_OVERHEAD..))
    }

    #[test]
    fn messages_of_every_size_come_out_as_they_went_in() {
        let mut queue = SendQueue::default();
        let mut assembly = Assembly::default();
        let sizes = [0, 1, 95, 96, 97, 1, 1, 1, 300, 0, 191, 192, 193, 5_000, 10];
        let messages: Vec<_> =
            sizes.iter().map(|size| Bytes::from(vec![*size as u8; *size])).collect();
        for message in &messages {
            queue.push(message.clone().into(), Level::Agreed).unwrap();
        }
        let mut out = Vec::new();
        while let Some(body) = pack(&mut queue) {
            queue.check();
            assert!(body.len() <= 100);
            out.extend(unpack(&mut assembly, body));
        }
        assert_eq!(out, messages);
    }

    #[test]
    fn a_message_is_sent_from_its_start_on_another_ring() {
        let mut queue = SendQueue::default();
        let mut assembly = Assembly::default();
        queue.push(Payload::from(vec![7; 250]), Level::Safe).unwrap();
        let first = pack(&mut queue).unwrap();
        assert!(unpack(&mut assembly, first).is_empty());
        queue.rewind();
        assembly.clear();
        let mut out = Vec::new();
        while let Some(body) = pack(&mut queue) {
            out.extend(unpack(&mut assembly, body));
        }
        assert_eq!(out, [Bytes::from(vec![7; 250])]);
    }

    #[test]
    fn levels_do_not_share_a_datagram() {
        let mut queue = SendQueue::default();
        let levels = [Level::Agreed, Level::Agreed, Level::Safe, Level::Safe, Level::Agreed];
        for level in levels {
            queue.push("x".into(), level).unwrap();
        }
        let counts: Vec<_> = core::iter::from_fn(|| pack(&mut queue))
            .map(|body| body.len() / (CHUNK_OVERHEAD + 1))
            .collect();
        assert_eq!(counts, [2, 2, 1]);
    }

    #[test]
    fn limits_are_refusals() {
        let mut queue = SendQueue::default();
        assert_eq!(
            queue.push(Payload::from(vec![0; MAX_MESSAGE + 1]), Level::Agreed),
            Err(Refused::TooLarge(MAX_MESSAGE + 1))
        );
        for _ in 0..MAX_SEND_QUEUE {
            queue.push(Payload::default(), Level::Agreed).unwrap();
        }
        assert_eq!(queue.push(Payload::default(), Level::Safe), Err(Refused::QueueFull));
    }
}
