//! Control groups of this lab's own, that share out processor time: a quota of one processor, as
//! `CPUQuota=` of systemd and the limits of containers set it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use crate::Outcome;

/// A control group beside nothing that others use. It is removed when it is dropped.
pub struct ControlGroup {
    /// The group in each hierarchy that has a part in it, with the one above. The first sets the
    /// quota, the last counts what was used.
    folders: Vec<Folder>,
    /// The control groups are of version 2.
    unified: bool,
}

struct Folder {
    parent: PathBuf,
    path: PathBuf,
}

impl ControlGroup {
    /// One of this name, with no quota yet.
    ///
    /// # Errors
    /// This process may make none, or none that sets quotas.
    pub fn new(name: &str) -> Outcome<ControlGroup> {
        let (parents, unified) = parents()?;
        let mut group = ControlGroup { folders: Vec::new(), unified };
        for parent in parents {
            let path = parent.join(format!("steadfast-lab-{}-{name}", process::id()));
            let needs =
                |error| format!("no control group can be made in {}: {error}", parent.display());
            fs::create_dir(&path).map_err(needs)?;
            group.folders.push(Folder { parent, path });
        }
        let knob = if unified { "cpu.max" } else { "cpu.cfs_quota_us" };
        match group.limits().path.join(knob).exists() {
            true => Ok(group),
            false => {
                let parent = group.limits().parent.display();
                Err(format!("{parent} sets no quotas of processor time").into())
            }
        }
    }

    /// Why quotas cannot be set here, if so.
    pub fn impossible() -> Option<String> {
        ControlGroup::new("try").err().map(|error| error.to_string())
    }

    /// All in it together run `percent` of a processor's time, in periods of `slice`.
    pub fn limit(&self, percent: u32, slice: Duration) -> Outcome<()> {
        let (period, quota) = (slice.as_micros(), slice.as_micros() * u128::from(percent) / 100);
        if quota < 1_000 {
            return Err(
                "the kernel grants no quota below 1 ms a period: a longer one, or a larger \
                 part of a processor"
                    .into(),
            );
        }
        let path = &self.limits().path;
        if self.unified {
            fs::write(path.join("cpu.max"), format!("{quota} {period}"))?;
        } else {
            fs::write(path.join("cpu.cfs_period_us"), period.to_string())?;
            fs::write(path.join("cpu.cfs_quota_us"), quota.to_string())?;
        }
        Ok(())
    }

    /// The files into which a process is written that is to be in it.
    pub fn doors(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.path.join("cgroup.procs")).collect()
    }

    /// This process is in it from now on.
    pub fn take(&self, process: u32) -> Outcome<()> {
        self.doors().iter().try_for_each(|door| Ok(fs::write(door, process.to_string())?))
    }

    /// This process is where it was before the group was made, unless it has ended.
    pub fn release(&self, process: u32) {
        for folder in &self.folders {
            let _ = fs::write(folder.parent.join("cgroup.procs"), process.to_string());
        }
    }

    /// Processor time that all in it have used so far.
    pub fn used(&self) -> Outcome<Duration> {
        let path = &self.folders.last().ok_or("a control group is in a hierarchy")?.path;
        if self.unified {
            let stat = fs::read_to_string(path.join("cpu.stat"))?;
            let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
            Ok(Duration::from_micros(usage.ok_or("cpu.stat says no usage")?.trim().parse()?))
        } else {
            let usage = fs::read_to_string(path.join("cpuacct.usage"))?;
            Ok(Duration::from_nanos(usage.trim().parse()?))
        }
    }

    fn limits(&self) -> &Folder {
        &self.folders[0]
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            // It stays, empty, if somebody put a process there.
            let _ = fs::remove_dir(&folder.path);
        }
    }
}

/// Where control groups for processor time are made, and whether they are of version 2: in version
/// 1 quota and use may be in two hierarchies.
fn parents() -> Outcome<(Vec<PathBuf>, bool)> {
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let of = |controller: &str| parent_of(&own, &mounts, controller);
    if let Some(cpu) = of("cpu") {
        let accounts = of("cpuacct").ok_or("nothing counts what control groups use (cpuacct)")?;
        // They may be one hierarchy, by one name or by two.
        let same = fs::canonicalize(&cpu).ok() == fs::canonicalize(&accounts).ok();
        return Ok((if same { vec![cpu] } else { vec![cpu, accounts] }, false));
    }
    let unified = of("").filter(|parent| {
        let controls = fs::read_to_string(parent.join("cgroup.subtree_control"));
        controls.is_ok_and(|it| it.split_whitespace().any(|it| it == "cpu"))
    });
    let none = "this process is in no control group that shares out processor time";
    Ok((vec![unified.ok_or(none)?], true))
}

/// This process's group in the hierarchy that has this controller; "" is version 2.
fn parent_of(own: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let has = |list: &str| list.split(',').any(|it| it == controller);
    let mount = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|fields| {
        let [_, _, kind, options, ..] = fields[..] else { return false };
        if controller.is_empty() { kind == "cgroup2" } else { kind == "cgroup" && has(options) }
    })?;
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        has(controllers).then_some(path)
    })?;
    Some(Path::new(mount[1]).join(path.trim_start_matches('/')))
}
