//! Threads of a process, and the one place that decides their scheduling class.
//!
//! The sockets of a killed process close with its last thread: beside real-time hogs a single
//! ordinary one holds them open for some 80 ms. So where a node's helpers have a priority, each of
//! its threads has one, whoever has started it. A reservation is not inherited: what the data plane
//! starts would be ordinary.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{Builder, JoinHandle};

use rustix::thread::Pid;

use crate::realtime::{Grant, fifo};
use crate::sched::{self, Class};

/// The SCHED_FIFO priority of this process's helpers; 0: none.
static HELPERS: AtomicU8 = AtomicU8::new(0);

/// The helpers of this process have this priority from now on, beginning with the calling thread: all
/// that it starts inherits it. 0, or a refusal, changes nothing. Of several nodes in a process the
/// highest counts.
pub fn set_helper_priority(priority: u8) -> Grant {
    let grant = fifo(priority);
    if grant == Grant::InForce {
        HELPERS.fetch_max(priority, Ordering::Relaxed);
    }
    grant
}

/// While this lives, threads that the calling thread starts have a priority of their own.
#[derive(Debug)]
pub struct Inherited {
    before: Option<Class>,
}

impl Inherited {
    /// Begins with this SCHED_FIFO priority; 0, or a refusal, changes nothing. A refusal is told
    /// where the data-plane thread asks ([`Realtime::apply`](crate::realtime::Realtime::apply)).
    pub fn begin(priority: u8) -> Inherited {
        let before = sched::class(None).ok().filter(|_| priority > 0);
        let changed = before.is_some() && set_helper_priority(priority) == Grant::InForce;
        Inherited { before: before.filter(|_| changed) }
    }
}

impl Drop for Inherited {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // A thread may return to the class that it had.
            let _ = sched::set_class(None, before);
        }
    }
}

/// Starts a thread that helps: with the helpers' priority, or else with the class of the thread that
/// starts it.
///
/// # Errors
/// The system has no thread.
pub fn spawn<T: Send + 'static>(
    name: impl Into<String>,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(move || {
        help();
        body()
    })
}

/// Starts a thread that nobody waits for: behind all others, unless helpers have a priority.
///
/// # Errors
/// The system has no thread.
pub fn spawn_behind<T: Send + 'static>(
    name: impl Into<String>,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(move || {
        behind();
        body()
    })
}

/// The calling thread is behind all ordinary ones from now on; where helpers have a priority, it has
/// that.
pub fn behind() {
    if !help() {
        sched::yield_to_others();
    }
}

/// True if the calling thread has the helpers' priority now.
fn help() -> bool {
    let priority = HELPERS.load(Ordering::Relaxed);
    if priority == 0 {
        return false;
    }
    let wanted = Class::Fifo(priority);
    sched::class(None).is_ok_and(|class| class == wanted) || sched::set_class(None, wanted).is_ok()
}

/// The names of the ordinary threads of a process, in order of their ids; `None`: of this one.
///
/// # Errors
/// The system tells nothing of it.
pub fn ordinary(process: Option<u32>) -> io::Result<Vec<String>> {
    let folder = match process {
        Some(process) => format!("/proc/{process}/task"),
        None => "/proc/self/task".into(),
    };
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let id = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        let Some(id) = id.and_then(Pid::from_raw) else { continue };
        // One that has just ended is of no class.
        if sched::class(Some(id)).is_ok_and(|class| class == Class::Ordinary)
            && let Ok(name) = fs::read_to_string(path.join("comm"))
        {
            found.insert(id.as_raw_nonzero(), name.trim_end().to_owned());
        }
    }
    Ok(found.into_values().collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sched::{Reserve, class, set_class};

    /// One test: the priority is the process's.
    #[test]
    fn helpers_are_ordinary_until_they_have_a_priority_and_then_all_have_it() {
        let of = |thread: io::Result<JoinHandle<Class>>| thread.unwrap().join().unwrap();
        let own = || class(None).unwrap();
        assert_eq!(of(spawn("one", own)), Class::Ordinary);
        assert_eq!(of(spawn_behind("two", own)), Class::Ordinary);
        let begun = std::thread::spawn(move || {
            let grant = set_helper_priority(2);
            if let Grant::Refused(why) = grant {
                assert!(why.contains("CAP_SYS_NICE"), "{why}");
                eprintln!("without CAP_SYS_NICE nothing more can be seen: {why}");
                assert_eq!(of(spawn("three", own)), Class::Ordinary);
                return;
            }
            assert_eq!(of(spawn("three", own)), Class::Fifo(2));
            let (tell, told) = std::sync::mpsc::channel::<()>();
            let waits = std::thread::Builder::new().name("an ordinary one".into());
            let waits = waits.spawn(move || {
                sched::yield_to_others();
                let _ = told.recv();
            });
            let seen = || ordinary(None).unwrap().contains(&"an ordinary one".to_owned());
            while !seen() {
                std::thread::yield_now();
            }
            drop(tell);
            waits.unwrap().join().unwrap();
            assert!(!seen());
            assert_eq!(of(spawn_behind("four", own)), Class::Fifo(2));
            // As the data plane is: what it starts begins as an ordinary thread.
            let millis = Duration::from_millis;
            let reserve = Reserve { runtime: millis(1), deadline: millis(50), period: millis(100) };
            if set_class(None, Class::Deadline(reserve)).is_ok() {
                assert_eq!(std::thread::spawn(own).join().unwrap(), Class::Ordinary);
            }
            assert_eq!(of(spawn("five", own)), Class::Fifo(2));
            assert_eq!(of(spawn_behind("six", own)), Class::Fifo(2));
        });
        begun.join().unwrap();
    }
}
