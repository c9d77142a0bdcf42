//! All processors of the host.

use std::path::PathBuf;

use rustix::param::clock_ticks_per_second;
use wire::{Duration, Share};

use crate::MonitorError;
use crate::counter::Counter;

/// `/proc/stat`. Resolution: a tick, 10 ms by default, of each processor.
#[derive(Debug)]
pub struct Host {
    stat: Counter,
}

/// The host's processors and their use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Processor time that was used since the host started, including the time that a hypervisor
    /// gave to others.
    pub used: Duration,
    /// The processors that are there.
    pub capacity: Share,
}

impl Host {
    /// The host that this process runs on.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn open() -> Result<Host, MonitorError> {
        Ok(Host { stat: Counter::open(PathBuf::from("/proc/stat"))? })
    }

    /// Returns the present reading.
    ///
    /// # Errors
    /// The file cannot be read, or is not as kernels write it.
    pub fn read(&self) -> Result<Reading, MonitorError> {
        let ticks = clock_ticks_per_second();
        self.stat.read(|text| parse(text, ticks))
    }
}

/// Columns of a processor's line: user, nice, system, idle, iowait, irq, softirq, steal; guests are
/// in user already.
fn parse(text: &str, ticks_per_second: u64) -> Option<Reading> {
    let mut lines = text.lines();
    let all = lines.next()?.strip_prefix("cpu ")?;
    let columns: Option<Vec<u64>> =
        all.split_ascii_whitespace().map(|column| column.parse().ok()).collect();
    let columns = columns.filter(|columns| columns.len() >= 8)?;
    let idle = columns[3] + columns[4];
    let used = columns[..8].iter().sum::<u64>() - idle;
    let processors = lines.take_while(|line| line.starts_with("cpu")).count() as u64;
    Some(Reading {
        used: Duration::from_nanos(used.checked_mul(1_000_000_000)? / ticks_per_second),
        capacity: Share(Share::ONE.0 * processors.max(1)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_is_all_but_idle_and_waiting_for_disks() {
        let text = "cpu  100 20 30 4000 500 6 7 8 90 1\ncpu0 50 10 15 2000 250 3 3 4 45 0\ncpu1 50 10 15 2000 250 3 4 4 45 1\n\
                    intr 1 2 3\n";
        let used = Duration::from_millis((100 + 20 + 30 + 6 + 7 + 8) * 10);
        assert_eq!(parse(text, 100), Some(Reading { used, capacity: Share::percent(200) }));
    }

    #[test]
    fn what_is_no_such_file_is_not_taken_for_one() {
        for text in ["", "cpu", "cpu  1 2 3\n", "intr 1 2\n", "cpu  1 2 3 x 5 6 7 8\n"] {
            assert_eq!(parse(text, 100), None, "{text:?}");
        }
    }

    #[test]
    fn this_host_is_read_and_never_goes_back() {
        let host = Host::open().unwrap();
        let (first, second) = (host.read().unwrap(), host.read().unwrap());
        assert!(first.capacity >= Share::ONE);
        assert!(second.used >= first.used);
    }
}
