//! How a rank begins: its process, while its state is read; and how it is let in.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::Child;
use std::thread;

use job::{End, Key, Task};
use os::clock::monotonic;
use rustix::process::Pid;
use wire::rank::{Frame, TOKEN, Welcome};
use wire::{Duration, Time};

use super::Driver;
use super::rank::{Rank, wall};
use crate::event::Event;
use crate::images::{self, RestoreError, Restored};
use crate::link::Link;
use crate::prints;
use crate::process;
use crate::program::{self, Digested, Look, Stamp};
use crate::warm::Forked;

/// How long a rank is expected to live, for checkpoints as they pay.
const AGE: Duration = Duration::from_secs(24 * 3_600);

/// Letters of a reason for which a rank could not begin.
const LONGEST: usize = 300;

fn not_started(why: &str) -> End {
    End::NotStarted(why.chars().take(LONGEST).collect())
}

/// A start that has begun.
enum Process {
    Child(Child),
    Forked(Forked),
}

impl Process {
    fn pid(&self) -> Pid {
        match self {
            Process::Child(child) => Pid::from_child(child),
            Process::Forked(forked) => forked.pid,
        }
    }
}

impl Driver {
    /// A rank is to start: it does when it is known that this host has its program.
    pub(super) fn start(&mut self, task: Task) {
        match self.programs.look(&task.spec) {
            Look::Right => {
                if let Err(error) = self.begin(&task) {
                    self.ranks.remove(&task.key());
                    self.cannot_start(&task, &error.to_string());
                }
            }
            Look::Wrong(why) => self.cannot_start(&task, &why),
            Look::Unread(path) => {
                self.reading.entry(task.key()).or_insert(false);
                let (events, own) = (self.events.clone(), Box::new(task.clone()));
                let body = move || {
                    let read = program::read(&path);
                    let _ = events.send(Event::Read(own, path, read));
                };
                let spawned = thread::Builder::new().name("steadfast read".into()).spawn(body);
                if let Err(error) = spawned {
                    self.reading.remove(&task.key());
                    self.cannot_start(&task, &error.to_string());
                }
            }
        }
    }

    /// A program was read. The start may be over by now.
    pub(super) fn read(&mut self, task: Task, path: PathBuf, read: io::Result<(Stamp, Digested)>) {
        if !self.reading.contains_key(&task.key()) {
            return;
        }
        match read {
            Ok(read) => {
                self.programs.learn(path, read);
                self.start(task);
            }
            Err(error) => self.cannot_start(&task, &format!("{}: {error}", path.display())),
        }
    }

    fn cannot_start(&mut self, task: &Task, why: &str) {
        tracing::warn!(job = task.spec.name, rank = task.rank, why, "a rank cannot start");
        self.reading.remove(&task.key());
        self.agent.handle_ended(task.key(), not_started(why), wall());
    }

    /// The process begins while its state is read.
    fn begin(&mut self, task: &Task) -> io::Result<()> {
        let Key { job, rank, start } = task.key();
        if let Some((place, root)) = task.from {
            let folder = images::folder_of(&self.options.folder, job, rank);
            let (events, key) = (self.events.clone(), task.key());
            let body = move || {
                let restored = images::restore(&folder, place, root);
                let _ = events.send(Event::Restored(key, restored));
            };
            thread::Builder::new().name("steadfast read".into()).spawn(body)?;
        }
        let (begun, asks) = (wall(), task.spec.ranks > 1 && self.post.ask(task.key()));
        let (token, process) = match self.fork(task)? {
            Some((token, forked)) => (token, Process::Forked(forked)),
            None => self.spawn(task)?,
        };
        let pid = process.pid();
        let mut new = Rank::new(token, Some(pid), Some(task.clone()));
        (new.moments.begun, new.stall.most) = (begun, task.spec.stall);
        (new.reads, new.asks) = (task.from.is_some(), asks);
        new.owes_save = self.reading.remove(&task.key()).unwrap_or(false);
        self.ranks.insert(task.key(), new);
        let forked = matches!(process, Process::Forked(_));
        let (name, number) = (&task.spec.name, pid.as_raw_nonzero());
        tracing::info!(job = name, rank, start, pid = number, forked, "started");
        let events = self.events.clone();
        match process {
            Process::Child(child) => process::watch_child(task.key(), child, events)?,
            Process::Forked(Forked { pid, status }) => {
                process::watch_forked(task.key(), pid, status, events)?;
            }
        }
        self.records.write(task.key(), &token, Some(pid), false).inspect_err(|_| process::kill(pid))
    }

    /// A start by a process of its own.
    fn spawn(&mut self, task: &Task) -> io::Result<([u8; TOKEN], Process)> {
        let (token, prints) = self.prepare(task)?;
        let child = process::start(task, (&self.socket, &self.options.folder, &token), prints)
            .map_err(|error| io::Error::other(format!("{}: {error}", task.spec.command[0])))?;
        Ok((token, Process::Child(child)))
    }

