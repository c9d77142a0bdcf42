//! The audit log: who asked this node to change something, or to give a state away, and what became
//! of it. One line of JSON before a request is carried out, and one when it has ended: a request
//! that never ends has left a line, too.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cells::Command as CellCommand;
use job::Command as JobCommand;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::answer::Answered;
use crate::cell::is_by_people;
use crate::message::Request;

/// At this size the file becomes `audit.log.1`, the newest of the old ones.
const LARGEST: u64 = 16 << 20;

/// Old files that are kept: a flood of requests does not push all former ones out at once.
const OLD: usize = 8;

/// The most characters of a request that are kept, and of a reason.
const LONGEST: usize = 4_096;

/// The file, and the old ones beside it.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    file: Mutex<File>,
}

/// A step of a request: when, by whom, and which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// The connection's number since the node's start. It joins the steps of a request, for the
    /// requests of a connection are carried out one by one.
    pub connection: u64,
    /// The user of this host, or the name in a certificate.
    pub who: String,
    /// The step.
    #[serde(flatten)]
    pub step: AuditStep,
}

/// A request's beginning, or its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditStep {
    /// The request, without the values of environment variables. It is about to be carried out.
    Asked(Value),
    /// It was done.
    #[serde(serialize_with = "truth")]
    Done,
    /// It was refused; the first line of the reason.
    Refused(String),
}

/// A reader of the file finds `"done":true`.
fn truth<S: Serializer>(to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(true)
}

impl AuditLog {
    /// Goes on in this file, which only the node's user can read.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> io::Result<AuditLog> {
        let file = Mutex::new(append_to(path)?);
        Ok(AuditLog { path: path.into(), file })
    }

    /// Adds a line; it is in the file when this returns.
    ///
    /// # Errors
    /// It cannot be written: the disk is full, or gone. Or it is written, and no new file could be
    /// begun in place of one that is too large.
    pub fn add(&self, entry: &AuditEntry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // The line is worth more than the limit: it is written also where there is no new file.
        let room = self.make_room(&mut file, line.len() as u64);
        if ends_within_a_line(&file) {
            line.insert(0, b'\n');
        }
        file.write_all(&line).and(room)
    }

    /// Begins a new file if this one becomes too large. After an error this one goes on.
    fn make_room(&self, file: &mut File, bytes: u64) -> io::Result<()> {
        if file.metadata()?.len() + bytes <= LARGEST {
            return Ok(());
        }
        // Opened before anything is renamed: descriptors and space may be short.
        let (new, newest) = (self.beside("new"), self.old(1));
        let opened = append_to(&new)?;
        self.age()?;
        match fs::rename(&self.path, &newest) {
            // Somebody took the file away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        if let Err(error) = fs::rename(&new, &self.path) {
            // The open file must not be an old one. If this fails too, the next turn mends it.
            let _ = fs::rename(&newest, &self.path);
            return Err(error);
        }
        *file = opened;
        Ok(())
    }

    /// Renames old files, so that number 1 is free. Those behind a free number stay: a turn that
    /// fails halfway, again and again, pushes none out.
    fn age(&self) -> io::Result<()> {
        let is_free = |number: &usize| matches!(self.old(*number).try_exists(), Ok(false));
        let free = (1..OLD).find(is_free).unwrap_or(OLD);
        (1..free).rev().try_for_each(|number| fs::rename(self.old(number), self.old(number + 1)))
    }

    fn old(&self, number: usize) -> PathBuf {
        self.beside(&number.to_string())
    }

    fn beside(&self, end: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".");
        path.push(end);
        path.into()
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// A write that failed, or a crash, may have left half a line. Where this cannot be seen, it is so:
/// an empty line does no harm.
fn ends_within_a_line(file: &File) -> bool {
    let mut last = *b"\n";
    let read = file.metadata().and_then(|it| match it.len().checked_sub(1) {
        Some(at) => file.read_exact_at(&mut last, at),
        None => Ok(()),
    });
    read.is_err() || last != *b"\n"
}

