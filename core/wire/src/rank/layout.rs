//! The bodies of the frames.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::{Buf, BufMut, BytesMut};

use super::messages::{
    Array, Choice, Choices, Counts, Every, Hello, MAX_ARRAY_NAME, MAX_ARRAYS, MAX_CHOICES,
    MAX_PIECES, MAX_RANKS, PAGE, Saved, Snapshot, Span, TOKEN, Welcome,
};
use crate::codec::at_most;
use crate::limits::{MAX_EXTENSION, MAX_REASON};
use crate::{Malformed, VersionRange};

const RESTORED: u8 = 1;
const FULL: u8 = 1 << 1;
const BLOCKING: u8 = 1 << 2;
const REGROUPED: u8 = 1 << 3;

/// The place of `every` for [`Every::Auto`].
const AUTO: u64 = u64::MAX;

/// The bit of `every` for [`Every::Turns`].
const TURNS: u64 = 1 << 63;

pub(super) fn hello(body: &mut BytesMut, hello: &Hello) -> u8 {
    body.put_slice(&Hello::MAGIC);
    body.put_slice(&[hello.speaks.greatest, hello.speaks.least_byte(), 0, 0]);
    body.put_slice(&hello.token);
    1
}

pub(super) fn welcome(body: &mut BytesMut, it: &Welcome) -> u8 {
    body.put_u8(it.version);
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let first = flag(it.restored, RESTORED) | flag(it.full, FULL);
    body.put_u8(first | flag(it.blocking, BLOCKING) | flag(it.regrouped, REGROUPED));
    // The limits keep it within.
    body.put_u16_le(it.arrays.len() as u16);
    body.put_u32_le(it.rank);
    body.put_u32_le(it.ranks);
    let every = match it.every {
        Every::Auto => AUTO,
        Every::Never => 0,
        Every::Micros(micros) => micros.clamp(1, TURNS - 1),
        Every::Turns(turns) => turns.clamp(1, TURNS - 2) | TURNS,
    };
    let place = [it.job, it.start, it.step, every, it.age_us];
    for number in place.into_iter().chain([it.generation, it.after, it.noted]) {
        body.put_u64_le(number);
    }
    put_arrays(body, &it.arrays);
    2
}

pub(super) fn snapshot(body: &mut BytesMut, it: &Snapshot) -> u8 {
    body.put_u64_le(it.step);
    body.put_slice(&[u8::from(it.full), 0, 0, 0]);
    body.put_u32_le(it.stop_us);
    body.put_u32_le(it.spans.len() as u32);
    body.put_u32_le(it.arrays.len() as u32);
    body.put_u32_le(it.counts.len() as u32);
    put_arrays(body, &it.arrays);
    for span in &it.spans {
        body.put_u32_le(span.array);
        body.put_u64_le(span.offset);
        body.put_u64_le(span.length);
    }
    for counts in &it.counts {
        for number in [counts.first, counts.sent, counts.below, counts.taken, counts.start] {
            body.put_u64_le(number);
        }
        counts.checks.iter().for_each(|check| body.put_u32_le(*check));
    }
    3
}

pub(super) fn saved(body: &mut BytesMut, it: &Saved) -> u8 {
    body.put_u64_le(it.step);
    body.put_u64_le(it.generation);
    body.put_slice(&[u8::from(it.outcome.is_ok()), u8::from(it.full)]);
    if let Err(reason) = &it.outcome {
        body.put_slice(reason.as_bytes());
    }
    4
}

pub(super) fn needless(body: &mut BytesMut, needless: &[(u32, u64)]) -> u8 {
    for (rank, number) in needless {
        body.put_u32_le(*rank);
        body.put_u64_le(*number);
    }
    12
}

pub(super) fn choices(body: &mut BytesMut, it: &Choices) -> u8 {
    body.put_u64_le(it.after);
    for choice in &it.choices {
        let (kind, value) = match *choice {
            Choice::From(rank) => (1, u64::from(rank)),
            Choice::There(there) => (2, u64::from(there)),
            Choice::Number(number) => (3, number),
        };
        body.put_u8(kind);
        body.put_u64_le(value);
    }
    14
}

fn put_arrays(body: &mut BytesMut, arrays: &[Array]) {
    for Array { name, form, length } in arrays {
        body.put_u16_le(name.len() as u16);
        body.put_u16_le(form.len() as u16);
        body.put_u64_le(*length);
        body.put_slice(name.as_bytes());
        body.put_slice(form.as_bytes());
    }
}

