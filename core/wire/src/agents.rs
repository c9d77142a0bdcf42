//! Frames from one agent to another, on a stream that the sender has opened: logs of messages
//! between ranks, byte for byte, and words about them. Each agent opens streams of its own, so
//! answers come on another one.
//!
//! | kind | body |
//! | --- | --- |
//! | 1 | [`Hello`], first on the stream: version of the ring (1), three zeros; node (4), incarnation (8) of both |
//! | 2 | [`Open`]: another log is to be mirrored: postcard |
//! | 3 | [`Piece`]: what comes next in a log: channel (4), at (8), the bytes |
//! | 4 | [`Frame::Released`]: a log has let go: channel (4), at (8) |
//! | 5 | [`Word`]: postcard |
//! | 6 | [`Frame::Alive`]: there was nothing to say for a while |
//! | 7 | [`Frame::Closed`]: nothing more comes of a log: channel (4) |
//!
//! The head of a frame is that of [`rank`](crate::rank) frames. Nobody answers on a stream, so who
//! opens one writes the oldest version that it speaks: all its neighbours read that.

use alloc::vec::Vec;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use zerocopy::IntoBytes;

use crate::codec::{FRAME_OVERHEAD, FrameHeader, append, read, take_frame};
use crate::rank::{Choice, MAX_CHOICES};
use crate::versions::{RING, VersionRange};
use crate::{Incarnation, Malformed, Member, NodeId};

/// The first bytes of a stream of these frames, before its frames.
pub const MAGIC: [u8; 4] = *b"SFMS";

/// The most bytes of a [`Piece`].
pub const MAX_PIECE: usize = 256 << 10;

/// Messages from one rank of a job to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Route {
    /// The job.
    pub job: u64,
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
}

/// The purpose for which a log is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Purpose {
    /// Its receiver is there.
    Read,
    /// It is to be there on a disk.
    Keep,
    /// It is of a start that is over, and was kept for its receiver, which is there: up to this message.
    Kept(u64),
}

/// A log, from its oldest byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Its number on this stream, from 0: one more than the last.
    pub channel: u32,
    /// Its purpose there.
    pub purpose: Purpose,
    /// The messages that it has.
    pub route: Route,
    /// The sender's start.
    pub start: u64,
    /// The bytes of its ring, a power of two.
    pub capacity: u64,
    /// Its first byte, of all bytes ever.
    pub at: u64,
}

/// The next bytes of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The log's number.
    pub channel: u32,
    /// Its first byte, of all bytes ever.
    pub at: u64,
    /// The bytes.
    pub bytes: Bytes,
}

/// A start of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Start {
    /// The job.
    pub job: u64,
    /// The rank.
    pub rank: u32,
    /// The number of the start.
    pub start: u64,
    /// Starts before this one count no more, with their choices: all ranks have gone back.
    pub since: u64,
}

/// How far a log is on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The messages that it has.
    pub route: Route,
    /// The sender's start.
    pub start: u64,
    /// The bytes of its ring: of a start's logs, a later one has more.
    pub capacity: u64,
    /// All before this byte, of all bytes ever, is on the disk. All bits set: it cannot be there, and
    /// nobody is to wait for it.
    pub until: u64,
}

/// A word about messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// The receiver needs no messages of this route up to this one.
    Needless(Route, u64),
    /// This start has made choices: the number before the first, they, and whether these are the
    /// oldest that may be needed.
    Choices(Start, u64, Vec<Choice>, bool),
    /// The choices of this start up to this one are noted.
    Noted(Start, u64),
    /// No start of the rank needs choices up to this one.
    Forget(Start, u64),
    /// This start begins: what is noted of earlier ones? They note nothing any more.
    Ask(Start),
    /// The answer: the number before the first, they, and whether more follow.
    Notes(Start, u64, Vec<Choice>, bool),
    /// A log that came to be kept is on the disk.
    Kept(Kept),
}

/// The first words of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The version of the frames on this stream.
    pub version: u8,
    /// Its node.
    pub from: Member,
    /// The node that it looks for.
    pub to: Member,
}

/// Any frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// An agent introduces itself.
    Hello(Hello),
    /// Another log is to be mirrored.
    Open(Open),
    /// The next bytes of a log.
    Bytes(Piece),
    /// A log has let go all before this byte.
    Released(u32, u64),
    /// A word.
    Word(Word),
    /// There was nothing to say for a while.
    Alive,
    /// Nothing more comes of this log.
    Closed(u32),
}

impl Frame {
    /// The bytes to write, head included.
    pub fn encode(&self) -> Bytes {
        let mut body = BytesMut::new();
        let kind = match self {
            Frame::Hello(Hello { version, from, to }) => {
                body.put_slice(&[*version, 0, 0, 0]);
                for member in [from, to] {
                    body.put_u32_le(member.node.0);
                    body.put_u64_le(member.incarnation.0);
                }
                1
            }
            Frame::Open(open) => {
                body = append(body, open);
                2
            }
            Frame::Bytes(Piece { channel, at, bytes }) => {
                body.put_u32_le(*channel);
                body.put_u64_le(*at);
                body.put_slice(bytes);
                3
            }
            Frame::Released(channel, at) => {
                body.put_u32_le(*channel);
                body.put_u64_le(*at);
                4
            }
            Frame::Word(word) => {
                body = append(body, word);
                5
            }
            Frame::Alive => 6,
            Frame::Closed(channel) => {
                body.put_u32_le(*channel);
                7
            }
        };
        let mut frame = BytesMut::with_capacity(FRAME_OVERHEAD + body.len());
        frame.put_slice(FrameHeader::new(body.len(), kind).as_bytes());
        frame.put_slice(&body);
        frame.freeze()
    }

