//! Control groups of the host's reserves: memory and devices, in version 1 and version 2.
//!
//! ```text
//!                 version 2                          version 1
//! folder          ROOT/steadfast/RUNTIME/PART        ROOT/memory/..., ROOT/blkio/steadfast/...
//! memory kept     memory.min                         - (degraded)
//! memory limit    memory.max                         memory.limit_in_bytes
//! device limits   io.max: "254:0 rbps=N wbps=N"      blkio.throttle.read_bps_device: "254:0 N", ...
//! ```

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use qos::host::{Ask, Rate};

/// The folder of all groups of this daemon.
const OURS: &str = "steadfast";

/// The hierarchies of control groups in which this daemon may make groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    memory: Option<Hierarchy>,
    devices: Option<Hierarchy>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    /// The folder below which groups are made.
    root: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Groups {
    /// Those of this host: `mounts` is the text of `/proc/mounts`, of which paths are below `top`
    /// (`/`, unless it is a test).
    ///
    /// A hierarchy counts if a group can be made there, with the controller in it.
    pub fn find(mounts: &str, top: &Path) -> Groups {
        let below = |path: &str| top.join(path.trim_start_matches('/'));
        let of = |controller: &str, one: &str| {
            let mut found = None;
            for line in mounts.lines() {
                let mut fields = line.split(' ').skip(1);
                let (Some(path), Some(kind), Some(options)) =
                    (fields.next(), fields.next(), fields.next())
                else {
                    continue;
                };
                let root = below(path);
                let version = match kind {
                    "cgroup" if options.split(',').any(|option| option == one) => Version::One,
                    "cgroup2" if has(&root, controller) => Version::Two,
                    _ => continue,
                };
                // Where both have it, version 1 does: its controllers are not in version 2.
                if found.is_none() || version == Version::One {
                    found = Some(Hierarchy { root, version });
                }
            }
            found.filter(|it| it.is_usable(controller))
        };
        Groups { memory: of("memory", "memory"), devices: of("io", "blkio") }
    }

    /// Memory can be limited.
    pub fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Devices can be limited.
    pub fn has_devices(&self) -> bool {
        self.devices.is_some()
    }

    /// Makes or changes the groups of a reserve, and moves its process there. Parts not in force
    /// are listed.
    pub fn apply(&self, path: &str, process: Option<i32>, ask: &Ask) -> Vec<String> {
        let mut degraded = Vec::new();
        if ask.memory > 0 || ask.memory_most > 0 {
            let done = self.memory.as_ref().map(|it| it.limit_memory(path, process, ask));
            degraded.extend(told("memory", done));
        }
        if !ask.devices.is_empty() {
            let done = self.devices.as_ref().map(|it| it.limit_devices(path, process, ask));
            degraded.extend(told("devices", done));
        }
        degraded
    }

    /// Removes the groups of a reserve. A process that is still there goes to the group above.
    pub fn remove(&self, path: &str) {
        for hierarchy in self.all() {
            hierarchy.remove(path);
        }
    }

    /// Removes groups without a process, which an earlier daemon may have left.
    pub fn clean(&self) {
        self.all().for_each(|hierarchy| clean(&hierarchy.root.join(OURS)));
    }

    fn all(&self) -> impl Iterator<Item = &Hierarchy> {
        self.memory.iter().chain(&self.devices)
    }
}

/// A group of version 2 hands this controller on.
fn has(root: &Path, controller: &str) -> bool {
    let file = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    file.split_whitespace().any(|it| it == controller)
}

fn told(what: &str, done: Option<Result<Option<&'static str>, String>>) -> Option<String> {
    match done {
        Some(Ok(None)) => None,
        Some(Ok(Some(why))) => Some(format!("{what}: {why}")),
        Some(Err(why)) => Some(format!("{what}: {why}")),
        None => Some(format!(
            "{what}: no control group for it is to be had: run the daemon as \
             root"
        )),
    }
}

