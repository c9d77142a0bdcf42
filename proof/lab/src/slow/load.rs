//! A sender that has always something to send, and what becomes of it over time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use node::admin::Client as Admin;
use node::bench::{Ask, Level, Pace, Until};
use steadfast::NodeId;

use harness::background::Background;
use harness::cluster::wall;

/// A benchmark that was ended by another configuration is asked for again after this long.
const AGAIN: Duration = Duration::from_millis(20);

/// One benchmark lasts no longer than this.
const SPAN: Duration = Duration::from_secs(600);

/// Benchmarks of the ring, one after the other: a change of the configuration ends each.
pub struct Load {
    course: Arc<Mutex<Course>>,
    sender: Background,
}

/// How many messages were delivered at the sender by when: nanoseconds since the Unix epoch.
type Course = Vec<(u64, u64)>;

impl Load {
    /// The node whose admin socket this is sends messages of so many bytes from now on.
    pub fn start(sender: NodeId, admin: PathBuf, size: u32) -> Load {
        let course = Arc::<Mutex<Course>>::default();
        let noted = course.clone();
        let send = move |end: &AtomicBool| {
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
            while !end.load(Ordering::Acquire) {
                let mut last = 0;
                if let Ok(mut admin) = Admin::connect(&admin) {
                    // It ends with the configuration, or with the cluster.
                    let _ = admin.bench(&ask, |progress| {
                        last = progress.delivered;
                        let mut course = noted.lock().unwrap_or_else(PoisonError::into_inner);
                        course.push((wall(), before + last));
                    });
                }
                before += last;
                thread::sleep(AGAIN);
            }
        };
        Load { course, sender: Background::start(send) }
    }

    /// Messages a second between two times, as far as they are known: over less than that where a
    /// benchmark began or ended within.
    pub fn rate(&self, from: u64, to: u64) -> Option<f64> {
        let course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        let within: Vec<_> = course.iter().filter(|(at, _)| (from..=to).contains(at)).collect();
        let (first, last) = (within.first()?, within.last()?);
        let seconds = (last.0 - first.0) as f64 / 1e9;
        (seconds > 0.0).then(|| (last.1 - first.1) as f64 / seconds)
    }

    /// The cluster is gone: so is this.
    pub fn finish(mut self) {
        // Without the node it has nothing to wait for.
        self.sender.stop();
    }
}
