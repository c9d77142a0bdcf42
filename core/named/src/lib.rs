//! An encoding for serde that gives back what it was given, whatever attributes a type has.
//!
//! States and typed calls are in it (`docs/decisions/0079-named-encoding.md`). It is binary, and
//! describes itself: structs have the names of their fields, enums those of their variants, numbers
//! their types. So `skip_serializing_if`, `flatten`, `untagged`, `tag`, `default` and `alias` work
//! as in JSON, and a type may get, lose, rename and reorder fields between two versions of a
//! program. Unlike in JSON nothing is approximated: every float, number of 128 bits, `Some(None)`
//! and map key comes back as it was.
//!
//! ```text
//! | MARK 12 | value | table | length of the table, 4 |
//! ```
//!
//! All is little-endian; lengths, and numbers of 16 to 64 bits, are varints of 7 bits a byte, signed
//! ones zigzag. A value begins with a tag (`tag.rs`). The table has the names, and the *shapes* of
//! structs: the names of the fields that were written. A struct names its shape, so that a million
//! structs of one type carry their names once.
//!
//! [`to_vec`] and [`from_slice`] write and read; [`tried`] does both, and compares;
//! [`digest`] is equal for values that are the same.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bounds;
mod compare;
mod error;
mod number;
mod read;
mod table;
mod tag;
mod write;

use alloc::vec::Vec;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use bounds::{Bounds, MARK, MAX_CALL_DEPTH, Reading};
pub use compare::{digest, same};
pub use error::Error;

/// The value's bytes.
///
/// # Errors
/// The type's own `Serialize` fails.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    write::to_vec(value, Bounds::NONE)
}

/// The value's bytes, within bounds.
///
/// # Errors
/// The type's own `Serialize` fails, or the value is beyond a bound.
pub fn to_vec_within<T: Serialize + ?Sized>(value: &T, bounds: Bounds) -> Result<Vec<u8>, Error> {
    write::to_vec(value, bounds)
}

/// The value that these bytes have.
///
/// # Errors
/// The bytes are no `T`; the error names the place.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    Ok(read::from_slice(bytes, Bounds::NONE)?.value)
}

/// As [`from_slice`], within bounds, and with what was left out.
///
/// # Errors
/// The bytes are no `T`, or nest deeper than the bound.
pub fn read<T: DeserializeOwned>(bytes: &[u8], bounds: Bounds) -> Result<Reading<T>, Error> {
    read::from_slice(bytes, bounds)
}

/// The value's bytes, which were read back and found the same.
///
/// # Errors
/// They cannot be written or read, or the value that is read is another one.
pub fn tried<T: Serialize + DeserializeOwned>(value: &T, bounds: Bounds) -> Result<Vec<u8>, Error> {
    let bytes = to_vec_within(value, bounds)?;
    let back: T = read(&bytes, bounds)?.value;
    if !same(&to_vec_within(&back, bounds)?, &bytes) {
        return Err(Error::changed());
    }
    Ok(bytes)
}

/// Whether these bytes are in this encoding.
pub fn is_named(bytes: &[u8]) -> bool {
    bytes.starts_with(&MARK[..11])
}
