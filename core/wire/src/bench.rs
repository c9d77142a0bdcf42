//! Messages that a benchmark of the ring orders on it.
//!
//! The node that is asked for a benchmark orders a [`Plan`]. Every node that delivers it begins:
//! the senders that it names send [`Load`], and all nodes check it. A sender ends with
//! [`Word::Done`]. When all have ended, every node orders its [`Report`], and the node that was
//! asked compares them. A new configuration ends a benchmark at once.

use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::histogram::Times;
use crate::limits::{
    MAX_BENCH_COUNT, MAX_BENCH_SPAN, MAX_BENCH_WINDOW, MAX_BODY, MAX_MEMBERS, MAX_SEND_QUEUE_BYTES,
};
use crate::ring::Level;
use crate::{Duration, Malformed, NodeId, Payload, Random, RingId};

/// When a sender sends its next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pacing {
    /// As soon as fewer than so many of its messages are under way.
    Window(u32),
    /// One in every such time, whatever became of those before.
    Every(Duration),
}

/// When a message is no longer under way, and so what its latency is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// It is delivered at its sender.
    Own,
    /// Its sender knows that every member has it, and so delivers it.
    All,
    /// An answer ordered by the farthest member, the one whose turn is just before the sender's, is
    /// delivered at the sender.
    Echo,
}

/// A benchmark.
///
/// ```text
/// | id | ring.seq | rep | senders: count, each node | size | count | warm | span | level | pacing | until |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Tells its messages from those of an earlier one that was given up.
    pub id: u32,
    /// The configuration that it is for.
    pub ring: RingId,
    /// The senders, in order of id.
    pub senders: Vec<NodeId>,
    /// Bytes of each ordered message: its header, and content that every receiver can compute.
    pub size: u32,
    /// Messages of each sender, at most.
    pub count: u64,
    /// The first of these are not measured.
    pub warm: u64,
    /// No message is begun later than this after the plan's delivery.
    pub span: Duration,
    /// When each message is delivered.
    pub level: Level,
    /// When the next message is sent.
    pub pacing: Pacing,
    /// The event that ends the wait for a message.
    pub until: Until,
}

/// Why a plan is not carried out, with the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nobody, too many, or not in order.
    #[error("name 1 to {MAX_MEMBERS} senders, each once, in order of id")]
    Senders,
    /// Too small for the header, or larger than what a node orders.
    #[error("a message has {LOAD_HEADER} to {MAX_BODY} bytes")]
    Size,
    /// No message, or more than are allowed.
    #[error("each sender sends 1 to {MAX_BENCH_COUNT} messages, of which some are measured")]
    Count,
    /// No time, or more than is allowed.
    #[error("a benchmark lasts more than nothing and at most {} s", MAX_BENCH_SPAN.as_secs())]
    Span,
    /// A window that does nothing, or would crowd out the node's own messages.
    #[error(
        "1 to {MAX_BENCH_WINDOW} messages, and at most {} MiB, may be under way",
        (MAX_SEND_QUEUE_BYTES / 4) >> 20
    )]
    Window,
    /// A pause of nothing.
    #[error("the time from message to message must be longer than zero")]
    Pause,
}

impl Plan {
    /// Refuses what would hurt a ring that has other work.
    ///
    /// # Errors
    /// The first value out of its range.
    pub fn check(&self) -> Result<(), PlanError> {
        let in_order = self.senders.windows(2).all(|pair| pair[0] < pair[1]);
        if !(1..=MAX_MEMBERS).contains(&self.senders.len()) || !in_order {
            return Err(PlanError::Senders);
        }
        let size = self.size as usize;
        if !(LOAD_HEADER..=MAX_BODY).contains(&size) {
            return Err(PlanError::Size);
        }
        if !(1..=MAX_BENCH_COUNT).contains(&self.count) || self.warm >= self.count {
            return Err(PlanError::Count);
        }
        if self.span.is_zero() || self.span > MAX_BENCH_SPAN {
            return Err(PlanError::Span);
        }
        match self.pacing {
            Pacing::Window(window) => {
                let bytes = size.saturating_mul(window as usize);
                let fits = (1..=MAX_BENCH_WINDOW).contains(&window);
                // A quarter: the rest of the queue is for what the node is there for.
                if !fits || bytes > MAX_SEND_QUEUE_BYTES / 4 {
                    return Err(PlanError::Window);
                }
            }
            Pacing::Every(pause) if pause.is_zero() => return Err(PlanError::Pause),
            Pacing::Every(_) => {}
        }
        Ok(())
    }

