//! The part of the host's processors that this process's control group may use.
//!
//! A limit may be set at the group itself or at any above it (a pod's, a slice's): what counts is
//! the tightest, and the use is that of all who share it. It may change while the process runs, and
//! is read anew each time.
//!
//! ```text
//!                     which group              limit                                     used
//! version 2           0::PATH                  cpu.max: "QUOTA PERIOD" or "max PERIOD"   cpu.stat: usage_usec N
//! version 1           N:...cpu...:PATH         cpu.cfs_quota_us (-1: none), _period_us
//!                     N:...cpuacct...:PATH                                               cpuacct.usage: N, nanoseconds
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use wire::{Duration, Share};

use crate::MonitorError;
use crate::counter::{Counter, first_number};

/// The limits above this process, from its own group up.
#[derive(Debug)]
pub struct Budget {
    levels: Vec<Level>,
}

/// A control group's allowance and use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Processor time that was used since the group was made, by all in it.
    pub used: Duration,
    /// The share that it may use in each period. Linux stops the group for the rest of a period
    /// when that is used up.
    pub capacity: Share,
}

/// A group in which a limit may be set.
#[derive(Debug)]
enum Level {
    Two { max: Counter, stat: Counter },
    One { quota: Counter, period: Counter, usage: Counter },
}

impl Budget {
    /// That of this process.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn open() -> Result<Budget, MonitorError> {
        let read = |path: &str| {
            fs::read_to_string(path)
                .map_err(|source| MonitorError::Unreadable { path: path.into(), source })
        };
        let (groups, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
        Ok(Budget::of(&groups, &mounts))
    }

    fn of(groups: &str, mounts: &str) -> Budget {
        let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::parse).collect();
        let folders = |controller: &str| -> Vec<PathBuf> {
            let path = groups.lines().find_map(|line| group_of(line, controller));
            let mount = mounts.iter().find(|mount| mount.has(controller));
            path.zip(mount).map(|(path, mount)| mount.folders(path)).unwrap_or_default()
        };
        // Where the processors are in both versions' hands, version 1 has them.
        let (cpu, accounts) = (folders("cpu"), folders("cpuacct"));
        let mut levels: Vec<Level> = cpu
            .iter()
            .filter_map(|folder| Level::one(folder, same_end(folder, &cpu, &accounts)?))
            .collect();
        if levels.is_empty() {
            levels = folders("").iter().filter_map(|folder| Level::two(folder)).collect();
        }
        Budget { levels }
    }

    /// The tightest limit, if there is any.
    ///
    /// # Errors
    /// A file cannot be read, or is not as kernels write it.
    pub fn read(&self) -> Result<Option<Reading>, MonitorError> {
        let mut tightest: Option<(Share, &Level)> = None;
        for level in &self.levels {
            let Some(capacity) = level.capacity()? else { continue };
            if tightest.is_none_or(|(least, _)| capacity < least) {
                tightest = Some((capacity, level));
            }
        }
        let Some((capacity, level)) = tightest else { return Ok(None) };
        Ok(Some(Reading { used: level.used()?, capacity }))
    }
}

/// The folder of the other hierarchy that is as far below its mount as `folder` is below its own:
/// both have the same groups where anything sets limits at all.
fn same_end<'a>(folder: &Path, own: &[PathBuf], other: &'a [PathBuf]) -> Option<&'a Path> {
    let top = own.last()?;
    let end = folder.strip_prefix(top).ok()?;
    let wanted = other.last()?.join(end);
    other.iter().find(|other| **other == wanted).map(PathBuf::as_path)
}

impl Level {
    /// The root of a hierarchy has no such files, and no limit.
    fn two(folder: &Path) -> Option<Level> {
        let open = |name| Counter::open(folder.join(name)).ok();
        Some(Level::Two { max: open("cpu.max")?, stat: open("cpu.stat")? })
    }

    fn one(folder: &Path, accounts: &Path) -> Option<Level> {
        let open = |folder: &Path, name| Counter::open(folder.join(name)).ok();
        Some(Level::One {
            quota: open(folder, "cpu.cfs_quota_us")?,
            period: open(folder, "cpu.cfs_period_us")?,
            usage: open(accounts, "cpuacct.usage")?,
        })
    }

    /// The limit set here, if there is one.
    fn capacity(&self) -> Result<Option<Share>, MonitorError> {
        match self {
            Level::Two { max, .. } => max.read(parse_max),
            Level::One { quota, period, .. } => {
                let quota: i64 = quota.read(|text| text.trim().parse().ok())?;
                let Ok(quota) = u64::try_from(quota) else { return Ok(None) };
                let period = period.read(first_number)?;
                Ok(Some(share(quota, period)))
            }
        }
    }

    fn used(&self) -> Result<Duration, MonitorError> {
        match self {
            Level::Two { stat, .. } => stat.read(parse_usage),
            Level::One { usage, .. } => usage.read(first_number).map(Duration::from_nanos),
        }
    }
}

fn share(quota_us: u64, period_us: u64) -> Share {
    Share::of(Duration::from_micros(quota_us), Duration::from_micros(period_us))
}

/// `cpu.max`; the inner is `None` where there is no limit.
#[allow(clippy::option_option)]
fn parse_max(text: &str) -> Option<Option<Share>> {
    let (quota, period) = text.trim().split_once(' ')?;
    let period = period.parse().ok()?;
    match quota {
        "max" => Some(None),
        quota => Some(Some(share(quota.parse().ok()?, period))),
    }
}

/// `cpu.stat`.
fn parse_usage(text: &str) -> Option<Duration> {
    let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(Duration::from_micros(usage.trim().parse().ok()?))
}

