//! Where the data plane's own time went.
//!
//! A node that is excluded because it did not keep up is told by the others that it was slow. Why,
//! only its own host knows: the kernel counts for how long a thread ran, waited for a processor,
//! and was stopped by a quota.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wire::{Duration, Time};

/// The counts are read at most this often, with whatever wakes the data plane: what is told is of
/// the last one or two of these, or of a longer time in which nothing woke it.
const EVERY: Duration = Duration::from_secs(1);

/// The quota's counts are read if the thread waited for a processor for this part of the time since
/// the last look.
const WORTH_ASKING: u64 = 10;

/// The result of one look at the counts.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    at: Time,
    ran: u64,
    waited: u64,
    throttled: u64,
    asleep: u64,
}

/// The account of the thread that made it, and that asks it.
#[derive(Debug, Default)]
pub struct Account {
    last: Counts,
    before: Counts,
    /// Nanoseconds spent in waits for work that ended with work, or when they were to end.
    asleep: u64,
}

/// Where a node's time went before it was excluded, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTime {
    /// The time under examination. In the part that the others leave, the node was stopped, or
    /// waited for a disk.
    pub span_ns: u64,
    /// The data plane ran.
    pub ran_ns: u64,
    /// It had work, and waited for a processor that others had.
    pub waited_ns: u64,
    /// It had work, and the quota of its control group was used up.
    pub throttled_ns: u64,
    /// It had nothing to do.
    pub asleep_ns: u64,
}

impl Account {
    /// A wait for work is over that lasted so long. `whole`: it ended with work, or was to end.
    pub fn waited(&mut self, now: Time, span: Duration, whole: bool) {
        if whole {
            self.asleep += nanos(span);
        }
        if now.since(self.last.at) >= EVERY {
            let next = self.look(now);
            self.before = std::mem::replace(&mut self.last, next);
        }
    }

    fn look(&self, now: Time) -> Counts {
        let (ran, waited) = scheduled().unwrap_or_default();
        // A process stopped by a quota waits for a processor. The kernel may have to gather a
        // group's counts from all processors under a lock. So it is asked only after a wait that
        // they may explain.
        let more = waited.saturating_sub(self.last.waited);
        let explains = more >= nanos(now.since(self.last.at)) / WORTH_ASKING;
        let begins = self.last.at == Time::ZERO;
        let throttled = match explains || begins {
            true => throttled().unwrap_or_default(),
            false => self.last.throttled,
        };
        Counts { at: now, ran, waited, throttled, asleep: self.asleep }
    }

    /// Where the time went. `None`: this thread is too young, or the kernel does not tell.
    pub fn tell(&self, now: Time) -> Option<OwnTime> {
        let (then, now) = (self.before, self.look(now));
        if then.at == Time::ZERO || now.ran == 0 {
            return None;
        }
        // A quota's count starts anew where the process was put into another group.
        let throttled = now.throttled.saturating_sub(then.throttled);
        let waited = now.waited.saturating_sub(then.waited);
        // Threads of other processors are in it, too; and who is stopped by it waits for a
        // processor.
        let throttled_ns = throttled.min(waited);
        Some(OwnTime {
            span_ns: nanos(now.at.since(then.at)),
            ran_ns: now.ran.saturating_sub(then.ran),
            waited_ns: waited - throttled_ns,
            throttled_ns,
            asleep_ns: now.asleep.saturating_sub(then.asleep),
        })
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// For how long this thread has run, and waited for a processor.
fn scheduled() -> Option<(u64, u64)> {
    let text = read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut figures = text.split_whitespace().map(str::parse);
    Some((figures.next()?.ok()?, figures.next()?.ok()?))
}

/// For how long the quota of this process's control group has stopped it.
fn throttled() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    places(&groups).find_map(|stat| count_of_throttling(&read_to_string(stat).ok()?))
}

/// Where the counts of the groups for processor time may be, by the usual mounts of both versions.
fn places(groups: &str) -> impl Iterator<Item = PathBuf> + '_ {
    groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (kinds, path) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let mounts: &[&str] = match kinds {
            "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            kinds if kinds.split(',').any(|kind| kind == "cpu") => {
                &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
            }
            _ => &[],
        };
        let path = path.trim_start_matches('/');
        mounts.iter().map(move |mount| Path::new(mount).join(path).join("cpu.stat"))
    })
}