    /// The largest window that [`check`](Plan::check) lets pass and that fills a ring: a mebibyte.
    pub fn full_window(size: u32) -> u32 {
        ((1 << 20) / size.max(1)).clamp(16, MAX_BENCH_WINDOW)
    }
}

/// The result of one node at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The benchmark.
    pub id: u32,
    /// Messages delivered here, by sender in the plan's order.
    pub received: Vec<u64>,
    /// A hash over (sender, number) of all of them, in the order of their delivery here.
    pub order: u64,
    /// Messages whose content was not what their sender wrote.
    pub corrupt: u64,
    /// Messages that were not the next of their sender.
    pub disordered: u64,
    /// From the first to the last delivery, by this node's clock.
    pub span: Duration,
    /// The sender's measurements; `None` if this node sent nothing.
    pub measured: Option<Measured>,
}

/// The measurements of a sender, all of them by its own clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// From handing a message in until it left: for as long it waited for the token, or for the
    /// flow control.
    pub send: Times,
    /// Until it was delivered here.
    pub own: Times,
    /// Until it was known here that every member has it.
    pub all: Times,
    /// Until the farthest member's answer was delivered here.
    pub echo: Times,
    /// How late the latest message was handed in, where a pace was set.
    pub late: Duration,
}

/// A control message of a benchmark, beside its load. The number is postcard's: append only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// It begins.
    Plan(Plan),
    /// The sender of this has sent so many messages, and sends no more.
    Done {
        /// The benchmark.
        id: u32,
        /// How many.
        sent: u64,
    },
    /// The observations of this message's sender.
    Report(Report),
    /// The requester wants the benchmark no more.
    Stop {
        /// Which benchmark.
        id: u32,
    },
}

/// One message of the load.
///
/// ```text
///  0      1       2       4      8        16
/// +------+-------+-------+------+--------+---------
/// | kind | flags | place |  id  | number | content
/// |  9   |       |       |      |        |
/// +------+-------+-------+------+--------+---------
/// flags  bit 0: an answer to that message; it has no content
/// place  of the message's sender in the plan
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The benchmark.
    pub id: u32,
    /// The place of the message's sender in the plan.
    pub place: u16,
    /// Which of its messages, from 0.
    pub number: u64,
    /// This is the farthest member's answer.
    pub echo: bool,
    /// Content that every receiver can compute.
    pub content: Bytes,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct LoadHeader {
    kind: u8,
    flags: u8,
    place: U16,
    id: U32,
    number: U64,
}

/// Bytes of a message of the load before its content.
pub const LOAD_HEADER: usize = size_of::<LoadHeader>();

/// The kind of a load among the ordered messages.
const LOAD: u8 = 9;

const ECHO: u8 = 1;

fn header(id: u32, place: u16, number: u64, flags: u8) -> LoadHeader {
    LoadHeader { kind: LOAD, flags, place: place.into(), id: id.into(), number: number.into() }
}

impl Load {
    /// The payload of a message of `size` bytes in all, with its content.
    pub fn message(id: u32, place: u16, number: u64, size: usize) -> Bytes {
        let mut payload = Vec::with_capacity(size.max(LOAD_HEADER));
        payload.extend_from_slice(header(id, place, number, 0).as_bytes());
        let length = size.saturating_sub(LOAD_HEADER);
        let mut words = Words::new(id, place, number);
        for _ in 0..length / 8 {
            payload.extend_from_slice(&words.next().to_le_bytes());
        }
        let last = words.next().to_le_bytes();
        payload.extend_from_slice(&last[..length % 8]);
        payload.into()
    }

    /// The payload of the answer to a message.
    pub fn echo(id: u32, place: u16, number: u64) -> Bytes {
        Bytes::copy_from_slice(header(id, place, number, ECHO).as_bytes())
    }

    /// Every byte is what the sender wrote. Where it was not the sender's place that is
    /// written there, no content is right.
    pub fn is_right(&self) -> bool {
        let mut words = Words::new(self.id, self.place, self.number);
        let (whole, rest) = self.content.as_chunks::<8>();
        let wrong =
            whole.iter().fold(0, |wrong, word| wrong | (u64::from_le_bytes(*word) ^ words.next()));
        wrong == 0 && *rest == words.next().to_le_bytes()[..rest.len()]
    }

    /// The payload.
    pub(crate) fn payload(&self) -> Payload {
        let flags = u8::from(self.echo) * ECHO;
        let header = header(self.id, self.place, self.number, flags);
        Payload::new(header, self.content.clone())
    }

