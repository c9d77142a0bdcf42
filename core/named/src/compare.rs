//! Whether two values are the same but for the order of their parts.
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
