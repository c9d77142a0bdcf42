//! Makes a process slow in ways that users meet: a quota of processor time, or stops that it does not choose.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use harness::Outcome;
use harness::quota::ControlGroup;

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
    group: ControlGroup,
    process: u32,
}

impl Quota {
    fn set(process: u32, run: u32, slice: Duration) -> Outcome<Quota> {
        let group = ControlGroup::new("slow")?;
        group.limit(run, slice)?;
        group.take(process)?;
        Ok(Quota { group, process })
    }

    fn end(&self) {
        self.group.release(self.process);
    }
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
