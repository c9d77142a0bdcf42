//! The mark of a founder: a file in the data directory of each node of a new cluster.
//!
//! A node whose data directory is empty may have lost it, and with it what it answered. Only
//! `steadfast init`, which makes the nodes' folders, knows that a cluster is new, and says so once:
//! by this file, which the node's first start removes. It counts for a day, so that the folder that
//! was made then founds no second cluster when it is copied to a host whose disk was lost.

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

/// Whether this data directory has the mark of a cluster that is new.
pub fn counts(data_dir: &Path, now: Time) -> bool {
    let text = std::fs::read_to_string(data_dir.join(FILE)).unwrap_or_default();
    let made = text.trim().parse::<u64>().ok();
    // Hosts may disagree a little about the time.
    let second = now.0 / 1_000_000_000;
    made.is_some_and(|made| second.abs_diff(made) < COUNTS.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_for_a_day_and_nothing_else_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let now = Time(1_800_000_000_000_000_000);
        assert!(!counts(folder.path(), now), "there is none");
        std::fs::write(folder.path().join(FILE), text(now)).unwrap();
        let hours = |hours: u32| Duration::from_secs(3_600) * hours;
        assert!(counts(folder.path(), now + hours(23)));
        assert!(!counts(folder.path(), now + hours(25)));
        std::fs::write(folder.path().join(FILE), "yes").unwrap();
        assert!(!counts(folder.path(), now));
    }
}
