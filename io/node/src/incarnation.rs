//! Which life of the node this is: larger at every start.

use std::fs::{self, TryLockError};
use std::io;
use std::path::Path;

use config::founder;
use os::clock::wall_clock;
use os::durable::{self, Lock};
use wire::{Incarnation, Time};

use crate::StartError;

/// Where the clock has not gone on, a life begins so far beyond the last one: that one's rings were
/// numbered from its incarnation on, and two rings must not have one id.
const RINGS: u64 = 1 << 20;

const FILE: &str = "incarnation";

/// One life of the node.
#[derive(Debug)]
pub(crate) struct Life {
    pub incarnation: Incarnation,
    /// There was no earlier one: the data directory has the mark of a new cluster, and knows of none.
    pub first: bool,
    /// Held as long as the node runs.
    pub data_dir: Option<Lock>,
}

/// Takes the next incarnation: the wall clock's nanoseconds, or one more than the last if the
/// clock was set back. Without a data directory there is no last.
pub(crate) fn next(data_dir: Option<&Path>) -> Result<Life, StartError> {
    let now = wall_clock();
    let Some(directory) = data_dir else {
        return Ok(Life { incarnation: Incarnation(now), first: false, data_dir: None });
    };
    let wrap = |source| StartError::DataDir { path: directory.into(), source };
    durable::make_folder(directory).map_err(wrap)?;
    let lock = durable::lock(directory, "lock").map_err(|error| match error {
        TryLockError::WouldBlock => StartError::DataDirTaken(directory.into()),
        TryLockError::Error(source) => wrap(source),
    })?;
    let last = match fs::read_to_string(directory.join(FILE)) {
        Ok(text) => {
            Some(number(&text).ok_or_else(|| StartError::Incarnation(directory.join(FILE)))?)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(wrap(source)),
    };
    let next = now.max(last.map_or(0, |last| last.saturating_add(RINGS)));
    let line = format!("{next}\n");
    let first = last.is_none() && founder::counts(directory, Time(now));
    if last.is_none() && !first {
        tracing::info!(
            data_dir = %directory.display(),
            "the data directory is empty: this node asks to be taken in; a new cluster begins when \
             all its nodes are there"
        );
    }
    durable::replace_file(&directory.join(FILE), 0o644, line.as_bytes()).map_err(wrap)?;
    match fs::remove_file(directory.join(founder::FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrap(error)),
        _ => {}
    }
    Ok(Life { incarnation: Incarnation(next), first, data_dir: Some(lock) })
}

/// The last number itself would leave no room for a next one.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|&last| last < u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_even_if_the_clock_was_set_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        fs::create_dir(&path).unwrap();
        fs::write(path.join(founder::FILE), founder::text(Time(wall_clock()))).unwrap();
        let first = next(Some(&path)).unwrap();
        assert!(first.first && !path.join(founder::FILE).exists());
        assert!(matches!(next(Some(&path)), Err(StartError::DataDirTaken(_))), "one at a time");
        let ahead = first.incarnation.0 + 3_600_000_000_000;
        drop(first);
        fs::write(path.join(FILE), ahead.to_string()).unwrap();
        let second = next(Some(&path)).unwrap();
        assert!(!second.first && second.incarnation == Incarnation(ahead + RINGS));
    }

    #[test]
    fn an_empty_folder_without_a_mark_may_be_one_that_was_lost() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!next(Some(directory.path())).unwrap().first);
    }

    #[test]
    fn a_file_that_holds_no_number_is_refused_with_the_remedy() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), "garbage").unwrap();
        let error = next(Some(directory.path())).unwrap_err().to_string();
        assert!(error.contains("incarnation") && error.contains("remove it"), "{error}");
    }
}
