//! A saved state's file: read, and told.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Serialize;
use steadfast::{AckLevel, Backup, Content, Durability, NodeId, RingId, Style, admin};
use wire::limits::MAX_BACKUP;
use wire::ordered::Form;

use super::super::Failure;

/// Reads a file, and looks at all of it.
pub fn read(path: &Path) -> Result<(Backup, Content), Failure> {
    let failed = |why: String| Failure::Failed(format!("{}: {why}", path.display()));
    let mut bytes = Vec::new();
    let limit = MAX_BACKUP as u64 + 1;
    File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(|error| failed(format!("cannot be read: {error}")))?;
    if bytes.len() > MAX_BACKUP {
        return Err(failed(format!("has more than {MAX_BACKUP} bytes: it is no saved state")));
    }
    Backup::decode(&bytes.into()).map_err(|error| failed(error.to_string()))
}

/// The content of a file, in summary.
#[derive(Debug, Serialize)]
pub struct Summary {
    file: String,
    group: String,
    cluster: String,
    node: NodeId,
    /// By the node's clock, in UTC.
    saved: String,
    style: Style,
    ack: AckLevel,
    durability: Durability,
    form: Form,
    epoch: u64,
    ring: RingId,
    sequence: u64,
    executed: u64,
    sessions: usize,
    /// Requests behind the state.
    logged: usize,
    /// The size of the saved state.
    bytes: usize,
    /// SHA-256 of the service's state, as the admin request `state` tells it of replicas.
    digest: Option<String>,
}

impl Summary {
    pub fn new(path: &Path, backup: &Backup, content: &Content) -> Summary {
        Summary {
            file: path.display().to_string(),
            group: backup.group.clone(),
            cluster: backup.cluster.clone(),
            node: backup.node,
            saved: moment(backup.saved),
            style: backup.options.style,
            ack: backup.options.ack,
            durability: backup.options.durability,
            form: backup.form,
            epoch: backup.place.epoch,
            ring: backup.place.ring,
            sequence: backup.place.sequence,
            executed: content.executed,
            sessions: content.sessions,
            logged: content.logged,
            bytes: backup.state.len(),
            digest: content.service.as_ref().map(|state| admin::digest(state)),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let Summary { group, cluster, node, saved, style, epoch, ring, sequence, .. } = self;
        let ack = format!("{:?}", self.ack).to_lowercase();
        let kept = format!("{:?}", self.durability).to_lowercase();
        let log = match self.logged {
            0 => String::new(),
            logged => format!(", the last {logged} in the log after the state"),
        };
        let digest = self.digest.as_deref().unwrap_or("the service's initial state");
        let mut text = String::new();
        for (name, what) in [
            ("file", format!("{}, complete", self.file)),
            ("group", format!("{group} of cluster {cluster}, {style}, ack {ack}, in {kept}")),
            ("saved", format!("{saved} by {node}")),
            ("place", format!("epoch {epoch}, {ring}, {sequence}")),
            ("calls", format!("{}{log}; {} sessions", self.executed, self.sessions)),
            ("state", format!("{} bytes with its sessions", self.bytes)),
            ("digest", digest.to_owned()),
        ] {
            writeln!(text, "{name:7} {what}").expect("a String takes everything");
        }
        text
    }

    /// In one line.
    pub fn line(&self) -> String {
        let Summary { file, group, node, executed, sessions, bytes, .. } = self;
        format!(
            "{group}: {bytes} bytes, {executed} calls, {sessions} sessions of {node}'s replica in {file}\n"
        )
    }
}

/// Microseconds since 1970 as people write it, in UTC.
pub fn moment(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Days since 1970 as a date. Years begin with March, so that a leap day is the last of one.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let in_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, in_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_as_people_write_it() {
        for (seconds, told) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_709_164_799, "2024-02-28T23:59:59Z"),
            (1_735_689_600, "2025-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(moment(seconds * 1_000_000 + 5), told);
        }
    }
}
