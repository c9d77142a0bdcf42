//! A sender that has always something to send, and what becomes of it over time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use node::admin::Client as Admin;
use node::bench::{Ask, Level, Pace, Until};
use steadfast::NodeId;

use harness::cluster::wall;

/// A benchmark that was ended by another configuration is asked for again after this long.
const AGAIN: Duration = Duration::from_millis(20);

/// One benchmark lasts no longer than this.
const SPAN: Duration = Duration::from_secs(600);

/// Benchmarks of the ring, one after the other: a change of the configuration ends each.
pub struct Load {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    end: AtomicBool,
    /// How many messages were delivered at the sender by when: nanoseconds since the Unix epoch.
    course: Mutex<Vec<(u64, u64)>>,
}

impl Shared {
    fn note(&self, delivered: u64) {
        let mut course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        course.push((wall(), delivered));
    }
}

impl Load {
    /// The node whose admin socket this is sends messages of so many bytes from now on.
    pub fn start(sender: NodeId, admin: PathBuf, size: u32) -> Load {
        let shared = Arc::new(Shared::default());
        let its = shared.clone();
        let send = move || {
            let ask = Ask {
                senders: vec![sender],
                size,
                count: 100_000_000,
                warm: 0,
                span_ms: SPAN.as_millis() as u64,
                level: Level::Agreed,
                pace: Pace::Full,
                until: Until::Own,
            };
            let mut before = 0;
            while !its.end.load(Ordering::Acquire) {
                let mut last = 0;
                if let Ok(mut admin) = Admin::connect(&admin) {
                    // It ends with the configuration, or with the cluster.
                    let _ = admin.bench(&ask, |progress| {
                        last = progress.delivered;
                        its.note(before + last);
                    });
                }
                before += last;
                thread::sleep(AGAIN);
            }
        };
        Load { shared, thread: Some(thread::spawn(send)) }
    }

    /// Messages a second between two times, as far as they are known: over less than that where a
    /// benchmark began or ended within.
    pub fn rate(&self, from: u64, to: u64) -> Option<f64> {
        let course = self.shared.course.lock().unwrap_or_else(PoisonError::into_inner);
        let within: Vec<_> = course.iter().filter(|(at, _)| (from..=to).contains(at)).collect();
        let (first, last) = (within.first()?, within.last()?);
        let seconds = (last.0 - first.0) as f64 / 1e9;
        (seconds > 0.0).then(|| (last.1 - first.1) as f64 / seconds)
    }

    /// The cluster is gone: so is this.
    pub fn finish(mut self) {
        self.shared.end.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // Without the node it has nothing to wait for.
            let _ = thread.join();
        }
    }
}