/// The path of `/proc/self/cgroup` for a controller; "" is version 2.
fn group_of<'a>(line: &'a str, controller: &str) -> Option<&'a str> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    controllers.split(',').any(|name| name == controller).then_some(path)
}

/// A mounted hierarchy.
struct Mount<'a> {
    /// Which part of the hierarchy is seen here: not the whole in most containers.
    root: &'a str,
    at: &'a str,
    /// In version 1 its controllers are among these. Version 2 has none here.
    options: &'a str,
    two: bool,
}

impl<'a> Mount<'a> {
    /// A line of `/proc/self/mountinfo`: fields 4 and 5 are root and place; after a lone dash come
    /// type, source and options.
    fn parse(line: &'a str) -> Option<Mount<'a>> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let mut kind = kind.split(' ');
        let two = match kind.next()? {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        Some(Mount { root: place.next()?, at: place.next()?, options: kind.nth(1)?, two })
    }

    fn has(&self, controller: &str) -> bool {
        match controller {
            "" => self.two,
            name => !self.two && self.options.split(',').any(|option| option == name),
        }
    }

    /// The group's folder and those above it, as far as they are seen here.
    fn folders(&self, path: &str) -> Vec<PathBuf> {
        let top = Path::new(self.at);
        // In a namespace of its own a group is where it says; else what is mounted is a part of the
        // whole.
        let below = Path::new(path).strip_prefix(self.root).unwrap_or(Path::new(path));
        let own = top.join(below.strip_prefix("/").unwrap_or(below));
        own.ancestors().take_while(|folder| folder.starts_with(top)).map(Path::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    #[test]
    fn of_two_limits_of_version_2_the_tighter_counts_with_all_who_share_it() {
        let mount = tempfile::tempdir().unwrap();
        put(mount.path(), &[("cpu.stat", "usage_usec 9000000\n")]);
        let pod = mount.path().join("pod");
        put(
            &pod,
            &[("cpu.max", "50000 100000\n"), ("cpu.stat", "usage_usec 3000000\nuser_usec 1\n")],
        );
        let own = pod.join("own");
        put(&own, &[("cpu.max", "200000 100000\n"), ("cpu.stat", "usage_usec 1000000\n")]);
        let mounts = format!(
            "30 24 0:26 / {} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
            mount.path().display()
        );
        let budget = Budget::of("0::/pod/own\n", &mounts);
        let half = Reading { used: Duration::from_secs(3), capacity: Share::percent(50) };
        assert_eq!(budget.read().unwrap(), Some(half));
        put(&pod, &[("cpu.max", "max 100000\n")]);
        let two = Reading { used: Duration::from_secs(1), capacity: Share::percent(200) };
        assert_eq!(budget.read().unwrap(), Some(two), "limits change while the process runs");
        put(&own, &[("cpu.max", "max 100000\n")]);
        assert_eq!(budget.read().unwrap(), None);
    }

    #[test]
    fn version_1_has_limit_and_use_in_two_hierarchies() {
        let top = tempfile::tempdir().unwrap();
        let (cpu, accounts) = (top.path().join("cpu"), top.path().join("cpuacct"));
        let limit = |quota| [("cpu.cfs_quota_us", quota), ("cpu.cfs_period_us", "50000\n")];
        put(&cpu, &limit("-1\n"));
        put(&cpu.join("box"), &limit("25000\n"));
        put(&accounts, &[("cpuacct.usage", "99\n")]);
        put(&accounts.join("box"), &[("cpuacct.usage", "7000000000\n")]);
        let line = |number, at: &Path, name| {
            format!(
                "{number} 31 0:{number} / {} rw,relatime - cgroup cgroup rw,{name}\n",
                at.display()
            )
        };
        let mounts = line(32, &cpu, "cpu") + &line(33, &accounts, "cpuacct");
        let budget = Budget::of("2:cpuacct:/box\n1:cpu:/box\n0::/\n", &mounts);
        let half = Reading { used: Duration::from_secs(7), capacity: Share::percent(50) };
        assert_eq!(budget.read().unwrap(), Some(half));
    }

    #[test]
    fn in_a_container_only_a_part_of_the_hierarchy_is_mounted() {
        let mount = tempfile::tempdir().unwrap();
        put(mount.path(), &[("cpu.max", "150000 100000\n"), ("cpu.stat", "usage_usec 5\n")]);
        let mounts =
            format!("30 24 0:26 /docker/7 {} ro - cgroup2 cgroup rw\n", mount.path().display());
        let read = Budget::of("0::/docker/7\n", &mounts).read().unwrap();
        assert_eq!(read.map(|read| read.capacity), Some(Share::percent(150)));
    }

    #[test]
    fn without_groups_there_is_no_limit() {
        assert_eq!(Budget::of("", "").read().unwrap(), None);
        assert_eq!(Budget::of("0::/a\nnonsense\n", "nonsense\n1 2 - x\n").read().unwrap(), None);
    }

    #[test]
    fn what_is_not_understood_is_told_with_its_place() {
        let mount = tempfile::tempdir().unwrap();
        put(mount.path(), &[("cpu.max", "much\n"), ("cpu.stat", "usage_usec 5\n")]);
        let mounts = format!("30 24 0:26 / {} ro - cgroup2 cgroup rw\n", mount.path().display());
        let error = Budget::of("0::/\n", &mounts).read().unwrap_err().to_string();
        assert!(error.contains("cpu.max says `much"), "{error}");
    }

    #[test]
    fn this_process_is_read_whatever_its_limits_are() {
        let budget = Budget::open().unwrap();
        if let Some(first) = budget.read().unwrap() {
            let second = budget.read().unwrap().map(|second| second.used);
            assert!(second >= Some(first.used) && first.capacity > Share::ZERO);
        }
    }
}
