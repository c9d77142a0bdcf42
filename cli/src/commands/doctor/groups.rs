//! Control groups: which version limits what, and whether they keep real-time classes from
//! programs.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use super::finding::{Finding, Verdict};

/// Reads the mounts, and this process's groups.
pub fn examine() -> Vec<Finding> {
    let mounts = read_to_string("/proc/mounts").unwrap_or_default();
    let own = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let top = Path::new("/");
    let mut findings = vec![limits(&mounts, top)];
    findings.extend(budget(&mounts, &own, top));
    findings
}

/// A mounted hierarchy: its folder, its version, and its controllers.
struct Hierarchy {
    folder: PathBuf,
    version: u8,
    controllers: Vec<String>,
}

/// All of them. `top` is `/`, unless it is a test.
fn hierarchies(mounts: &str, top: &Path) -> Vec<Hierarchy> {
    let hierarchy = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let &[_, path, kind, options, ..] = fields.as_slice() else { return None };
        let folder = top.join(path.trim_start_matches('/'));
        let (version, controllers) = match kind {
            "cgroup" => (1, options.replace(',', " ")),
            "cgroup2" => (2, read_to_string(folder.join("cgroup.controllers")).ok()?),
            _ => return None,
        };
        let controllers = controllers.split_whitespace().map(String::from).collect();
        Some(Hierarchy { folder, version, controllers })
    };
    mounts.lines().filter_map(hierarchy).collect()
}

/// By which version a controller of either name is to be had. Where both have it, version 1 does.
fn version(hierarchies: &[Hierarchy], names: [&str; 2]) -> Option<u8> {
    let has = |it: &&Hierarchy| it.controllers.iter().any(|it| names.contains(&it.as_str()));
    hierarchies.iter().filter(has).map(|it| it.version).min()
}

/// Limits that the host's daemon can set.
fn limits(mounts: &str, top: &Path) -> Finding {
    let name = "control groups";
    let hierarchies = hierarchies(mounts, top);
    let memory = version(&hierarchies, ["memory", "memory"]);
    let disks = version(&hierarchies, ["blkio", "io"]);
    let told = |what: &str, version: Option<u8>| match version {
        Some(version) => format!("{what} by version {version}"),
        None => format!("{what} cannot be limited"),
    };
    let says = format!("{}, {}", told("memory", memory), told("disks", disks));
    match (memory, disks) {
        (Some(2), Some(2)) => Finding::good(name, says),
        (None, _) | (_, None) => Finding::new(
            Verdict::Advice,
            name,
            says,
            "a [reserve] of it is degraded: mount control groups of version 2 with this controller",
        ),
        _ => Finding::new(
            Verdict::Advice,
            name,
            says,
            "version 1 limits other programs, and keeps no memory for a replica: boot with \
             systemd.unified_cgroup_hierarchy=1 where that matters",
        ),
    }
}

/// Where real-time classes have budgets by group, a group without one has no SCHED_FIFO.
fn budget(mounts: &str, own: &str, top: &Path) -> Option<Finding> {
    let name = "real-time groups";
    let hierarchies = hierarchies(mounts, top);
    // Version 2 has no such budgets.
    let cpu = hierarchies
        .iter()
        .find(|it| it.version == 1 && it.controllers.iter().any(|it| it == "cpu"))?;
    let group = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (kinds, path) = (fields.next()?, fields.next()?);
        let is_it = kinds.split(',').any(|kind| kind == "cpu");
        is_it.then(|| path.trim_start_matches('/').to_owned())
    })?;
    let budget = |folder: PathBuf| {
        read_to_string(folder.join("cpu.rt_runtime_us")).ok()?.trim().parse::<i64>().ok()
    };
    // The file is there where the kernel has CONFIG_RT_GROUP_SCHED.
    budget(cpu.folder.clone())?;
    Some(match budget(cpu.folder.join(&group))? {
        0 => Finding::new(
            Verdict::Warning,
            name,
            format!("this process's group {group} has no budget (CONFIG_RT_GROUP_SCHED)"),
            "SCHED_FIFO is refused there, SCHED_DEADLINE is not: set [realtime] runtime_us, or write a \
             budget to the group's cpu.rt_runtime_us",
        ),
        _ => Finding::good(name, "this process's group has a budget (CONFIG_RT_GROUP_SCHED)"),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn words(finding: &Finding) -> &str {
        &finding.says
    }

    #[test]
    fn controllers_are_found_in_either_version() {
        let top = tempfile::tempdir().unwrap();
        let unified = top.path().join("sys/fs/cgroup/unified");
        fs::create_dir_all(&unified).unwrap();
        fs::write(unified.join("cgroup.controllers"), "io hugetlb\n").unwrap();
        let two = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let one = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n";
        let finding = limits(&format!("{two}{one}"), top.path());
        assert_eq!(words(&finding), "memory by version 1, disks by version 2");
        let finding = limits(two, top.path());
        assert_eq!(words(&finding), "memory cannot be limited, disks by version 2");
        fs::write(unified.join("cgroup.controllers"), "io memory\n").unwrap();
        assert_eq!(limits(two, top.path()).verdict, Verdict::Good);
    }

    #[test]
    fn a_group_without_a_budget_is_told_where_the_kernel_has_budgets() {
        let top = tempfile::tempdir().unwrap();
        let cpu = top.path().join("sys/fs/cgroup/cpu");
        fs::create_dir_all(cpu.join("nodes")).unwrap();
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n";
        let own = "4:cpu,cpuacct:/nodes\n0::/\n";
        assert!(budget(mounts, own, top.path()).is_none(), "the kernel has no budgets");
        fs::write(cpu.join("cpu.rt_runtime_us"), "950000\n").unwrap();
        fs::write(cpu.join("nodes/cpu.rt_runtime_us"), "0\n").unwrap();
        let finding = budget(mounts, own, top.path()).unwrap();
        assert_eq!(finding.verdict, Verdict::Warning, "{}", words(&finding));
        fs::write(cpu.join("nodes/cpu.rt_runtime_us"), "100000\n").unwrap();
        assert_eq!(budget(mounts, own, top.path()).unwrap().verdict, Verdict::Good);
    }
}
