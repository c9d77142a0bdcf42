//! Makes a process slow in ways that users meet: a quota of processor time, or stops that it does
//! not choose.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use harness::Outcome;
use harness::background::Background;
use harness::quota::ControlGroup;

/// How a process is made slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// A quota of one processor's time (control groups), as `CPUQuota=` of systemd and the limits
    /// of containers set it.
    Quota,
    /// Stopped and continued by signals, as a busy host or a hypervisor does it.
    Stop,
}

/// Holds a process back until it is dropped.
pub enum Brake {
    Quota(ControlGroup, u32),
    Stop {
        /// Until this is dropped.
        _cycle: Background,
    },
}

impl Brake {
    /// From now on the process runs `run` percent of the time: of a processor's, in periods of
    /// `slice`.
    pub fn hold(by: By, process: u32, run: u32, slice: Duration) -> Outcome<Brake> {
        match by {
            By::Quota => {
                let group = ControlGroup::new("slow")?;
                group.limit(run, slice)?;
                group.take(process)?;
                Ok(Brake::Quota(group, process))
            }
            By::Stop => {
                let process = i32::try_from(process).ok().and_then(Pid::from_raw);
                let process = process.ok_or("no process id")?;
                let cycle = move |ended: &_| stop(process, slice * run / 100, slice, ended);
                Ok(Brake::Stop { _cycle: Background::start(cycle) })
            }
        }
    }
}

/// Stops a process again and again, and leaves it running.
fn stop(process: Pid, running: Duration, slice: Duration, ended: &AtomicBool) {
    while !ended.load(Ordering::Acquire) && kill_process(process, Signal::STOP).is_ok() {
        thread::sleep(slice - running);
        if kill_process(process, Signal::CONT).is_err() {
            break; // It has ended.
        }
        thread::sleep(running);
    }
}

impl Drop for Brake {
    fn drop(&mut self) {
        if let Brake::Quota(group, process) = self {
            group.release(*process);
        }
    }
}
