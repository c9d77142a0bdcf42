//! A client that calls on time.

use std::ops::RangeBounds;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use node::sched::Class;
use steadfast::{Client, Invocation};

use crate::Outcome;
use crate::background::Background;
use crate::cluster::wall;
use crate::echo::ECHO;
use crate::hog;
use crate::wait::{until, until_so};

const PERIOD: Duration = Duration::from_millis(1);
const DEADLINE: Duration = Duration::from_secs(10);
/// The wait for good replies: far longer than they take on a machine that is busy.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Good replies after which all is as before.
const STEADY: usize = 300;

/// Calls on time, every millisecond, and notes when good replies came.
pub struct Caller {
    log: Arc<Mutex<Log>>,
    calls: Background,
}

#[derive(Default)]
struct Log {
    /// The wall clock at each good reply.
    replies: Vec<u64>,
    failed: Vec<String>,
}

impl Caller {
    /// Starts to call this group's echo.
    pub fn start(client: Client, group: &'static str) -> Caller {
        Caller::start_in(client, group, Class::Ordinary)
    }

    /// The same, by a thread of this class.
    pub fn start_in(client: Client, group: &'static str, class: Class) -> Caller {
        let body = Bytes::from_static(&[7; 64]);
        let mut class = Some(class);
        Caller::calling(move || {
            class.take().map_or(Ok(()), hog::take).map_err(|error| error.to_string())?;
            let reply =
                client.call(Invocation::new(group, ECHO).body(body.clone()).within(DEADLINE));
            reply.map(|_| ()).map_err(|error| error.to_string())
        })
    }

    /// Starts to make these calls.
    pub fn calling(mut call: impl FnMut() -> Result<(), String> + Send + 'static) -> Caller {
        let log = Arc::new(Mutex::new(Log::default()));
        let noted = log.clone();
        let calls = Background::start(move |over| {
            let mut due = Instant::now();
            while !over.load(Ordering::Relaxed) {
                let reply = call();
                let now = wall();
                let mut log = noted.lock().unwrap_or_else(PoisonError::into_inner);
                match reply {
                    Ok(()) => log.replies.push(now),
                    Err(error) => log.failed.push(error),
                }
                drop(log);
                due += PERIOD;
                match due.checked_duration_since(Instant::now()) {
                    Some(left) => thread::sleep(left),
                    // Calls that a fault has delayed are not made up for: that would be another
                    // load.
                    None => due = Instant::now(),
                }
            }
        });
        Caller { log, calls }
    }

    fn with<T>(&self, look: impl FnOnce(&Log) -> T) -> T {
        look(&self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The errors of the calls that failed.
    pub fn failed(&self) -> Vec<String> {
        self.with(|log| log.failed.clone())
    }

    /// Good replies so far.
    pub fn good(&self) -> usize {
        self.with(|log| log.replies.len())
    }

    /// Waits until calls succeed steadily after a time.
    pub fn wait_steady(&self, after: u64) -> Outcome<()> {
        until(TIMEOUT, PERIOD * 10, || {
            let good =
                self.with(|log| log.replies.iter().rev().take_while(|at| **at > after).count());
            let few = || format!("{good} good replies in {TIMEOUT:?} after a fault");
            Ok((good >= STEADY).then_some(()).ok_or_else(few))
        })
    }

    /// Waits for so many more good replies.
    pub fn wait_for(&self, more: usize) -> Outcome<()> {
        let (wanted, timeout) = (self.good() + more, TIMEOUT + PERIOD * 10 * more as u32);
        let missing = format!("{more} calls were not answered in time");
        until_so(timeout, PERIOD * 10, &missing, || Ok(self.good() >= wanted))
    }

    /// Ends the calls: how many were answered, and the errors of the others.
    pub fn finish(mut self) -> (usize, Vec<String>) {
        self.calls.stop();
        (self.good(), self.failed())
    }

    /// A good reply after a time: the first is 0.
    pub fn after(&self, time: u64, number: usize) -> Option<u64> {
        self.with(|log| {
            log.replies.get(log.replies.partition_point(|at| *at < time) + number).copied()
        })
    }

    /// The longest time between two good replies, the second of which was within this span, in
    /// milliseconds.
    pub fn gap(&self, span: impl RangeBounds<u64>) -> Option<f64> {
        self.with(|log| {
            let pairs = log.replies.windows(2).filter(|pair| span.contains(&pair[1]));
            let longest = pairs.map(|pair| pair[1].saturating_sub(pair[0])).max();
            longest.map(|gap| gap as f64 / 1e6)
        })
    }
}
