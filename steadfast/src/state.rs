//! A replica's state as bytes.

use std::fmt::Display;

use named::Bounds;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::BoxError;
use crate::encoding::{Encoding, written};

/// How the state of a service is taken from one replica and given to another.
///
/// Every type that serde can write and read has it already, with names and types: each attribute of
/// serde works, and the next version of a program may add fields with a default, remove, rename
/// (`alias`), reorder and nest them (`docs/changing.md`). What serde writes alike is one state: a
/// field with `skip`, or two variants of an `untagged` enum with the same content. Implement the
/// trait by hand on a type that keeps things outside the state (open files, caches), or that has a
/// better form. Such a type does not implement `Serialize`.
///
/// Replicas that executed the same requests must have the same state: they compare digests now and
/// then, and what differs is an alarm (`docs/changing.md`). The order of a `HashMap`, which differs
/// from one process to the next, does not count there; in the digests of `steadfast state` it does.
///
/// ```
/// use std::collections::VecDeque;
///
/// use steadfast::BoxError;
///
/// struct Log {
///     lines: VecDeque<String>,
///     scratch: String, // not state
/// }
///
/// impl steadfast::State for Log {
///     fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
///         Ok(self.lines.iter().flat_map(|line| line.bytes().chain([b'\n'])).collect())
///     }
///
///     fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
///         let text = std::str::from_utf8(state)?;
///         self.lines = text.lines().map(str::to_owned).collect();
///         Ok(())
///     }
/// }
/// # let mut log = Log { lines: ["one".to_owned()].into(), scratch: String::new() };
/// # let bytes = steadfast::State::snapshot(&log).unwrap();
/// # log.lines.clear();
/// # steadfast::State::restore(&mut log, &bytes).unwrap();
/// # assert_eq!(log.lines, ["one"]);
/// ```
///
/// In a [warm passive](crate::Style::WarmPassive) group the changes of each call go to the backups
/// before its reply leaves. A service with a large state and small changes can report the changes
/// itself, in its own form:
///
/// ```
/// use std::collections::{BTreeMap, BTreeSet};
///
/// use steadfast::BoxError;
///
/// #[derive(Default)]
/// struct Stock {
///     articles: BTreeMap<u32, u64>,
///     /// Changed since this was last told.
///     touched: BTreeSet<u32>,
/// }
///
/// impl Stock {
///     fn take_in(&mut self, article: u32, pieces: u64) {
///         *self.articles.entry(article).or_default() += pieces;
///         self.touched.insert(article);
///     }
/// }
///
/// impl steadfast::State for Stock {
///     fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
///         Ok(postcard::to_allocvec(&self.articles)?)
///     }
///
///     fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
///         self.articles = postcard::from_bytes(state)?;
///         self.touched.clear(); // the giver of the state has reported the rest
///         Ok(())
///     }
///
///     fn delta(&mut self) -> Result<Option<Vec<u8>>, BoxError> {
///         let changed = std::mem::take(&mut self.touched);
///         let changed: Vec<_> = changed.iter().map(|it| (it, self.articles[it])).collect();
///         Ok(Some(postcard::to_allocvec(&changed)?))
///     }
///
///     fn apply(&mut self, delta: &[u8]) -> Result<(), BoxError> {
///         let changed: Vec<(u32, u64)> = postcard::from_bytes(delta)?;
///         self.articles.extend(changed);
///         Ok(())
///     }
/// }
///
/// use steadfast::State;
/// let (mut primary, mut backup) = (Stock::default(), Stock::default());
/// primary.take_in(4711, 20);
/// primary.take_in(4711, 5);
/// let delta = primary.delta()?.expect("it tells its changes");
/// assert_eq!(delta.len(), 4); // one article of the whole stock
/// backup.apply(&delta)?;
/// assert_eq!(backup.articles[&4711], 25);
/// # assert_eq!(backup.snapshot()?, primary.snapshot()?);
/// # Ok::<(), BoxError>(())
/// ```
pub trait State {
    /// The state as it is now.
    ///
    /// # Errors
    /// Why it cannot be taken, for the node's log: the replica that asked stays without the state.
    fn snapshot(&self) -> Result<Vec<u8>, BoxError>;