    /// Reads a delivered payload; the content shares it.
    pub(crate) fn decode(payload: &Bytes) -> Result<Load, Malformed> {
        let (header, _) = LoadHeader::read_from_prefix(payload).map_err(|_| Malformed::Length)?;
        if header.flags & !ECHO != 0 {
            return Err(Malformed::Field("load flags"));
        }
        Ok(Load {
            id: header.id.get(),
            place: header.place.get(),
            number: header.number.get(),
            echo: header.flags & ECHO != 0,
            content: payload.slice(LOAD_HEADER..),
        })
    }
}

/// The words of a content: no two alike in a message, and all decided by who wrote which message.
/// One addition each, which compilers turn into vectors: checking costs less than the copy from the
/// socket.
struct Words(u64);

impl Words {
    fn new(id: u32, place: u16, number: u64) -> Words {
        let who = u64::from(id) << 16 | u64::from(place);
        Words(Random::new(Random::new(who).next_u64() ^ number).next_u64())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0
    }
}

pub(crate) fn checked(word: Word) -> Result<Word, Malformed> {
    let sane = match &word {
        Word::Plan(plan) => plan.check().is_ok(),
        Word::Report(report) => {
            let measured = report.measured.iter();
            let mut times = measured.flat_map(|it| [&it.send, &it.own, &it.all, &it.echo]);
            report.received.len() <= MAX_MEMBERS && times.all(Times::is_sane)
        }
        Word::Done { .. } | Word::Stop { .. } => true,
    };
    if sane { Ok(word) } else { Err(Malformed::Field("benchmark")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn load(size: usize) -> Load {
        Load::decode(&Load::message(7, 2, 99, size)).expect("it was written here")
    }

    #[test]
    fn a_content_is_right_until_any_bit_of_it_is_another() {
        for size in [16, 17, 23, 24, 25, 64, 1_024, 1_031] {
            let load = load(size);
            assert_eq!(load.content.len(), size - LOAD_HEADER);
            assert!(load.is_right(), "{size}");
            for at in 0..load.content.len() {
                let mut content = load.content.to_vec();
                content[at] ^= 0x10;
                assert!(!Load { content: content.into(), ..load.clone() }.is_right());
            }
        }
        let load = load(64);
        assert!(!Load { number: 98, ..load.clone() }.is_right());
        assert!(!Load { place: 1, ..load.clone() }.is_right());
        assert!(!Load { id: 8, ..load }.is_right());
    }

    #[test]
    fn plans_out_of_bounds_are_refused() {
        let good = Plan {
            id: 1,
            ring: RingId::default(),
            senders: vec![NodeId(1), NodeId(2)],
            size: 64,
            count: 10,
            warm: 1,
            span: Duration::from_secs(1),
            level: Level::Agreed,
            pacing: Pacing::Window(1),
            until: Until::Own,
        };
        assert_eq!(good.check(), Ok(()));
        let refused = |change: &dyn Fn(&mut Plan)| {
            let mut plan = good.clone();
            change(&mut plan);
            plan.check().expect_err("out of bounds")
        };
        assert_eq!(refused(&|plan| plan.senders.clear()), PlanError::Senders);
        assert_eq!(refused(&|plan| plan.senders.swap(0, 1)), PlanError::Senders);
        assert_eq!(refused(&|plan| plan.size = 15), PlanError::Size);
        assert_eq!(refused(&|plan| plan.size = u32::MAX), PlanError::Size);
        assert_eq!(refused(&|plan| plan.count = 0), PlanError::Count);
        assert_eq!(refused(&|plan| plan.warm = 10), PlanError::Count);
        assert_eq!(refused(&|plan| plan.span = Duration::from_secs(86_400)), PlanError::Span);
        assert_eq!(refused(&|plan| plan.pacing = Pacing::Window(0)), PlanError::Window);
        let large = |plan: &mut Plan| {
            plan.size = 1 << 20;
            plan.pacing = Pacing::Window(1_000);
        };
        assert_eq!(refused(&large), PlanError::Window);
        assert_eq!(refused(&|plan| plan.pacing = Pacing::Every(Duration::ZERO)), PlanError::Pause);
        for size in [16, 64, 1_024, 8_192, MAX_BODY as u32] {
            let pacing = Pacing::Window(Plan::full_window(size));
            assert_eq!(Plan { size, pacing, ..good.clone() }.check(), Ok(()), "{size}");
        }
    }
}
