//! The load of a gateway and of its host, between two looks at it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use monitor::MonitorError;
use monitor::host::Host;
use wire::Share;

/// Counts calls.
#[derive(Debug, Default)]
pub(crate) struct Load {
    calls: AtomicU64,
    failed: AtomicU64,
}

impl Load {
    /// A call has ended, with a result or without one.
    pub(crate) fn add(&self, is_answered: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(u64::from(!is_answered), Ordering::Relaxed);
    }

    fn counts(&self) -> [u64; 2] {
        [&self.calls, &self.failed].map(|count| count.load(Ordering::Relaxed))
    }
}

/// One who looks again and again.
pub(crate) struct Observer {
    host: Host,
    at: Instant,
    counts: [u64; 2],
    used: Duration,
}

/// The load since the last look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// Use of the host's processors, from 0 to 1.
    pub(crate) processors: f64,
    /// Calls that ended, a second.
    pub(crate) calls: f64,
    /// Those of them without a result.
    pub(crate) failed: f64,
}

impl Observer {
    pub(crate) fn new(load: &Load) -> Result<Observer, MonitorError> {
        let host = Host::open()?;
        let used = host.read()?.used;
        Ok(Observer { host, at: Instant::now(), counts: load.counts(), used })
    }

    pub(crate) fn look(&mut self, load: &Load) -> Result<Seen, MonitorError> {
        let (now, counts, reading) = (Instant::now(), load.counts(), self.host.read()?);
        let span = (now - self.at).max(Duration::from_millis(1)).as_secs_f64();
        let [calls, failed] = [0, 1].map(|at| (counts[at] - self.counts[at]) as f64 / span);
        let processors = reading.capacity.0 as f64 / Share::ONE.0 as f64;
        let used = reading.used.saturating_sub(self.used).as_secs_f64();
        (self.at, self.counts, self.used) = (now, counts, reading.used);
        Ok(Seen { processors: (used / span / processors).min(1.0), calls, failed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_once_and_as_a_rate() {
        let load = Load::default();
        load.add(true);
        let mut observer = Observer::new(&load).expect("there is /proc");
        for answered in [true, true, false] {
            load.add(answered);
        }
        let seen = observer.look(&load).expect("there is /proc");
        assert!((seen.calls / seen.failed - 3.0).abs() < 1e-9, "{seen:?}");
        assert!((0.0..=1.0).contains(&seen.processors), "{seen:?}");
        let seen = observer.look(&load).expect("there is /proc");
        assert_eq!((seen.calls, seen.failed), (0.0, 0.0));
    }
}
