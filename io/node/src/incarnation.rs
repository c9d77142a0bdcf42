//! Which life of the node this is: larger at every start.

use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

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
    /// The node was in no component yet: it is one of those that found the cluster.
    pub founding: Option<Founding>,
    /// Held as long as the node runs.
    pub data_dir: Option<Lock>,
}

/// A node of a new cluster, until it is in a component for the first time. A start that fails, or
/// comes to nothing, changes nothing about that.
#[derive(Debug)]
pub(crate) struct Founding {
    path: PathBuf,
    last: u64,
}

impl Founding {
    /// The node is in a component: from now on it has something to lose.
    pub fn over(self) {
        let line = format!("{}\n", self.last);
        if let Err(error) = durable::replace_file(&self.path, 0o644, line.as_bytes()) {
            tracing::error!(
                path = %self.path.display(), %error,
                "cannot note that the cluster is founded: remove its second line, or a start after a \
                 lost disk may found it again"
            );
        }
    }
}

/// Takes the next incarnation: the wall clock's nanoseconds, or one more than the last if the
/// clock was set back. Without a data directory there is no last. A node that knows of no other
/// (`alone`) would be a cluster of its own: with an empty folder only a mark permits that.
pub(crate) fn next(data_dir: Option<&Path>, alone: bool) -> Result<Life, StartError> {
    let now = wall_clock();
    let Some(directory) = data_dir else {
        return Ok(Life { incarnation: Incarnation(now), founding: None, data_dir: None });
    };
    let wrap = |source| StartError::DataDir { path: directory.into(), source };
    durable::make_folder(directory).map_err(wrap)?;
    let lock = durable::lock(directory, "lock").map_err(|error| match error {
        TryLockError::WouldBlock => StartError::DataDirTaken(directory.into()),
        TryLockError::Error(source) => wrap(source),
    })?;
    let path = directory.join(FILE);
    let (last, marked) = match fs::read_to_string(&path) {
        Ok(text) => {
            let (last, marked) =
                read(&text).ok_or_else(|| StartError::Incarnation(path.clone()))?;
            (Some(last), marked)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (None, founder::made(directory)),
        Err(source) => return Err(wrap(source)),
    };
    let next = now.max(last.map_or(0, |last| last.saturating_add(RINGS)));
    let counting = marked.filter(|made| founder::counts(*made, Time(now)));
    if alone && last.is_none() && counting.is_none() {
        return Err(StartError::Unfounded(directory.into()));
    }
    let mark = counting.map_or(String::new(), |made| format!("founder {made}\n"));
    if counting.is_none() && (last.is_none() || marked.is_some()) {
        let mark = if marked.is_some() { "older than a day" } else { "missing" };
        tracing::info!(
            data_dir = %directory.display(), mark,
            "this node asks to be taken in; a new cluster, without the mark of `steadfast init`, \
             begins when all its nodes are there"
        );
    }
    durable::replace_file(&path, 0o644, format!("{next}\n{mark}").as_bytes()).map_err(wrap)?;
    match fs::remove_file(directory.join(founder::FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrap(error)),
        _ => {}
    }
    let founding = counting.map(|_| Founding { path, last: next });
    Ok(Life { incarnation: Incarnation(next), founding, data_dir: Some(lock) })
}

/// The last incarnation, and when the mark was made of a cluster that is not founded yet.
fn read(text: &str) -> Option<(u64, Option<u64>)> {
    let (number, mark) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
    // The last number itself would leave no room for a next one.
    let last = number.parse().ok().filter(|&last| last < u64::MAX)?;
    let made = mark.strip_prefix("founder ").map(str::parse).transpose().ok()?;
    (mark.is_empty() || made.is_some()).then_some((last, made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_even_if_the_clock_was_set_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        fs::create_dir(&path).unwrap();
        let first = next(Some(&path), false).unwrap();
        assert!(
            matches!(next(Some(&path), false), Err(StartError::DataDirTaken(_))),
            "one at a time"
        );
        let ahead = first.incarnation.0 + 3_600_000_000_000;
        drop(first);
        fs::write(path.join(FILE), ahead.to_string()).unwrap();
        let second = next(Some(&path), false).unwrap();
        assert_eq!(second.incarnation, Incarnation(ahead + RINGS));
    }

    #[test]
    fn a_founder_is_one_until_it_was_in_a_component_however_often_it_starts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let mark =
            || fs::write(path.join(founder::FILE), founder::text(Time(wall_clock()))).unwrap();
        mark();
        drop(next(Some(path), false).unwrap().founding.expect("the mark counts"));
        let again =
            next(Some(path), false).unwrap().founding.expect("nothing came of the first start");
        assert!(!path.join(founder::FILE).exists());
        again.over();
        assert!(next(Some(path), false).unwrap().founding.is_none());
        mark();
        assert!(
            next(Some(path), false).unwrap().founding.is_none(),
            "a mark that was copied again"
        );
        fs::write(path.join(FILE), "1\nfounder 1\n").unwrap();
        assert!(next(Some(path), false).unwrap().founding.is_none(), "the mark is old");
    }

    #[test]
    fn an_empty_folder_without_a_mark_may_be_one_that_was_lost() {
        let directory = tempfile::tempdir().unwrap();
        let alone = next(Some(directory.path()), true).unwrap_err().to_string();
        assert!(alone.contains("--found"), "{alone}");
        let other = tempfile::tempdir().unwrap();
        next(Some(other.path()), true).unwrap_err();
        fs::write(other.path().join(founder::FILE), "1\n").unwrap();
        next(Some(other.path()), true).expect_err("the mark is old");
        founder::mark(other.path()).unwrap();
        assert!(next(Some(other.path()), true).unwrap().founding.is_some(), "as the error says");
        founder::mark(other.path()).expect_err("it has a history");
        assert!(next(Some(directory.path()), false).unwrap().founding.is_none());
        assert!(next(Some(directory.path()), true).is_ok(), "it had a life");
    }

    #[test]
    fn a_file_that_holds_no_number_is_refused_with_the_remedy() {
        let directory = tempfile::tempdir().unwrap();
        for text in ["garbage", "", "1\ngarbage\n", "1\nfounder x\n"] {
            fs::write(directory.path().join(FILE), text).unwrap();
            let error = next(Some(directory.path()), false).unwrap_err().to_string();
            assert!(error.contains("incarnation") && error.contains("remove it"), "{error}");
        }
    }
}