impl Hierarchy {
    /// A group can be made. In version 2 the controller is handed down to it.
    fn is_usable(&self, controller: &str) -> bool {
        let ours = self.root.join(OURS);
        // Another user's daemon may have made it.
        let trial = ours.join(format!("trial-{}", std::process::id()));
        if make(&ours).and_then(|()| make(&trial)).is_err() {
            return false;
        }
        let _ = fs::remove_dir(&trial);
        self.version == Version::One
            || [&self.root, &ours].into_iter().all(|folder| {
                fs::write(folder.join("cgroup.subtree_control"), format!("+{controller}")).is_ok()
            })
    }

    /// The folder of a reserve, made with all above it.
    fn folder(&self, path: &str) -> Result<PathBuf, String> {
        let mut folder = self.root.join(OURS);
        let told = |folder: &Path, error: io::Error| {
            format!("control group {} cannot be made: {error}", folder.display())
        };
        let parts: Vec<&str> = path.split('/').collect();
        for (depth, part) in parts.iter().enumerate() {
            folder.push(part);
            make(&folder).map_err(|error| told(&folder, error))?;
            if self.version == Version::Two && depth + 1 < parts.len() {
                for controller in ["memory", "io"].into_iter().filter(|it| has(&folder, it)) {
                    let file = folder.join("cgroup.subtree_control");
                    fs::write(file, format!("+{controller}"))
                        .map_err(|error| told(&folder, error))?;
                }
            }
        }
        Ok(folder)
    }

    fn limit_memory(
        &self,
        path: &str,
        process: Option<i32>,
        ask: &Ask,
    ) -> Result<Option<&'static str>, String> {
        let folder = self.folder(path)?;
        let most = |none: &str| match ask.memory_most {
            0 => none.to_owned(),
            most => most.to_string(),
        };
        let degraded = match self.version {
            Version::Two => {
                write(&folder, "memory.min", &ask.memory.to_string())?;
                write(&folder, "memory.max", &most("max"))?;
                None
            }
            Version::One => {
                write(&folder, "memory.limit_in_bytes", &most("-1"))?;
                (ask.memory > 0).then_some(
                    "kept memory needs control groups of version 2 (memory.min); lock_memory in \
                     [realtime] keeps a node's own",
                )
            }
        };
        enter(&folder, process)?;
        Ok(degraded)
    }

    fn limit_devices(
        &self,
        path: &str,
        process: Option<i32>,
        ask: &Ask,
    ) -> Result<Option<&'static str>, String> {
        let folder = self.folder(path)?;
        for (number, Rate { read, write: written }) in &ask.devices {
            let or = |none: &str, rate: u64| match rate {
                0 => none.to_owned(),
                rate => rate.to_string(),
            };
            match self.version {
                Version::Two => {
                    let (read, written) = (or("max", *read), or("max", *written));
                    let line = format!("{number} rbps={read} wbps={written}");
                    write(&folder, "io.max", &line)?;
                }
                // 0 takes a limit back.
                Version::One => {
                    for (way, rate) in [("read", read), ("write", written)] {
                        let file = format!("blkio.throttle.{way}_bps_device");
                        write(&folder, &file, &format!("{number} {rate}"))?;
                    }
                }
            }
        }
        enter(&folder, process)?;
        Ok(None)
    }

    fn remove(&self, path: &str) {
        let ours = self.root.join(OURS);
        let folder = ours.join(path);
        let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        for process in processes.lines() {
            // It may have ended meanwhile.
            let _ = fs::write(self.root.join("cgroup.procs"), process);
        }
        let mut group = Some(folder.as_path());
        while let Some(folder) = group.filter(|folder| *folder != ours) {
            // A group above stays as long as it has others below.
            if fs::remove_dir(folder).is_err() {
                return;
            }
            group = folder.parent();
        }
    }
}

fn make(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn write(folder: &Path, file: &str, text: &str) -> Result<(), String> {
    let path = folder.join(file);
    fs::write(&path, text).map_err(|error| format!("{} takes no {text}: {error}", path.display()))
}

fn enter(folder: &Path, process: Option<i32>) -> Result<(), String> {
    let process = process.ok_or("a limit of memory or devices needs the process")?;
    write(folder, "cgroup.procs", &process.to_string())
}

/// Removes empty groups from the leaves up.
fn clean(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            clean(&entry.path());
            // The kernel refuses it while a process is there.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
