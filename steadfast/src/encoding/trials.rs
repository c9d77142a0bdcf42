//! Which values are read back before they leave.
//!
//! The encoding gives back what serde writes. A type can still spoil itself: the first variant of an
//! `untagged` enum takes a later one's values, serde cannot buffer numbers of 128 bits for `flatten`,
//! or `serialize` and `deserialize` are written by hand and do not fit. So the first values of each
//! type are read back, and compared; then one of many; and always where the type let serde choose by
//! the value.

use std::any::type_name;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use named::{Bounds, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The first values of a type that are tried, and one of how many later.
const FIRST: u32 = 32;
const LATER: u32 = 1_024;

/// Larger values are not tried, unless their type lets serde choose: it would double their memory.
const LARGE: usize = 16 << 20;

/// A type, by its name: two of one name share what is known, and the more careful trial.
#[derive(Default)]
struct Record {
    written: AtomicU32,
    /// A value of it was read by a deserializer that took what came.
    is_dynamic: AtomicBool,
}

impl Record {
    fn is_due(&self, bytes: usize) -> bool {
        let before = self.written.fetch_add(1, Ordering::Relaxed);
        let is_turn = before < FIRST || before.is_multiple_of(LATER);
        (is_turn && bytes <= LARGE) || self.is_dynamic.load(Ordering::Relaxed)
    }
}

static RECORDS: RwLock<Option<HashMap<&'static str, Arc<Record>>>> = RwLock::new(None);

fn record<T>() -> Arc<Record> {
    let name = type_name::<T>();
    let all = RECORDS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(record) = all.as_ref().and_then(|all| all.get(name)) {
        return record.clone();
    }
    drop(all);
    let mut all = RECORDS.write().unwrap_or_else(PoisonError::into_inner);
    all.get_or_insert_default().entry(name).or_default().clone()
}

/// The value's bytes, read back if that is due.
///
/// # Errors
/// They cannot be written or, where they are read back, are another value's.
pub(crate) fn written<T: Serialize + DeserializeOwned>(
    value: &T,
    bounds: Bounds,
) -> Result<Vec<u8>, Error> {
    let bytes = named::to_vec_within(value, bounds)?;
    let record = record::<T>();
    if record.is_due(bytes.len()) {
        let back = named::read::<T>(&bytes, bounds)?;
        if back.is_dynamic {
            record.is_dynamic.store(true, Ordering::Relaxed);
        }
        if !named::same(&named::to_vec_within(&back.value, bounds)?, &bytes) {
            return Err(Error::changed());
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Late {
        Narrow { x: u32 },
        Broad { x: u32, y: Option<u8> },
    }

    #[test]
    fn a_type_whose_values_choose_is_always_tried() {
        for x in 0..2 * FIRST {
            written(&Late::Narrow { x }, Bounds::CALL).expect("it reads back");
        }
        let error = written(&Late::Broad { x: 1, y: None }, Bounds::CALL).expect_err("as Narrow");
        assert!(error.to_string().contains("another value"), "{error}");
    }

    #[test]
    fn a_plain_type_is_tried_at_first_and_now_and_then() {
        let record = Record::default();
        let due = (0..10 * LATER).filter(|_| record.is_due(1)).count() as u32;
        assert_eq!(due, FIRST + 9);
        assert!(!Record::default().is_due(LARGE + 1));
    }
}
