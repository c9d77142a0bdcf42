//! Processor time of a process, and of one of this process's threads.

use std::path::PathBuf;

use rustix::param::clock_ticks_per_second;
use rustix::process::Pid;
use rustix::thread::gettid;
use wire::Duration;

use crate::MonitorError;
use crate::counter::{Counter, first_number};

/// A process, with all its threads, those that have ended too. Resolution: a tick, 10 ms by
/// default.
#[derive(Debug)]
pub struct Process(Counter);

impl Process {
    /// Opens the process that has this id now. The clock reports that process alone: a later
    /// process of the same id is another file.
    ///
    /// # Errors
    /// There is no such process.
    pub fn open(id: Pid) -> Result<Process, MonitorError> {
        let path = PathBuf::from(format!("/proc/{}/stat", id.as_raw_nonzero()));
        Ok(Process(Counter::open(path)?))
    }

    /// Returns the processor time that the process has used.
    ///
    /// # Errors
    /// It has ended.
    pub fn used(&self) -> Result<Duration, MonitorError> {
        let ticks = clock_ticks_per_second();
        self.0.read(|text| parse_process(text, ticks))
    }
}

/// The program's name stands in brackets, and may have brackets and spaces itself. After it, user
/// and system time are the 12th and 13th columns.
fn parse_process(text: &str, ticks_per_second: u64) -> Option<Duration> {
    let (_, columns) = text.rsplit_once(')')?;
    let mut columns = columns.split_ascii_whitespace().skip(11);
    let mut next = || columns.next()?.parse::<u64>().ok();
    let used = next()? + next()?;
    Some(Duration::from_nanos(used.checked_mul(1_000_000_000)? / ticks_per_second))
}

/// A thread of this process. Resolution: a nanosecond.
#[derive(Debug)]
pub struct Thread(Counter);

impl Thread {
    /// The one that asks. Any thread of this process may read it.
    ///
    /// # Errors
    /// The kernel keeps no such figures (`CONFIG_SCHED_INFO`).
    pub fn current() -> Result<Thread, MonitorError> {
        let id = gettid();
        let path = PathBuf::from(format!("/proc/self/task/{}/schedstat", id.as_raw_nonzero()));
        Ok(Thread(Counter::open(path)?))
    }

    /// Returns the processor time that the thread has used.
    ///
    /// # Errors
    /// It has ended.
    pub fn used(&self) -> Result<Duration, MonitorError> {
        self.0.read(first_number).map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::getpid;

    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_hides_nothing() {
        let text = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0\n";
        assert_eq!(parse_process(text, 100), Some(Duration::from_millis(1_750)));
        assert_eq!(parse_process("42 (a) S 1 2", 100), None);
    }

    #[test]
    fn who_works_uses_time() {
        let (thread, process) = (Thread::current().unwrap(), Process::open(getpid()).unwrap());
        let (began, all) = (thread.used().unwrap(), process.used().unwrap());
        // Ends when the thread has worked for so long, however long that takes.
        while thread.used().unwrap() < began + Duration::from_millis(30) {}
        assert!(process.used().unwrap() > all);
    }

    #[test]
    fn who_has_ended_uses_nothing_more_and_says_so() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Process::open(Pid::from_child(&child)).unwrap();
        process.used().unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(process.used().is_err());
    }
}
