//! The limits of a contract, since a hostile program may tell one.

use std::collections::BTreeSet;

use wire::limits::MAX_NAME;

/// Bytes of a contract's JSON.
pub const MAX_CONTRACT: usize = 256 << 10;
/// Methods of a contract.
pub const MAX_METHODS: usize = 1_024;
/// Types that a contract defines.
pub const MAX_TYPES: usize = 256;
/// Arguments of a method, fields of a type, variants of an enum.
pub const MAX_PARTS: usize = 256;
/// Bytes of a type's text.
pub const MAX_TYPE: usize = 1_024;

/// The names of all parts of one kind in one place.
pub(super) fn names<'a>(
    of: &str,
    all: impl ExactSizeIterator<Item = &'a String>,
    most: usize,
) -> Result<(), String> {
    limited(of, all.len(), most)?;
    let mut seen = BTreeSet::new();
    for text in all {
        name(of, text)?;
        if !seen.insert(text) {
            return Err(format!("{text:?} is the name of {of} twice in one place"));
        }
    }
    Ok(())
}

pub(super) fn limited(of: &str, count: usize, most: usize) -> Result<(), String> {
    match count <= most {
        true => Ok(()),
        false => Err(format!("it has {of} {count} times in one place, at most {most}")),
    }
}

pub(super) fn name(of: &str, text: &str) -> Result<(), String> {
    printable(of, text, MAX_NAME)
}

pub(super) fn type_text(text: &str) -> Result<(), String> {
    printable("a type", text, MAX_TYPE)
}

pub(super) fn printable(of: &str, text: &str, most: usize) -> Result<(), String> {
    if text.is_empty() || text.len() > most {
        return Err(format!("the name of {of} has {} bytes: 1 to {most} are right", text.len()));
    }
    match text.chars().any(char::is_control) {
        true => Err(format!("the name of {of} has a control character: {text:?}")),
        false => Ok(()),
    }
}