    /// The state, if it has no more bytes than this: a replica tries small states now and then, and
    /// calls wait meanwhile. By default the whole one is made, and looked at.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    fn snapshot_within(&self, bytes: usize) -> Result<Option<Vec<u8>>, BoxError> {
        Ok(Some(self.snapshot()?).filter(|state| state.len() <= bytes))
    }

    /// Replaces the state by one that another replica's [`snapshot`](Self::snapshot) gave.
    ///
    /// # Errors
    /// Why it cannot be read, for the node's log: this replica stays without the state.
    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError>;

    /// As [`restore`](Self::restore), and tells which fields of the given state were left out because
    /// this version of the service does not know them, as `Type.field`: for the operator.
    ///
    /// # Errors
    /// As `restore`.
    fn restore_telling(&mut self, state: &[u8], dropped: &mut Vec<String>) -> Result<(), BoxError> {
        let _ = dropped;
        self.restore(state)
    }

    /// Whether two states are the same but for the order of what a hash map has in them. A replica
    /// tries its own state now and then: what reads back as another is an alarm. By default they
    /// must have the same bytes, in whatever order.
    fn is_same(&self, one: &[u8], other: &[u8]) -> bool {
        node::has_same_bytes(one, other)
    }

    /// A digest of a state, equal for states that are [the same](State::is_same). Replicas compare
    /// theirs now and then: what differs is an alarm. By default it is made of how often the state
    /// has each byte.
    fn digest(&self, state: &[u8]) -> u64 {
        node::digest_of_bytes(state)
    }

    /// Returns the changes since the last call of this function, or since the state came. Only the
    /// primary of a [warm passive](crate::Style::WarmPassive) group is asked. `None`, the default:
    /// the node compares whole states, which costs a snapshot at each update.
    ///
    /// # Errors
    /// Why the changes cannot be reported, for the node's log: another replica becomes primary, if
    /// one has the state.
    fn delta(&mut self) -> Result<Option<Vec<u8>>, BoxError> {
        Ok(None)
    }

    /// Makes a change that the primary's [`delta`](Self::delta) told.
    ///
    /// # Errors
    /// Why it cannot be made, for the node's log: this replica gets the whole state anew.
    fn apply(&mut self, delta: &[u8]) -> Result<(), BoxError> {
        let _ = delta;
        Err("this service takes no deltas: the group's primary runs another version of it".into())
    }
}

impl<T: Serialize + DeserializeOwned> State for T {
    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(written(self, Bounds::NONE)?)
    }

    fn snapshot_within(&self, bytes: usize) -> Result<Option<Vec<u8>>, BoxError> {
        match named::to_vec_within(self, Bounds { bytes, ..Bounds::NONE }) {
            Ok(state) => Ok(Some(state)),
            Err(error) if error.is_too_large() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        self.restore_telling(state, &mut Vec::new())
    }

    fn restore_telling(&mut self, state: &[u8], dropped: &mut Vec<String>) -> Result<(), BoxError> {
        if !named::is_named(state) {
            // A program that was built before wrote it.
            *self = Encoding::Postcard.decode(state).map_err(not_a_state)?;
            return Ok(());
        }
        let read = named::read(state, Bounds::NONE).map_err(not_a_state)?;
        *self = read.value;
        dropped.extend(read.dropped);
        Ok(())
    }

    fn is_same(&self, one: &[u8], other: &[u8]) -> bool {
        named::same(one, other)
    }

    fn digest(&self, state: &[u8]) -> u64 {
        named::digest(state).unwrap_or_else(|| node::digest_of_bytes(state))
    }
}

fn not_a_state(error: impl Display) -> String {
    format!("not a state of this service: {error}")
}

#[cfg(test)]
mod tests {
    use super::State;

    #[test]
    fn what_serde_knows_is_taken_and_restored() {
        let taken = State::snapshot(&(1u64, vec!["a".to_owned()])).expect("plain data");
        let mut other = (0u64, Vec::new());
        other.restore(&taken).expect("the same type");
        assert_eq!(other, (1, vec!["a".to_owned()]));
    }

    #[test]
    fn a_state_of_another_service_changes_nothing() {
        let mut state = vec!["kept".to_owned()];
        let error = state.restore(&[0xff; 3]).expect_err("no vector of strings");
        assert!(error.to_string().contains("not a state of this service"), "{error}");
        assert_eq!(state, ["kept"]);
    }
}