/// In nanoseconds, from a group's `cpu.stat`; `None` of one without a quota's counts.
fn count_of_throttling(stat: &str) -> Option<u64> {
    let value = |name: &str| {
        stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    value("throttled_usec ").map(|us| us.saturating_mul(1_000)).or(value("throttled_time "))
}

impl OwnTime {
    /// The cause of the slowness, and the remedy.
    pub fn words(&self) -> String {
        let OwnTime { span_ns, ran_ns, waited_ns, throttled_ns, asleep_ns } = *self;
        let idle = ran_ns + waited_ns + throttled_ns + asleep_ns;
        let still = span_ns.saturating_sub(idle);
        let of = |ns: u64| format!("{} of {} ms", ns / 1_000_000, span_ns / 1_000_000);
        let much = |ns: u64| ns > 0 && ns >= span_ns / 5;
        if much(throttled_ns) {
            format!(
                "its CPU quota stopped it for {}: raise it (CPUQuota= of its unit, the CPU limit of its container)",
                of(throttled_ns)
            )
        } else if much(still) {
            format!(
                "it stood still for {}: it was stopped (by a signal, a debugger, a hypervisor), or waited for a disk (memory \
                 that was swapped out)",
                of(still)
            )
        } else if much(waited_ns) {
            format!(
                "it waited for a processor for {}: others have them; give it priority ([realtime]), or take them away",
                of(waited_ns)
            )
        } else if ran_ns >= span_ns / 2 {
            format!(
                "its data plane ran for {}: there is more to do than a processor can; handlers that are `inline` may \
                 belong on a thread",
                of(ran_ns)
            )
        } else {
            format!(
                "it had nothing to do for {}: what the others send reaches it slowly, or not; see its network",
                of(asleep_ns)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_the_time_is_named() {
        let ms = |ms: u64| ms * 1_000_000;
        let of = |ran, waited, throttled, asleep| OwnTime {
            span_ns: ms(1_000),
            ran_ns: ms(ran),
            waited_ns: ms(waited),
            throttled_ns: ms(throttled),
            asleep_ns: ms(asleep),
        };
        for (time, word) in [
            (of(100, 50, 800, 50), "CPU quota stopped it for 800 of 1000 ms"),
            (of(200, 50, 0, 50), "stood still for 700 of 1000 ms"),
            (of(200, 700, 0, 100), "waited for a processor for 700 of 1000 ms"),
            (of(900, 50, 0, 50), "ran for 900 of 1000 ms"),
            (of(100, 50, 0, 850), "nothing to do for 850 of 1000 ms"),
        ] {
            let words = time.words();
            assert!(words.contains(word), "{words}");
        }
    }

    #[test]
    fn a_quotas_count_is_found_and_read_in_both_versions() {
        let groups = "4:memory:/a\n1:cpu,cpuacct:/system.slice/node.service\n0::/user\n";
        let places: Vec<_> = places(groups).map(|path| path.display().to_string()).collect();
        assert_eq!(places[0], "/sys/fs/cgroup/cpu/system.slice/node.service/cpu.stat");
        assert_eq!(places[2], "/sys/fs/cgroup/user/cpu.stat");
        let second = "usage_usec 5\nnr_throttled 2\nthrottled_usec 7\n";
        assert_eq!(count_of_throttling(second), Some(7_000));
        assert_eq!(count_of_throttling("nr_throttled 2\nthrottled_time 7000\n"), Some(7_000));
        assert_eq!(count_of_throttling("usage_usec 5\n"), None);
    }

    #[test]
    fn a_thread_that_works_is_seen_to_run() {
        let mut account = Account::default();
        let start = crate::clock::monotonic();
        account.waited(start, Duration::ZERO, true);
        assert_eq!(account.tell(start), None, "it is too young");
        let mut sum = 0u64;
        let worked = loop {
            (0..10_000u64).for_each(|i| sum = std::hint::black_box(sum ^ i));
            let now = crate::clock::monotonic();
            account.waited(now, Duration::from_millis(1), true);
            if let Some(told) = account.tell(now) {
                break told;
            }
        };
        assert!(worked.ran_ns > 0 && worked.ran_ns <= worked.span_ns, "{worked:?}");
        assert!(worked.asleep_ns > 0, "{worked:?}");
    }
}