/// The line about a request; `None` for one that only looks.
pub(super) fn asked(request: &Request) -> Option<Value> {
    use Request::*;
    let looks = match request {
        Status {} | Poisoned { .. } | Events { .. } | Deployments {} | Registry { .. } => true,
        Jobs { .. } | Assignment { .. } | Cell { .. } | TellNeighbours(_) => true,
        HandlerCalls { .. } | EndHandlerCall(_) => true,
        // The process beside the node tells much more than people do.
        TellCell(command) => {
            !is_by_people(command) || matches!(**command, CellCommand::Want { .. })
        }
        State { bytes, .. } => !bytes,
        Deploy { dry, .. } => *dry,
        // Agents tell much more than people do.
        TellJobs(command) => !matches!(
            **command,
            JobCommand::Submit(_)
                | JobCommand::Kill { .. }
                | JobCommand::Resume { .. }
                | JobCommand::Forget { .. }
                | JobCommand::Loosen { .. }
                | JobCommand::Save { .. }
        ),
        Move { .. } | Restyle { .. } | Save { .. } | Restore { .. } | Discard { .. } => false,
        Key { .. }
        | FinishUpgrade {}
        | Welcome {}
        | Admit { .. }
        | Retire { .. }
        | GiveUpMove {}
        | Reload {}
        | Run(_)
        | StopProgram { .. }
        | Withdraw { .. } => false,
        Drain { .. } | Return { .. } | Bind { .. } | Unbind { .. } | Bench(_) => false,
    };
    if looks {
        return None;
    }
    let mut asked = serde_json::to_value(request).unwrap_or_default();
    hide(&mut asked);
    let text = asked.to_string();
    let begins = beginning(&text);
    Some(if begins.len() < text.len() { json!({ "begins": begins }) } else { asked })
}

fn beginning(text: &str) -> &str {
    text.char_indices().nth(LONGEST).map_or(text, |(end, _)| &text[..end])
}

/// Environment variables often have passwords. They are an object, or an array of pairs.
fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                match field {
                    Value::Object(variables) if key == "environment" => {
                        variables.values_mut().for_each(|it| *it = "hidden".into());
                    }
                    Value::Array(variables) if key == "environment" => {
                        variables.iter_mut().for_each(hide_in_pair);
                    }
                    field => hide(field),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(hide),
        _ => {}
    }
}

fn hide_in_pair(variable: &mut Value) {
    match variable {
        Value::Array(pair) => pair.iter_mut().skip(1).for_each(|it| *it = "hidden".into()),
        other => *other = "hidden".into(),
    }
}

