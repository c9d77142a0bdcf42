//! Makes a process slow in ways that users meet: a quota of processor time, or stops that it does not choose.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::Outcome;

/// How a process is made slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// A quota of one processor's time (control groups), as `CPUQuota=` of systemd and the limits of containers set it.
    Quota,
    /// Stopped and continued by signals, as a busy host or a hypervisor does it.
    Stop,
}

/// Holds a process back until it is dropped.
pub enum Brake {
    Quota(Quota),
    Stop(Stop),
}

impl Brake {
    /// From now on the process runs `run` percent of the time: of a processor's, in periods of `slice`.
    pub fn hold(by: By, process: u32, run: u32, slice: Duration) -> Outcome<Brake> {
        Ok(match by {
            By::Quota => Brake::Quota(Quota::set(process, run, slice)?),
            By::Stop => Brake::Stop(Stop::begin(process, run, slice)?),
        })
    }

    /// Why quotas cannot be set here, if so.
    pub fn no_quota() -> Option<String> {
        Group::new().err().map(|error| error.to_string())
    }
}

impl Drop for Brake {
    fn drop(&mut self) {
        match self {
            Brake::Quota(quota) => quota.end(),
            Brake::Stop(stop) => stop.end(),
        }
    }
}

/// A control group for the process.
pub struct Quota {
    group: Group,
    process: u32,
}

impl Quota {
    fn set(process: u32, run: u32, slice: Duration) -> Outcome<Quota> {
        let (period, quota) = (slice.as_micros(), slice.as_micros() * u128::from(run) / 100);
        if quota < 1_000 {
            return Err("the kernel grants no quota below 1 ms a period: raise --slice-ms".into());
        }
        let group = Group::new()?;
        if group.unified {
            fs::write(group.path.join("cpu.max"), format!("{quota} {period}"))?;
        } else {
            fs::write(group.path.join("cpu.cfs_period_us"), period.to_string())?;
            fs::write(group.path.join("cpu.cfs_quota_us"), quota.to_string())?;
        }
        fs::write(group.path.join("cgroup.procs"), process.to_string())?;
        Ok(Quota { group, process })
    }
}

impl Quota {
    fn end(&self) {
        // A process that has ended is in no group.
        let _ = fs::write(self.group.parent.join("cgroup.procs"), self.process.to_string());
    }
}

/// A control group of this lab's own, beside nothing that others use. It is removed when it is dropped.
struct Group {
    parent: PathBuf,
    path: PathBuf,
    /// Of version 2.
    unified: bool,
}

impl Group {
    fn new() -> Outcome<Group> {
        let (parent, unified) = parent()?;
        let path = parent.join(format!("steadfast-lab-{}", process::id()));
        let needs =
            |error| format!("no control group can be made in {}: {error}", parent.display());
        fs::create_dir(&path).map_err(needs)?;
        let group = Group { parent, path, unified };
        let knob = if unified { "cpu.max" } else { "cpu.cfs_quota_us" };
        match group.path.join(knob).exists() {
            true => Ok(group),
            false => {
                Err(format!("{} sets no quotas of processor time", group.parent.display()).into())
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It stays, empty, if somebody put a process there.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Where control groups for processor time are made, and whether they are of version 2.
fn parent() -> Outcome<(PathBuf, bool)> {
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    for mount in mounts.lines() {
        let fields: Vec<&str> = mount.split(' ').collect();
        let [_, at, kind, options, ..] = fields[..] else { continue };
        let has = |word: &str| options.split(',').any(|option| option == word);
        let line = match kind {
            "cgroup" if has("cpu") => own.lines().find(|line| {
                line.split(':').nth(1).is_some_and(|kinds| kinds.split(',').any(|it| it == "cpu"))
            }),
            "cgroup2" => own.lines().find(|line| line.starts_with("0::")),
            _ => continue,
        };
        let Some(path) = line.and_then(|line| line.splitn(3, ':').nth(2)) else { continue };
        let parent = Path::new(at).join(path.trim_start_matches('/'));
        let controls = fs::read_to_string(parent.join("cgroup.subtree_control"));
        if kind == "cgroup" || controls.is_ok_and(|it| it.split_whitespace().any(|it| it == "cpu"))
        {
            return Ok((parent, kind == "cgroup2"));
        }
    }
    Err("this process is in no control group that shares out processor time".into())
}

/// Stops the process again and again.
pub struct Stop {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Stop {
    fn begin(process: u32, run: u32, slice: Duration) -> Outcome<Stop> {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or("no process id")?;
        let end = Arc::new(AtomicBool::new(false));
        let ended = end.clone();
        let running = slice * run / 100;
        let cycle = move || {
            while !ended.load(Ordering::Acquire) && kill_process(pid, Signal::STOP).is_ok() {
                thread::sleep(slice - running);
                if kill_process(pid, Signal::CONT).is_err() {
                    break; // It has ended.
                }
                thread::sleep(running);
            }
        };
        let thread = Some(thread::Builder::new().name("brake".into()).spawn(cycle)?);
        Ok(Stop { end, thread })
    }
}

impl Stop {
    fn end(&mut self) {
        self.end.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It cannot panic, and leaves the process running.
            let _ = thread.join();
        }
    }
}
