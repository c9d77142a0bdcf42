//! Which life of the node this is: larger at every start.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use wire::Incarnation;

use crate::StartError;
use crate::timer::wall_clock;

/// Where the clock has not gone on, a life begins so far beyond the last one: that one's rings were numbered from its
/// incarnation on, and two rings must not have one id.
const RINGS: u64 = 1 << 20;

const FILE: &str = "incarnation";

/// Keeps other processes from the data directory as long as it lives.
#[derive(Debug)]
pub(crate) struct DataDir {
    _lock: File,
}

/// One life of the node.
#[derive(Debug)]
pub(crate) struct Life {
    pub incarnation: Incarnation,
    /// The data directory knows of no earlier one.
    pub first: bool,
    /// Held as long as the node runs.
    pub data_dir: Option<DataDir>,
}

/// Takes the next incarnation: the wall clock's nanoseconds, or one more than the last if the
/// clock was set back. Without a data directory there is no last.
pub(crate) fn next(data_dir: Option<&Path>) -> Result<Life, StartError> {
    let now = wall_clock();
    let Some(directory) = data_dir else {
        return Ok(Life { incarnation: Incarnation(now), first: false, data_dir: None });
    };
    let wrap = |source| StartError::DataDir { path: directory.into(), source };
    fs::create_dir_all(directory).map_err(wrap)?;
    let lock = File::create(directory.join("lock")).map_err(wrap)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(StartError::DataDirTaken(directory.into())),
        Err(TryLockError::Error(source)) => return Err(wrap(source)),
    }
    let last = match fs::read_to_string(directory.join(FILE)) {
        Ok(text) => {
            Some(number(&text).ok_or_else(|| StartError::Incarnation(directory.join(FILE)))?)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(wrap(source)),
    };
    let next = now.max(last.map_or(0, |last| last.saturating_add(RINGS)));
    write(directory, next).map_err(wrap)?;
    let data_dir = Some(DataDir { _lock: lock });
    Ok(Life { incarnation: Incarnation(next), first: last.is_none(), data_dir })
}

/// The last number itself would leave no room for a next one.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|&last| last < u64::MAX)
}

/// Replaces the file as a whole: after a crash there is the old number or the new one.
fn write(directory: &Path, next: u64) -> io::Result<()> {
    let new = directory.join("incarnation.new");
    let mut file = File::create(&new)?;
    writeln!(file, "{next}")?;
    file.sync_all()?;
    fs::rename(&new, directory.join(FILE))?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_even_if_the_clock_was_set_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let first = next(Some(&path)).unwrap();
        assert!(first.first);
        assert!(matches!(next(Some(&path)), Err(StartError::DataDirTaken(_))), "one at a time");
        let ahead = first.incarnation.0 + 3_600_000_000_000;
        drop(first);
        fs::write(path.join(FILE), ahead.to_string()).unwrap();
        let second = next(Some(&path)).unwrap();
        assert!(!second.first && second.incarnation == Incarnation(ahead + RINGS));
    }

    #[test]
    fn a_file_that_holds_no_number_is_refused_with_the_remedy() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), "garbage").unwrap();
        let error = next(Some(directory.path())).unwrap_err().to_string();
        assert!(error.contains("incarnation") && error.contains("remove it"), "{error}");
    }
}
