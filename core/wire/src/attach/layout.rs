//! The fixed heads of the frames' bodies.

use alloc::string::String;

use bytes::Bytes;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::messages::{Answer, Ask, Execute, Outcome, Piece, TOKEN, Told};
use crate::client::Refusal;
use crate::codec::at_most;
use crate::limits::{ATTACH_PIECE, MAX_NAME, MAX_REASON, MAX_STATE};
use crate::{ClientId, Lane, Malformed, MethodId, Time};

const JSON: u8 = 1;
const READ: u8 = 2;
/// The place of the lane among the flags.
const LANE: u8 = 2;
/// A flag of the welcome.
pub(super) const ORDERED: u8 = 1;
const PANICKED: u8 = 1;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct HelloHeader {
    pub magic: [u8; 4],
    pub greatest: u8,
    pub least: u8,
    pub group: U16,
    pub pid: U32,
    pub token: [u8; TOKEN],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct WelcomeHeader {
    pub version: u8,
    pub flags: u8,
    pub cluster: U16,
    pub node: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct NoticeHeader {
    pub code: u8,
    pub reserved: [u8; 7],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ExecuteHeader {
    number: U64,
    now: U64,
    seed: U64,
    client: U64,
    call: U64,
    method: U32,
    flags: u8,
    reserved: [u8; 3],
}

impl ExecuteHeader {
    pub fn of(execute: &Execute) -> ExecuteHeader {
        ExecuteHeader {
            number: execute.number.into(),
            now: execute.now.0.into(),
            seed: execute.seed.into(),
            client: execute.client.0.into(),
            call: execute.call.into(),
            method: execute.method.0.into(),
            flags: (u8::from(execute.json) * JSON)
                | (u8::from(execute.read) * READ)
                | ((execute.lane as u8) << LANE),
            reserved: [0; 3],
        }
    }

    /// Reads a body, which the arguments share.
    pub fn decode(body: &Bytes) -> Result<Execute, Malformed> {
        let (head, arguments) = split::<ExecuteHeader>(body)?;
        let lane = Lane::ALL.get(usize::from(head.flags >> LANE));
        let Some(lane) = lane.filter(|_| head.reserved == [0; 3]) else {
            return Err(Malformed::Field("execute flags"));
        };
        Ok(Execute {
            number: head.number.get(),
            now: Time(head.now.get()),
            seed: head.seed.get(),
            client: ClientId(head.client.get()),
            call: head.call.get(),
            method: MethodId(head.method.get()),
            json: head.flags & JSON != 0,
            read: head.flags & READ != 0,
            lane: *lane,
            body: arguments,
        })
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct AnswerHeader {
    number: U64,
    outcome: u8,
    refusal: u8,
    flags: u8,
    reserved: u8,
}

impl AnswerHeader {
    /// The head, and what follows it.
    pub fn of(answer: &Answer) -> (AnswerHeader, &[u8]) {
        let (outcome, refusal, bytes) = parts_of(&answer.outcome);
        let (number, flags) = (answer.number.into(), u8::from(answer.panicked) * PANICKED);
        (AnswerHeader { number, outcome, refusal, flags, reserved: 0 }, bytes)
    }

    /// Reads a body, which the outcome shares.
    pub fn decode(body: &Bytes) -> Result<Answer, Malformed> {
        let (head, bytes) = split::<AnswerHeader>(body)?;
        if head.flags & !PANICKED != 0 || head.reserved != 0 {
            return Err(Malformed::Field("answer flags"));
        }
        let outcome = outcome_of(head.outcome, head.refusal, bytes)?;
        Ok(Answer { number: head.number.get(), panicked: head.flags & PANICKED != 0, outcome })
    }
}

fn parts_of(outcome: &Outcome) -> (u8, u8, &[u8]) {
    match outcome {
        Outcome::Ok(bytes) => (1, 0, &bytes[..]),
        Outcome::Error(bytes) => (2, 0, &bytes[..]),
        Outcome::Refused(refusal, reason) => (3, *refusal as u8, reason.as_bytes()),
    }
}

fn outcome_of(outcome: u8, refusal: u8, bytes: Bytes) -> Result<Outcome, Malformed> {
    if outcome != 3 && refusal != 0 {
        return Err(Malformed::Field("refusal"));
    }
    Ok(match outcome {
        1 => Outcome::Ok(bytes),
        2 => Outcome::Error(bytes),
        3 => {
            let refusal = Refusal::from_number(refusal).ok_or(Malformed::Field("refusal"))?;
            Outcome::Refused(refusal, text(&bytes, MAX_REASON, "reason")?)
        }
        _ => return Err(Malformed::Field("outcome")),
    })
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct AskHeader {
    number: U64,
    method: U32,
    timeout_us: U32,
    flags: u8,
    reserved: u8,
    length: U16,
}

impl AskHeader {
    pub fn of(ask: &Ask) -> AskHeader {
        AskHeader {
            number: ask.number.into(),
            method: ask.method.0.into(),
            timeout_us: ask.timeout_us.into(),
            flags: u8::from(ask.json) * JSON,
            reserved: 0,
            length: u16::try_from(ask.group.len()).expect("names are limited").into(),
        }
    }

    /// Reads a body, which the arguments share.
    pub fn decode(body: &Bytes) -> Result<Ask, Malformed> {
        let (head, rest) = split::<AskHeader>(body)?;
        if head.flags & !JSON != 0 || head.reserved != 0 {
            return Err(Malformed::Field("call flags"));
        }
        let length = usize::from(head.length.get());
        let group = rest.get(..length).ok_or(Malformed::Length)?;
        Ok(Ask {
            number: head.number.get(),
            method: MethodId(head.method.get()),
            timeout_us: head.timeout_us.get(),
            json: head.flags & JSON != 0,
            group: text(group, MAX_NAME, "group")?,
            body: rest.slice(length..),
        })
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ToldHeader {
    number: U64,
    outcome: u8,
    refusal: u8,
    error: u8,
    reserved: u8,
}

impl ToldHeader {
    /// The head, and what follows it.
    pub fn of(told: &Told) -> (ToldHeader, &[u8]) {
        let (outcome, refusal, bytes) = parts_of(&told.outcome);
        let (number, error) = (told.number.into(), told.error);
        (ToldHeader { number, outcome, refusal, error, reserved: 0 }, bytes)
    }

    /// Reads a body, which the outcome shares.
    pub fn decode(body: &Bytes) -> Result<Told, Malformed> {
        let (head, bytes) = split::<ToldHeader>(body)?;
        if head.reserved != 0 || (head.error != 0 && head.outcome != 3) {
            return Err(Malformed::Field("told"));
        }
        let outcome = outcome_of(head.outcome, head.refusal, bytes)?;
        Ok(Told { number: head.number.get(), error: head.error, outcome })
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct PieceHeader {
    number: U64,
    total: U64,
}

impl PieceHeader {
    pub fn of(piece: &Piece) -> PieceHeader {
        PieceHeader { number: piece.number.into(), total: piece.total.into() }
    }

    /// Reads a body, which the piece shares.
    pub fn decode(body: &Bytes) -> Result<Piece, Malformed> {
        let (head, bytes) = split::<PieceHeader>(body)?;
        let (number, total) = (head.number.get(), head.total.get());
        at_most(bytes.len(), ATTACH_PIECE, "piece")?;
        let fits = total <= MAX_STATE as u64 && bytes.len() as u64 <= total;
        if !fits || (bytes.is_empty() && total > 0) {
            return Err(Malformed::Field("total"));
        }
        Ok(Piece { number, total, bytes })
    }
}

/// A body's fixed head, and what follows it.
pub(super) fn split<H: FromBytes>(body: &Bytes) -> Result<(H, Bytes), Malformed> {
    let (head, _) = H::read_from_prefix(body).map_err(|_| Malformed::Length)?;
    Ok((head, body.slice(size_of::<H>()..)))
}

/// A body that is a number and nothing else.
pub(super) fn number_of(body: &Bytes) -> Result<u64, Malformed> {
    let number = U64::read_from_bytes(body).map_err(|_| Malformed::Length)?;
    Ok(number.get())
}

pub(super) fn text(bytes: &[u8], limit: usize, field: &'static str) -> Result<String, Malformed> {
    at_most(bytes.len(), limit, field)?;
    core::str::from_utf8(bytes).map(String::from).map_err(|_| Malformed::Field(field))
}