/// The end of a request. Its connection may have broken meanwhile.
pub(super) fn ended(answered: &io::Result<Answered>) -> AuditStep {
    let why = match answered {
        Ok(Answered::Done) => return AuditStep::Done,
        Ok(Answered::Refused(why)) => why.clone(),
        Err(error) => format!("the answer was not read to its end: {error}"),
    };
    // A program's output is behind the first line, with all that it tells.
    AuditStep::Refused(beginning(why.lines().next().unwrap_or_default()).into())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use wire::NodeId;

    use super::*;

    fn entry(connection: u64) -> AuditEntry {
        AuditEntry { time: 1, connection, who: "uid 0".into(), step: AuditStep::Done }
    }

    fn log() -> (TempDir, PathBuf, AuditLog) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let log = AuditLog::open(&path).unwrap();
        (folder, path, log)
    }

    /// The next line does not fit into this file.
    fn fill(path: &Path) {
        fs::write(path, "x".repeat(LARGEST as usize - 1) + "\n").unwrap();
    }

    fn last_line(path: &Path) -> String {
        fs::read_to_string(path).unwrap().lines().last().unwrap().into()
    }

    #[test]
    fn what_changes_something_is_a_line_and_what_looks_is_none() {
        assert_eq!(asked(&Request::Status {}), None);
        let drain = asked(&Request::Drain { node: NodeId(2) }).unwrap();
        assert_eq!(drain.to_string(), r#"{"drain":{"node":2}}"#);
        let save = asked(&Request::TellJobs(JobCommand::Save { job: 1 }.into())).unwrap();
        assert_eq!(save.to_string(), r#"{"tell-jobs":{"save":{"job":1}}}"#);
    }

    #[test]
    fn values_of_environment_variables_are_hidden() {
        let run = r#"{"run":{"group":"a","command":["x"],"environment":{"PASSWORD":"geheim"}}}"#;
        let environment = vec![("PASSWORD".into(), "geheim".into())];
        let spec = job::Spec { environment, ..job::Spec::default() };
        let submit = Request::TellJobs(JobCommand::Submit(spec).into());
        for request in [serde_json::from_str(run).unwrap(), submit] {
            let asked = asked(&request).unwrap().to_string();
            assert!(asked.contains("PASSWORD") && !asked.contains("geheim"), "{asked}");
        }
    }

    #[test]
    fn a_reason_is_one_line_and_not_a_long_one() {
        let refused = |why: String| ended(&Ok(Answered::Refused(why)));
        let why = "it ended; its last lines:\n  the password is geheim";
        assert_eq!(refused(why.into()), AuditStep::Refused("it ended; its last lines:".into()));
        assert_eq!(refused("ä".repeat(9_999)), AuditStep::Refused("ä".repeat(LONGEST)));
        assert_eq!(refused(String::new()), AuditStep::Refused(String::new()));
    }

    #[test]
    fn the_steps_of_a_request_are_lines_of_its_connection() {
        let (_folder, path, log) = log();
        let asked = AuditStep::Asked(asked(&Request::Drain { node: NodeId(2) }).unwrap());
        for step in [asked, AuditStep::Done, AuditStep::Refused("why".into())] {
            log.add(&AuditEntry { step, ..entry(3) }).unwrap();
        }
        let head = r#"{"time":1,"connection":3,"who":"uid 0","#;
        let ends = [r#""asked":{"drain":{"node":2}}}"#, r#""done":true}"#, r#""refused":"why"}"#];
        let text = ends.map(|end| format!("{head}{end}\n")).concat();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn the_file_grows_and_begins_anew_when_it_is_large() {
        let (folder, path, log) = log();
        log.add(&entry(1)).unwrap();
        drop(log);
        let log = AuditLog::open(&path).unwrap();
        log.add(&entry(2)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
        for connection in 3..14 {
            OpenOptions::new().write(true).open(&path).unwrap().set_len(LARGEST).unwrap();
            log.add(&entry(connection)).unwrap();
        }
        let first = |path: &Path| {
            let mut start = vec![0; 26];
            File::open(path).unwrap().read_exact_at(&mut start, 0).unwrap();
            String::from_utf8(start).unwrap()
        };
        assert_eq!(first(&path), r#"{"time":1,"connection":13,"#);
        assert_eq!(first(&log.old(1)), r#"{"time":1,"connection":12,"#);
        assert_eq!(first(&log.old(OLD)), r#"{"time":1,"connection":5,""#);
        // The file itself, and nothing else beside the old ones.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1 + OLD);
    }

    #[test]
    fn where_no_new_file_can_be_opened_the_old_one_goes_on() {
        let (_folder, path, log) = log();
        fill(&path);
        fs::create_dir(log.beside("new")).unwrap();
        for connection in [10, 11] {
            log.add(&entry(connection)).unwrap_err();
            assert!(last_line(&path).contains(&format!("\"connection\":{connection},")));
        }
        assert!(!log.old(1).exists());
        fs::remove_dir(log.beside("new")).unwrap();
        log.add(&entry(12)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        assert!(last_line(&log.old(1)).contains("\"connection\":11,"));
    }

    #[test]
    fn where_old_files_cannot_be_renamed_entries_are_written_all_the_same() {
        let (_folder, path, log) = log();
        fill(&path);
        let blocks = |number| log.old(number).join("a file system of its own");
        (1..=OLD).for_each(|number| fs::create_dir_all(blocks(number)).unwrap());
        for connection in [10, 11] {
            log.add(&entry(connection)).unwrap_err();
            assert!(last_line(&path).contains(&format!("\"connection\":{connection},")));
        }
    }

    #[test]
    fn a_turn_that_fails_halfway_pushes_no_old_file_out() {
        let (_folder, _, log) = log();
        (1..=OLD).filter(|it| *it != 3).for_each(|it| fs::write(log.old(it), [it as u8]).unwrap());
        log.age().unwrap();
        let kept = (2..=OLD).map(|it| fs::read(log.old(it)).unwrap()[0]);
        assert_eq!(kept.collect::<Vec<_>>(), [1, 2, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_file_that_was_taken_away_does_not_stop_the_log() {
        let (_folder, path, log) = log();
        fill(&path);
        fs::remove_file(&path).unwrap();
        log.add(&entry(10)).unwrap();
        assert!(last_line(&path).contains("\"connection\":10,"));
    }

    #[test]
    fn half_a_line_does_not_spoil_the_next_one() {
        let (_folder, path, log) = log();
        fs::write(&path, r#"{"time":1,"conn"#).unwrap();
        log.add(&entry(10)).unwrap();
        log.add(&entry(11)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let whole = text.lines().map(serde_json::from_str::<Value>).map(|it| it.is_ok());
        assert_eq!(whole.collect::<Vec<_>>(), [false, true, true], "{text}");
    }
}