/// The rest of a body.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed::Length)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    fn text(&mut self, length: usize, field: &'static str) -> Result<String, Malformed> {
        let text = self.0.get(..length).ok_or(Malformed::Length)?;
        self.0.advance(length);
        core::str::from_utf8(text).map(String::from).map_err(|_| Malformed::Field(field))
    }

    /// All that is left, as a text.
    pub fn rest(&mut self, limit: usize, field: &'static str) -> Result<String, Malformed> {
        at_most(self.0.len(), limit, field)?;
        self.text(self.0.len(), field)
    }

    /// Bytes that a newer program adds.
    fn skip_extension(&mut self) -> Result<(), Malformed> {
        at_most(self.0.len(), MAX_EXTENSION, "extension")?;
        self.0 = &[];
        Ok(())
    }

    /// Nothing is left.
    pub fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed::Length) }
    }

    /// The versions are the agent's to compare: it answers with a farewell that names both.
    pub fn hello(&mut self) -> Result<Hello, Malformed> {
        if self.take()? != Hello::MAGIC {
            return Err(Malformed::Magic);
        }
        let [greatest, least, reserved @ ..] = self.take::<4>()?;
        if reserved != [0; 2] {
            return Err(Malformed::Field("reserved"));
        }
        let speaks = VersionRange::from_bytes(greatest, least)?;
        let hello = Hello { speaks, token: self.take::<TOKEN>()? };
        self.skip_extension()?;
        Ok(hello)
    }

    pub fn welcome(&mut self) -> Result<Welcome, Malformed> {
        let [version, flags] = self.take()?;
        if flags & !(RESTORED | FULL | BLOCKING | REGROUPED) != 0 {
            return Err(Malformed::Field("welcome flags"));
        }
        let arrays = usize::from(u16::from_le_bytes(self.take()?));
        let (rank, ranks) = (self.u32()?, self.u32()?);
        let (job, start, step) = (self.u64()?, self.u64()?, self.u64()?);
        let every = match self.u64()? {
            0 => Every::Never,
            AUTO => Every::Auto,
            turns if turns & TURNS != 0 => Every::Turns(turns & !TURNS),
            micros => Every::Micros(micros),
        };
        let welcome = Welcome {
            version,
            restored: flags & RESTORED != 0,
            full: flags & FULL != 0,
            blocking: flags & BLOCKING != 0,
            regrouped: flags & REGROUPED != 0,
            rank,
            ranks,
            job,
            start,
            step,
            every,
            age_us: self.u64()?,
            generation: self.u64()?,
            after: self.u64()?,
            noted: self.u64()?,
            arrays: self.arrays(arrays)?,
        };
        self.skip_extension()?;
        Ok(welcome)
    }

    pub fn snapshot(&mut self) -> Result<Snapshot, Malformed> {
        let step = self.u64()?;
        let [full @ (0 | 1), 0, 0, 0] = self.take()? else {
            return Err(Malformed::Field("snapshot flags"));
        };
        let (stop_us, spans, arrays) = (self.u32()?, self.u32()? as usize, self.u32()? as usize);
        let ranks = self.u32()? as usize;
        let arrays = self.arrays(arrays)?;
        let spans = self.spans(spans, &arrays)?;
        at_most(ranks, MAX_RANKS, "ranks")?;
        let mut counts = Vec::new();
        for _ in 0..ranks {
            let (first, sent) = (self.u64()?, self.u64()?);
            let (below, taken, start) = (self.u64()?, self.u64()?, self.u64()?);
            let checks = [self.u32()?, self.u32()?];
            counts.push(Counts { first, sent, below, taken, start, checks });
        }
        Ok(Snapshot { step, full: full == 1, stop_us, arrays, spans, counts })
    }

    pub fn saved(&mut self) -> Result<Saved, Malformed> {
        let (step, generation) = (self.u64()?, self.u64()?);
        let [saved @ (0 | 1), full @ (0 | 1)] = self.take()? else {
            return Err(Malformed::Field("saved flags"));
        };
        let outcome = if saved == 1 { Ok(()) } else { Err(self.rest(MAX_REASON, "reason")?) };
        Ok(Saved { step, generation, outcome, full: full == 1 })
    }

    pub fn needless(&mut self) -> Result<Vec<(u32, u64)>, Malformed> {
        at_most(self.0.len(), MAX_RANKS * 12, "ranks")?;
        let mut needless = Vec::new();
        while !self.0.is_empty() {
            needless.push((self.u32()?, self.u64()?));
        }
        Ok(needless)
    }

    pub fn choices(&mut self) -> Result<Choices, Malformed> {
        let (after, mut choices) = (self.u64()?, Vec::new());
        at_most(self.0.len(), MAX_CHOICES * 9, "choices")?;
        while !self.0.is_empty() {
            let [kind] = self.take()?;
            let value = self.u64()?;
            choices.push(match (kind, value) {
                (1, rank) => {
                    let rank = u32::try_from(rank);
                    Choice::From(rank.map_err(|_| Malformed::Field("choice"))?)
                }
                (2, 0 | 1) => Choice::There(value == 1),
                (3, number) => Choice::Number(number),
                _ => return Err(Malformed::Field("choice")),
            });
        }
        Ok(Choices { after, choices })
    }

    fn arrays(&mut self, count: usize) -> Result<Vec<Array>, Malformed> {
        at_most(count, MAX_ARRAYS, "arrays")?;
        let mut arrays = Vec::new();
        for _ in 0..count {
            let name = usize::from(u16::from_le_bytes(self.take()?));
            let form = usize::from(u16::from_le_bytes(self.take()?));
            let length = self.u64()?;
            at_most(name.max(form), MAX_ARRAY_NAME, "array")?;
            let (name, form) = (self.text(name, "array name")?, self.text(form, "array form")?);
            arrays.push(Array { name, form, length });
        }
        let names: BTreeSet<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
        if names.len() < arrays.len() {
            return Err(Malformed::Field("array name, which comes twice"));
        }
        Ok(arrays)
    }

    /// They are within the arrays, by whole pages, in order, and apart.
    fn spans(&mut self, count: usize, arrays: &[Array]) -> Result<Vec<Span>, Malformed> {
        at_most(count, MAX_PIECES, "spans")?;
        let mut spans: Vec<Span> = Vec::new();
        for _ in 0..count {
            let (array, offset, length) = (self.u32()?, self.u64()?, self.u64()?);
            let it = arrays.get(array as usize).ok_or(Malformed::Field("span's array"))?;
            let end = offset.checked_add(length).filter(|end| *end <= it.length);
            let whole = |end| u64::is_multiple_of(length, PAGE) || end == it.length;
            let after = spans.last().is_none_or(|last| {
                last.array < array || last.array == array && last.offset + last.length <= offset
            });
            let fits = length > 0 && offset.is_multiple_of(PAGE) && end.is_some_and(whole);
            if !fits || !after {
                return Err(Malformed::Field("span"));
            }
            spans.push(Span { array, offset, length });
        }
        Ok(spans)
    }
}
