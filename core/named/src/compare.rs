//! Whether two values are the same but for the order of their parts, and digests that are equal
//! then.
//!
//! A `HashMap` or a `HashSet` that is read back has another order than the one that was written.
//! Nothing in the bytes tells a set from a list, so the order counts in neither.

use alloc::vec::Vec;

use crate::bounds::{Bounds, MARK};
use crate::error::Error;
use crate::number;
use crate::read::Reader;
use crate::table::Table;
use crate::tag;

/// The values in these bytes are the same, whatever the order of entries and elements.
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a == b || matches!((sorted(a), sorted(b)), (Ok(a), Ok(b)) if a == b)
}

/// A digest of the value in these bytes: equal for values that are the [same]. `None`: they are not
/// in this encoding.
pub fn digest(bytes: &[u8]) -> Option<u64> {
    let mut input = bytes.get(MARK.len()..)?;
    let table = Table::take(&mut input).ok()?;
    digested(&mut Reader::new(input, &table, Bounds::NONE)).ok()
}

/// The digest of the next value. Nothing is sorted or kept: those of parts are added up.
fn digested(reader: &mut Reader<'_, '_>) -> Result<u64, Error> {
    let tag = reader.peek()?;
    let own = mixed(0, u64::from(tag));
    Ok(match tag {
        tag::SOME => {
            reader.tag()?;
            mixed(own, digested(reader)?)
        }
        tag::UNIT_VARIANT | tag::VARIANT => {
            reader.tag()?;
            let named = word(own, reader.name()?.as_bytes());
            if tag == tag::VARIANT { mixed(named, digested(reader)?) } else { named }
        }
        tag::STRUCT => {
            reader.tag()?;
            let (begin, end) = reader.shape()?;
            let mut all = mixed(own, (end - begin) as u64);
            for field in begin..end {
                all = word(all, reader.table.field(field).as_bytes());
                all = mixed(all, digested(reader)?);
            }
            all
        }
        tag::SEQUENCE => {
            reader.tag()?;
            let shared = reader.shared_tag()?;
            let count = reader.varint()?;
            let mut sum = 0u64;
            for _ in 0..count {
                reader.given = shared;
                sum = sum.wrapping_add(mixed(own, digested(reader)?));
            }
            mixed(mixed(own, count), sum)
        }
        tag::MAP => {
            reader.tag()?;
            let count = reader.varint()?;
            let mut sum = 0u64;
            for _ in 0..count {
                let key = mixed(own, digested(reader)?);
                sum = sum.wrapping_add(mixed(key, digested(reader)?));
            }
            mixed(mixed(own, count), sum)
        }
        _ => {
            reader.tag()?;
            reader.given = Some(tag);
            let before = reader.input;
            reader.skip()?;
            word(own, &before[..before.len() - reader.input.len()])
        }
    })
}

/// The hash goes on by a text, or by a value without others in it.
fn word(hash: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let begun = mixed(hash, bytes.len() as u64);
    let hash = words.iter().fold(begun, |hash, word| mixed(hash, u64::from_le_bytes(*word)));
    mixed(hash, u64::from_le_bytes(last))
}

/// The hash goes on by this word: a round of `SplitMix64`.
fn mixed(hash: u64, word: u64) -> u64 {
    let mut z = (hash.rotate_left(23) ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The value with all its parts in one order, and without numbers of its table.
fn sorted(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut input = bytes.get(MARK.len()..).ok_or_else(Error::cut)?;
    let table = Table::take(&mut input)?;
    let mut reader = Reader::new(input, &table, Bounds::NONE);
    let mut out = Vec::new();
    value(&mut reader, &mut out)?;
    Ok(out)
}

fn value(reader: &mut Reader<'_, '_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let tag = reader.peek()?;
    out.push(tag);
    match tag {
        tag::SOME => {
            reader.tag()?;
            value(reader, out)
        }
        tag::UNIT_VARIANT | tag::VARIANT => {
            reader.tag()?;
            text(reader.name()?, out);
            if tag == tag::VARIANT { value(reader, out) } else { Ok(()) }
        }
        tag::STRUCT => {
            reader.tag()?;
            let (begin, end) = reader.shape()?;
            number::put(out, (end - begin) as u64);
            for field in begin..end {
                text(reader.table.field(field), out);
                value(reader, out)?;
            }
            Ok(())
        }
        tag::SEQUENCE => {
            reader.tag()?;
            let shared = reader.shared_tag()?;
            let count = reader.varint()?;
            parts(count, out, |part| {
                reader.given = shared;
                value(reader, part)
            })
        }
        tag::MAP => {
            reader.tag()?;
            let count = reader.varint()?;
            parts(count, out, |part| {
                value(reader, part)?;
                value(reader, part)
            })
        }
        _ => {
            let before = reader.input;
            reader.skip()?;
            out.extend_from_slice(&before[..before.len() - reader.input.len()]);
            Ok(())
        }
    }
}

/// So many parts, in one order.
fn parts(
    count: u64,
    out: &mut Vec<u8>,
    mut next: impl FnMut(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut all = Vec::new();
    for _ in 0..count {
        let mut part = Vec::new();
        next(&mut part)?;
        all.push(part);
    }
    all.sort_unstable();
    number::put(out, count);
    for part in all {
        number::put(out, part.len() as u64);
        out.extend(part);
    }
    Ok(())
}

fn text(text: &str, out: &mut Vec<u8>) {
    number::put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}
