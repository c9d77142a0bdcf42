//! The audit log: who asked this node to change something, or to give a state away, and what became
//! of it. One line of JSON each, in a file that only grows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use job::Command as JobCommand;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::Answered;
use crate::message::Request;

/// At this size the file becomes `audit.log.1`, in place of the one before.
const LARGEST: u64 = 16 << 20;

/// The most characters of a request that are kept.
const LONGEST: usize = 4_096;

/// The file.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    file: Mutex<File>,
}

/// A request, by whom and when, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// The user of this host, or the name in a certificate.
    pub who: String,
    /// The request, without the values of environment variables.
    pub asked: Value,
    /// Why it was refused; `None`: it was done.
    pub refused: Option<String>,
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
    /// It cannot be written: the disk is full, or gone.
    pub fn add(&self, entry: &AuditEntry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.metadata()?.len() + line.len() as u64 > LARGEST {
            let mut last = self.path.clone().into_os_string();
            last.push(".1");
            fs::rename(&self.path, last)?;
            *file = append_to(&self.path)?;
        }
        file.write_all(&line)
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// The line about a request; `None` for one that only looks.
pub(super) fn asked(request: &Request) -> Option<Value> {
    use Request::*;
    let looks = match request {
        Status {} | Poisoned { .. } | Events { .. } | Deployments {} | Registry { .. } => true,
        Jobs { .. } | Assignment { .. } => true,
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
        ),
        Move { .. } | Restyle { .. } | Save { .. } | Restore { .. } | Discard { .. } => false,
        Key { .. }
        | FinishUpgrade {}
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
    Some(match text.char_indices().nth(LONGEST) {
        Some((end, _)) => json!({ "begins": text[..end] }),
        None => asked,
    })
}

/// Environment variables often have passwords.
fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                match field {
                    Value::Object(variables) if key == "environment" => {
                        variables.values_mut().for_each(|it| *it = "hidden".into());
                    }
                    field => hide(field),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(hide),
        _ => {}
    }
}

/// The reason why a request was refused, if it was. Its connection may have broken meanwhile.
pub(super) fn refused(answered: &io::Result<Answered>) -> Option<String> {
    match answered {
        Ok(Answered::Done) => None,
        Ok(Answered::Refused(why)) => Some(why.clone()),
        Err(error) => Some(format!("the answer was not read to its end: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use wire::NodeId;

    use super::*;

    #[test]
    fn what_changes_something_is_a_line_and_what_looks_is_none() {
        assert_eq!(asked(&Request::Status {}), None);
        let drain = asked(&Request::Drain { node: NodeId(2) }).unwrap();
        assert_eq!(drain.to_string(), r#"{"drain":{"node":2}}"#);
    }

    #[test]
    fn values_of_environment_variables_are_hidden() {
        let run = r#"{"run":{"group":"a","command":["x"],"environment":{"PASSWORD":"geheim"}}}"#;
        let asked = asked(&serde_json::from_str(run).unwrap()).unwrap().to_string();
        assert!(asked.contains("PASSWORD") && !asked.contains("geheim"), "{asked}");
    }

    #[test]
    fn the_file_grows_and_begins_anew_when_it_is_large() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let entry = |text: usize| AuditEntry {
            time: 1,
            who: "uid 0".into(),
            asked: json!({ "begins": "x".repeat(text) }),
            refused: None,
        };
        AuditLog::open(&path).unwrap().add(&entry(1)).unwrap();
        let log = AuditLog::open(&path).unwrap();
        log.add(&entry(2)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
        log.add(&entry(LARGEST as usize)).unwrap();
        let last = folder.path().join("audit.log.1");
        assert_eq!(fs::read_to_string(last).unwrap().lines().count(), 2);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
    }
}
