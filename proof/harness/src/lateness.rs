//! How late the machine itself is: one thread on each processor, more urgent than any other, that
//! sleeps for some milliseconds and measures how much later it wakes. Nobody could have been in
//! time during such a delay: a processor that the hypervisor took away, an interrupt that lasted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use node::realtime::{Grant, MAX_PRIORITY, fifo};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::Outcome;
use crate::background::Background;
use crate::cluster::wall;

/// How long a thread sleeps at a time.
const NAP: Duration = Duration::from_millis(2);

/// Woken so much later is worth telling.
pub const LATE: Duration = Duration::from_millis(10);

/// A processor that did nothing for so long.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Standstill {
    /// When it went on, in nanoseconds since the Unix epoch.
    pub until_ns: u64,
    /// Which one.
    pub cpu: usize,
    /// For how long the most urgent thread there was not run.
    pub span_ms: f64,
}

/// Watches until it is dropped.
pub struct Lateness {
    seen: Arc<Mutex<Vec<Standstill>>>,
    /// Until this is dropped.
    _threads: Vec<Background>,
    /// Why the threads are not more urgent than all others.
    pub ordinary: Option<String>,
}

impl Lateness {
    /// Begins.
    pub fn watch() -> Outcome<Lateness> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let ordinary = match node::realtime::probe_on_a_thread(MAX_PRIORITY) {
            Grant::Refused(why) => Some(why),
            Grant::NotAsked | Grant::InForce => None,
        };
        let cores = thread::available_parallelism()?.get();
        let spawn = |cpu| {
            let seen = Arc::clone(&seen);
            Background::start(move |over| watch_one(cpu, &seen, over))
        };
        let threads = (0..cores).map(spawn).collect();
        Ok(Lateness { seen, _threads: threads, ordinary })
    }

    /// Delays since the last call.
    pub fn take(&self) -> Vec<Standstill> {
        std::mem::take(&mut *self.seen.lock().expect("no thread panics with it"))
    }
}

fn watch_one(cpu: usize, seen: &Mutex<Vec<Standstill>>, over: &AtomicBool) {
    let mut own = CpuSet::new();
    own.set(cpu);
    // Where either is refused it sees the scheduler's delays too, and `ordinary` says so.
    let _ = sched_setaffinity(None, &own);
    let _ = fifo(MAX_PRIORITY);
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        thread::sleep(NAP);
        let late = began.elapsed().saturating_sub(NAP);
        if late >= LATE {
            let span_ms = late.as_secs_f64() * 1e3;
            let standstill = Standstill { until_ns: wall(), cpu, span_ms };
            seen.lock().expect("no thread panics with it").push(standstill);
        }
    }
}