    /// A start by the job's warm process, if there is one.
    fn fork(&mut self, task: &Task) -> io::Result<Option<([u8; TOKEN], Forked)>> {
        if !self.warm.is_ready(task) {
            return Ok(None);
        }
        let (token, prints) = self.prepare(task)?;
        let variables =
            process::variables(task, (&self.socket, &self.options.folder, &token), &prints.0)?;
        Ok(self.warm.fork(task, &variables, &prints).map(|forked| (token, forked)))
    }

    /// A new token, which is in the records, and the files to print to.
    fn prepare(&self, task: &Task) -> io::Result<([u8; TOKEN], (File, File))> {
        let Key { job, rank, .. } = task.key();
        let token = *os::random::secret()?.expose();
        self.records.write(task.key(), &token, None, false)?;
        let folder = &self.options.folder;
        let prints = prints::open(
            &images::log_of(folder, job, rank),
            &images::errors_of(folder, job, rank),
        )?;
        Ok((token, prints))
    }

    /// A rank computes. When all of its job do that are here, the next start of any may be a quick one.
    pub(super) fn warm_up(&mut self, job: u64) {
        let mut ranks = self.ranks.iter().filter(|(key, _)| key.job == job).map(|(_, rank)| rank);
        let spec = ranks.clone().find_map(|rank| rank.task.as_ref()).map(|task| task.spec.clone());
        if let Some(spec) = spec
            && ranks.all(|rank| rank.moments.computes != Time::ZERO)
        {
            self.warm.begin(job, &spec);
        }
    }

    /// A state is read. If it is damaged, another one is to be used.
    pub(super) fn restored(&mut self, key: Key, restored: Result<Restored, RestoreError>) {
        let Some(rank) = self.ranks.get_mut(&key) else { return };
        rank.reads = false;
        match restored {
            Ok(state) => {
                rank.moments.restored = wall();
                rank.state = Some(state);
                self.welcome(key);
            }
            Err(error) => {
                let from = rank.task.as_ref().and_then(|task| task.from);
                let Some((newest, _)) = from else { return };
                tracing::warn!(place = %newest, %error, "a state cannot be restored");
                rank.pid.into_iter().for_each(process::kill);
                let end = match &error {
                    RestoreError::Damaged(damage) => {
                        self.agent.handle_damaged(damage.place().unwrap_or(newest));
                        End::Damaged
                    }
                    // That says nothing of the image: there may be no memory, or no descriptor.
                    RestoreError::Io(_) => End::NotStarted(error.to_string()),
                };
                self.agent.handle_ended(key, end, wall());
            }
        }
    }

    pub(super) fn came(&mut self, link: Link, token: [u8; TOKEN]) {
        let found = self.ranks.iter_mut().find(|(_, rank)| rank.token == token);
        let Some((key, rank)) = found else {
            let why = "this start of the rank is over, or was never here";
            return link.tell(&Frame::Farewell(why.into()), None);
        };
        let key = *key;
        if rank.task.is_none() && !rank.welcomed {
            // An earlier agent had its state, and this one does not: it begins once more.
            let why = "the agent was killed before this start had begun";
            link.tell(&Frame::Farewell(why.into()), None);
            return rank.pid.into_iter().for_each(process::kill);
        }
        rank.link = Some(link);
        self.welcome(key);
    }

    /// Lets a rank in, once it is there, and its state, and what its earlier starts have chosen.
    pub(super) fn welcome(&mut self, key: Key) {
        let Some(rank) = self.ranks.get_mut(&key).filter(|rank| !rank.reads && !rank.asks) else {
            return;
        };
        rank.stall.reached(monotonic());
        let Some(link) = &rank.link else { return };
        if !std::mem::replace(&mut rank.welcomed, true) {
            let written = self.records.write(key, &rank.token, rank.pid, true);
            if let Err(error) = written {
                tracing::warn!(%error, "a later agent will have this start begin once more");
            }
        }
        let state = rank.state.take();
        let (after, noted, pieces) = self.post.begin(key);
        let spec = rank.task.as_ref().map(|task| &task.spec);
        let from = rank.task.as_ref().and_then(|task| task.from);
        let welcome = Welcome {
            version: link.version,
            restored: state.is_some(),
            full: spec.is_some_and(|spec| spec.full),
            blocking: spec.is_some_and(|spec| spec.blocking),
            regrouped: rank.task.as_ref().is_some_and(|task| task.regrouped),
            rank: key.rank,
            ranks: spec.map_or(0, |spec| spec.ranks),
            job: key.job,
            start: key.start,
            step: state.as_ref().map_or(0, |state| state.step),
            every: spec.map(|spec| spec.every).unwrap_or_default(),
            age_us: u64::try_from(AGE.as_micros()).unwrap_or(u64::MAX),
            generation: from.map_or(0, |(place, _)| place.generation),
            after,
            noted,
            arrays: state.as_ref().map(|state| state.arrays.clone()).unwrap_or_default(),
        };
        link.tell(&Frame::Welcome(welcome), state.as_ref().map(|state| &state.file));
        pieces.into_iter().for_each(|piece| link.tell(&Frame::Choices(piece), None));
        // It may have been away when it was told.
        if let Some(oldest) = self.agent.oldest(key) {
            link.tell(&Frame::Oldest(oldest), None);
        }
        if std::mem::take(&mut rank.owes_save) {
            rank.wish_for_save();
        }
    }
}
