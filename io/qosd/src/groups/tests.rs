use std::collections::BTreeMap;

use tempfile::TempDir;

use super::*;

/// A host's tree of control groups, as files: `mounts` names what is mounted in it.
fn host(version: Version) -> (TempDir, Groups) {
    let top = tempfile::tempdir().unwrap();
    let mounts = match version {
        Version::Two => {
            let root = top.path().join("cgroup");
            fs::create_dir_all(root.join(OURS)).unwrap();
            for folder in [root.clone(), root.join(OURS)] {
                fs::write(folder.join("cgroup.controllers"), "cpu io memory\n").unwrap();
            }
            "cgroup2 /cgroup cgroup2 rw,nosuid 0 0\n"
        }
        Version::One => {
            for folder in ["memory", "blkio"] {
                fs::create_dir_all(top.path().join(folder)).unwrap();
            }
            "cgroup /memory cgroup rw,memory 0 0\ncgroup /blkio cgroup rw,blkio 0 0\n"
        }
    };
    let groups = Groups::find(mounts, top.path());
    (top, groups)
}

const PATH: &str = "n1/orders";

fn ask() -> Ask {
    let devices = BTreeMap::from([("254:0".into(), Rate { read: 0, write: 10 })]);
    Ask { memory: 100, memory_most: 500, devices, ..Ask::default() }
}

#[test]
fn version_two_has_one_group_for_all() {
    let (top, groups) = host(Version::Two);
    assert!(groups.has_memory() && groups.has_devices());
    assert_eq!(groups.apply(PATH, Some(77), &ask()), Vec::<String>::new());
    let folder = top.path().join("cgroup/steadfast/n1/orders");
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    assert_eq!(
        ["memory.min", "memory.max", "io.max", "cgroup.procs"].map(read),
        ["100", "500", "254:0 rbps=max wbps=10", "77"]
    );
}

#[test]
fn version_one_keeps_no_memory_and_says_so() {
    let (top, groups) = host(Version::One);
    let degraded = groups.apply(PATH, Some(77), &ask());
    assert!(degraded.len() == 1 && degraded[0].contains("version 2 (memory.min)"), "{degraded:?}");
    let read = |file: &str| fs::read_to_string(top.path().join(file)).unwrap();
    assert_eq!(read("memory/steadfast/n1/orders/memory.limit_in_bytes"), "500");
    assert_eq!(read("blkio/steadfast/n1/orders/blkio.throttle.write_bps_device"), "254:0 10");
    assert_eq!(read("blkio/steadfast/n1/orders/cgroup.procs"), "77");
}

#[test]
fn a_host_without_control_groups_degrades_with_the_remedy() {
    let top = tempfile::tempdir().unwrap();
    let groups = Groups::find("tmpfs /tmp tmpfs rw 0 0\n", top.path());
    let degraded = groups.apply(PATH, Some(77), &ask());
    assert_eq!(degraded.len(), 2);
    assert!(degraded.iter().all(|it| it.contains("as root")), "{degraded:?}");
}

#[test]
fn groups_that_nobody_uses_go() {
    let (top, groups) = host(Version::One);
    let ours = top.path().join("memory/steadfast");
    fs::create_dir_all(ours.join("n9/left")).unwrap();
    groups.clean();
    assert_eq!(fs::read_dir(&ours).unwrap().count(), 0);
}

/// The real tree of this host, where it is writable: what is made is in force, and goes.
#[test]
fn this_hosts_groups_are_made_and_removed() {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let groups = Groups::find(&mounts, Path::new("/"));
    let Some(memory) = groups.memory.clone() else {
        let refused = groups.apply(PATH, Some(77), &ask());
        assert!(!refused.is_empty(), "without control groups something is not in force");
        return;
    };
    let mut child = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("every system has cat");
    let path = format!("test-{}/child", std::process::id());
    let (memory_most, devices) = (64 << 20, BTreeMap::new());
    let ask = Ask { memory: 0, memory_most, devices, ..ask() };
    let process = Some(child.id().try_into().unwrap());
    assert_eq!(groups.apply(&path, process, &ask), Vec::<String>::new());
    let folder = memory.root.join(OURS).join(&path);
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap();
    assert_eq!(processes.trim(), child.id().to_string());
    groups.remove(&path);
    assert!(!folder.exists());
    child.kill().unwrap();
    child.wait().unwrap();
}
