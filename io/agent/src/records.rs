//! Which processes were begun, for an agent that comes after one that was killed.
//!
//! ```text
//! RUNTIME/LIFE-JOB-RANK-START    "TOKEN PID BEGAN WELCOMED": its token, the process, when it began, and
//!                                whether the rank was let in (1) or not yet (0)
//! ```
//!
//! With a token alone, the process was about to begin. A record goes when its start is over.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use job::Key;
use rustix::process::{Pid, Signal, kill_process_group};
use wire::Incarnation;
use wire::rank::TOKEN;

/// The records of one life of a node.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    folder: PathBuf,
    life: Incarnation,
}

/// A start that an earlier agent has begun.
pub(crate) struct Record {
    pub key: Key,
    pub token: [u8; TOKEN],
    /// Its process, if it lives.
    pub pid: Option<Pid>,
    /// It was let in.
    pub welcomed: bool,
}

impl Records {
    /// Those of this life. Processes of earlier ones are ended: their starts are over.
    pub fn open(folder: &Path, life: Incarnation) -> io::Result<(Records, Vec<Record>)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let Some((of, key)) = path.file_name().and_then(|name| parse(name.to_str()?)) else {
                continue;
            };
            let record = fs::read_to_string(&path).ok().and_then(|text| read(&text));
            let (token, pid, welcomed) = record.unwrap_or_default();
            if of == life {
                found.push(Record { key, token, pid, welcomed });
            } else {
                if let Some(pid) = pid {
                    let _ = kill_process_group(pid, Signal::KILL);
                }
                fs::remove_file(&path)?;
            }
        }
        Ok((Records { folder: folder.into(), life }, found))
    }

    fn path(&self, Key { job, rank, start }: Key) -> PathBuf {
        self.folder.join(format!("{:x}-{job:x}-{rank:x}-{start:x}", self.life.0))
    }

    /// A process is about to begin, or has begun.
    pub fn write(
        &self,
        key: Key,
        token: &[u8; TOKEN],
        pid: Option<Pid>,
        welcomed: bool,
    ) -> io::Result<()> {
        let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        let line = match pid {
            Some(pid) => {
                let began = began(pid).unwrap_or(0);
                format!("{token} {} {began} {}\n", pid.as_raw_nonzero(), u8::from(welcomed))
            }
            None => format!("{token}\n"),
        };
        let (path, new) = (self.path(key), self.folder.join("record.new"));
        let mut file =
            fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(line.as_bytes())?;
        fs::rename(new, path)
    }

    /// The start is over.
    pub fn remove(&self, key: Key) {
        let _ = fs::remove_file(self.path(key));
    }
}

fn parse(name: &str) -> Option<(Incarnation, Key)> {
    let mut numbers = name.split('-').map(|number| u64::from_str_radix(number, 16));
    let mut next = || numbers.next()?.ok();
    let (life, job, rank, start) = (next()?, next()?, next()?, next()?);
    let rank = u32::try_from(rank).ok()?;
    Some((Incarnation(life), Key { job, rank, start }))
}

/// The token; the process, if it is still the one that began then; and whether it was let in.
fn read(text: &str) -> Option<([u8; TOKEN], Option<Pid>, bool)> {
    let mut words = text.split_whitespace();
    let (token, mut bytes) = (words.next()?, [0; TOKEN]);
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(token.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    let (Some(pid), Some(then)) = (words.next(), words.next()) else {
        return Some((bytes, None, false));
    };
    let pid = Pid::from_raw(pid.parse().ok()?)?;
    let lives = began(pid) == then.parse::<u64>().ok();
    Some((bytes, lives.then_some(pid), words.next() == Some("1")))
}

/// When a process began, in ticks since the host did: tells it from another one of the same number.
fn began(pid: Pid) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The program's name is in brackets, and may have spaces.
    let (_, rest) = stat.rsplit_once(')')?;
    // The 22nd field, of which the third comes first here.
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn a_later_agent_finds_what_runs_and_ends_what_is_of_an_earlier_life() {
        let folder = tempfile::tempdir().unwrap();
        let child = || {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped()).process_group(0).spawn().unwrap()
        };
        let (mut one, mut other) = (child(), child());
        let (old, _) = Records::open(folder.path(), Incarnation(1)).unwrap();
        let (new, _) = Records::open(folder.path(), Incarnation(2)).unwrap();
        let key = |start| Key { job: 1, rank: 0, start };
        let token = [7; TOKEN];
        old.write(key(1), &token, Some(Pid::from_child(&one)), true).unwrap();
        new.write(key(2), &token, Some(Pid::from_child(&other)), true).unwrap();
        new.write(key(3), &token, None, false).unwrap();
        let (_, mut found) = Records::open(folder.path(), Incarnation(2)).unwrap();
        assert!(!one.wait().unwrap().success(), "it is of an earlier life");
        found.sort_by_key(|record| record.key);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].key, found[0].token), (key(2), token));
        assert_eq!(found[0].pid, Some(Pid::from_child(&other)));
        assert_eq!((found[1].key, found[1].pid), (key(3), None));
        assert!(found[0].welcomed && !found[1].welcomed);
        other.kill().unwrap();
        other.wait().unwrap();
        let (records, found) = Records::open(folder.path(), Incarnation(2)).unwrap();
        assert!(found.iter().all(|record| record.pid.is_none()), "it has ended");
        records.remove(key(2));
        assert_eq!(Records::open(folder.path(), Incarnation(2)).unwrap().1.len(), 1);
    }
}
