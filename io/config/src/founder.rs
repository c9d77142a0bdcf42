//! The mark of a founder: a file in the data directory of each node of a new cluster.
//!
//! A node whose data directory is empty may have lost it, and with it what it answered. Only
//! `steadfast init`, which makes the nodes' folders, knows that a cluster is new, and says so once:
//! by this file. It counts for a day, so that the folder that was made then founds no second cluster
//! when it is copied to a host whose disk was lost.

use std::path::Path;

use wire::{Duration, Time};

/// The file's name.
pub const FILE: &str = "founder";

/// How long it counts.
pub const COUNTS: Duration = Duration::from_secs(24 * 3_600);

/// Its text: when it was made, in seconds since the Unix epoch.
pub fn text(now: Time) -> String {
    format!("{}\n", now.0 / 1_000_000_000)
}

/// When the mark in this data directory was made, if it has one.
pub fn made(data_dir: &Path) -> Option<u64> {
    std::fs::read_to_string(data_dir.join(FILE)).ok()?.trim().parse().ok()
}

/// Marks an empty data directory, or one that is made: the node in it begins a new cluster.
///
/// # Errors
/// It was in use, or the system's own.
pub fn mark(data_dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(data_dir)?;
    // A start that was refused has left its lock; an old mark counts no more.
    let is_used = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name() != FILE && entry.file_name() != "lock")
    };
    if std::fs::read_dir(data_dir)?.any(is_used) {
        let used = "it is not empty: a node with a history cannot begin a new cluster";
        return Err(std::io::Error::other(used));
    }
    std::fs::write(data_dir.join(FILE), text(Time(os::clock::wall_clock())))
}

/// Whether a mark that was made in this second counts now.
pub fn counts(made: u64, now: Time) -> bool {
    // Hosts may disagree a little about the time.
    (now.0 / 1_000_000_000).abs_diff(made) < COUNTS.as_secs()
}

/// Brings the mark along from the folder where the configuration was installed, which may be
/// read-only. A data directory that was in use gets none.
///
/// # Errors
/// The system's own.
pub fn bring(installed: &Path, data_dir: &Path) -> std::io::Result<()> {
    let (from, to) = (installed.join(FILE), data_dir.join(FILE));
    let in_use = std::fs::read_dir(data_dir).is_ok_and(|mut files| files.next().is_some());
    if in_use || !from.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(data_dir)?;
    std::fs::copy(from, to).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_for_a_day_and_nothing_else_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let now = Time(1_800_000_000_000_000_000);
        assert_eq!(made(folder.path()), None);
        std::fs::write(folder.path().join(FILE), text(now)).unwrap();
        let made_at = made(folder.path()).unwrap();
        let hours = |hours: u32| Duration::from_secs(3_600) * hours;
        assert!(counts(made_at, now + hours(23)));
        assert!(!counts(made_at, now + hours(25)));
        std::fs::write(folder.path().join(FILE), "yes").unwrap();
        assert_eq!(made(folder.path()), None);
    }

    #[test]
    fn it_is_brought_along_to_an_empty_data_directory_only() {
        let folder = tempfile::tempdir().unwrap();
        let [installed, empty, used] =
            ["etc", "empty", "used"].map(|name| folder.path().join(name));
        [&installed, &used].into_iter().for_each(|it| std::fs::create_dir(it).unwrap());
        bring(&installed, &empty).unwrap();
        assert!(!empty.exists(), "there is none to bring");
        std::fs::write(installed.join(FILE), "7").unwrap();
        std::fs::write(used.join("incarnation"), "1").unwrap();
        [&empty, &used].into_iter().for_each(|it| bring(&installed, it).unwrap());
        assert_eq!((made(&empty), made(&used)), (Some(7), None));
    }
}