    /// Takes the next whole frame out of what a stream has brought, or `None` if more must come.
    ///
    /// # Errors
    /// [`Malformed`]: the stream cannot be trusted any more and is to be closed.
    pub fn take(buffer: &mut BytesMut) -> Result<Option<Frame>, Malformed> {
        let Some((kind, mut body)) = take_frame(buffer, |kind| (1..=7).contains(&kind))? else {
            return Ok(None);
        };
        let has = |bytes: usize, fits: fn(&usize, &usize) -> bool| {
            if fits(&body.len(), &bytes) { Ok(()) } else { Err(Malformed::Length) }
        };
        let frame = match kind {
            1 => {
                has(28, usize::eq)?;
                let version = body.get_u8();
                if !RING.contains(version) {
                    let theirs = VersionRange { least: version, greatest: version };
                    return Err(Malformed::Version { theirs, ours: RING });
                }
                if body.split_to(3)[..] != [0; 3] {
                    return Err(Malformed::Field("reserved"));
                }
                let mut member = || {
                    let node = NodeId(body.get_u32_le());
                    Member { node, incarnation: Incarnation(body.get_u64_le()) }
                };
                Frame::Hello(Hello { version, from: member(), to: member() })
            }
            2 => Frame::Open(read(&body)?),
            3 => {
                has(12, usize::ge)?;
                let (channel, at) = (body.get_u32_le(), body.get_u64_le());
                if body.len() > MAX_PIECE {
                    return Err(Malformed::Length);
                }
                Frame::Bytes(Piece { channel, at, bytes: body })
            }
            4 => {
                has(12, usize::eq)?;
                Frame::Released(body.get_u32_le(), body.get_u64_le())
            }
            5 => Frame::Word(read::<Word>(&body)?.checked()?),
            6 => {
                has(0, usize::eq)?;
                Frame::Alive
            }
            _ => {
                has(4, usize::eq)?;
                Frame::Closed(body.get_u32_le())
            }
        };
        Ok(Some(frame))
    }
}

impl Word {
    fn checked(self) -> Result<Word, Malformed> {
        match &self {
            Word::Choices(_, _, choices, _) | Word::Notes(_, _, choices, _)
                if choices.len() > MAX_CHOICES =>
            {
                Err(Malformed::Field("choices"))
            }
            _ => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn frames_survive_their_way_and_others_are_refused() {
        let from = Member { node: NodeId(3), incarnation: Incarnation(9) };
        let route = Route { job: 7, from: 1, to: 2 };
        let start = Start { job: 7, rank: 1, start: 3, since: 2 };
        let (purpose, capacity) = (Purpose::Keep, 1 << 20);
        let open = Open { channel: 4, purpose, route, start: 2, capacity, at: 64 };
        let choices = vec![Choice::From(3), Choice::Number(u64::MAX)];
        let frames = [
            Frame::Hello(Hello { version: RING.least, from, to: from }),
            Frame::Open(open),
            Frame::Bytes(Piece { channel: 4, at: 64, bytes: Bytes::from_static(&[7; 96]) }),
            Frame::Released(4, 96),
            Frame::Word(Word::Needless(route, 17)),
            Frame::Word(Word::Choices(start, 8, choices.clone(), false)),
            Frame::Word(Word::Noted(start, 10)),
            Frame::Word(Word::Forget(start, 10)),
            Frame::Word(Word::Ask(start)),
            Frame::Word(Word::Notes(start, 8, choices, true)),
            Frame::Word(Word::Kept(Kept { route, start: 2, capacity, until: 96 })),
            Frame::Alive,
            Frame::Closed(4),
        ];
        let mut stream = BytesMut::new();
        frames.iter().for_each(|frame| stream.extend_from_slice(&frame.encode()));
        for frame in &frames {
            assert_eq!(Frame::take(&mut stream).unwrap().as_ref(), Some(frame));
        }
        assert_eq!(Frame::take(&mut stream), Ok(None));
        let refused = |bytes: &[u8]| Frame::take(&mut BytesMut::from(bytes)).unwrap_err();
        let mut hello = frames[0].encode().to_vec();
        hello[8] = 99;
        let theirs = VersionRange::new(99, 99);
        assert_eq!(refused(&hello), Malformed::Version { theirs, ours: RING });
        assert_eq!(refused(&[0, 0, 0, 0, 9, 0, 0, 0]), Malformed::Kind(9));
        assert_eq!(refused(&[1, 0, 0, 0, 6, 0, 0, 0, 0]), Malformed::Length);
        assert_eq!(refused(&[1, 0, 0, 0, 3, 0, 0, 0, 0]), Malformed::Length);
    }
}
