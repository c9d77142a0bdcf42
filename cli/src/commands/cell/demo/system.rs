//! The processes of a demonstration: nodes of all cells, each with a folder that `steadfast init`
//! made. They end with this.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use admin::cell::CellStatus;
use cells::{Cell, Path};
use rustix::process::{Pid, Signal, kill_process_group};
use steadfast::{Client, Invocation, NodeConfig, NodeId, Tls};
use tempfile::TempDir;

use super::super::super::Failure;
use super::super::super::node::read_config;

/// The cells of the system.
const CELLS: &str = "7";

/// A node answers within this time, or is left out.
const PATIENCE: Duration = Duration::from_millis(500);

/// A node's process, in a process group with those that it starts.
struct Process {
    config: NodeConfig,
    file: PathBuf,
    child: Option<Child>,
}

impl Process {
    fn start(&mut self) -> Result<(), Failure> {
        let log = self.file.with_extension("log");
        let log = File::options().create(true).append(true).open(log).map_err(Failure::failed)?;
        let program = std::env::current_exe().map_err(Failure::failed)?;
        let mut command = Command::new(program);
        command.arg("node").arg("--config").arg(&self.file).stdin(Stdio::null());
        let out = log.try_clone().map_err(Failure::failed)?;
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.stdout(out).stderr(log).spawn().map_err(Failure::failed)?;
        self.child = Some(child);
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let Some(child) = &self.child else { return Ok(()) };
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        kill_process_group(group.expect("a child has a number"), signal).map_err(Failure::failed)
    }

    fn kill(&mut self) {
        // One that has ended already is waited for all the same.
        let _ = self.signal(Signal::KILL);
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A cell's path.
pub(super) fn path(text: &str) -> Path {
    text.parse().expect("it is one")
}

/// A cell in one line.
fn line(status: &CellStatus, book: &Cell) -> String {
    let ranks = status.ranks.clone().unwrap_or_default();
    let seat = book.carriers_among(&ranks.order, &ranks.members).next();
    let seat = seat.map_or("no seat".into(), |it| format!("seat {}", it.member.node));
    let above = match book.above().first() {
        Some(place) => format!(", attached to {}", place.path),
        None => String::new(),
    };
    format!("{}  {} nodes, {seat}{above}", book.path(), ranks.members.len())
}

/// All cells of a system. Fields end in this order: the folder is the last.
pub(super) struct System {
    nodes: BTreeMap<Path, BTreeMap<NodeId, Process>>,
    folder: TempDir,
}

impl System {
    /// Makes keys and configurations. Calls to one of the cells are always carried.
    pub(super) fn make(carried: &str) -> Result<System, Failure> {
        let folder = tempfile::Builder::new().prefix("steadfast-cells-").tempdir();
        let folder = folder.map_err(Failure::failed)?;
        let out = folder.path().join("porto");
        let program = std::env::current_exe().map_err(Failure::failed)?;
        let mut init = Command::new(program);
        init.args(["init", "--system", "porto", "--cells", CELLS, "--local", "--out"]).arg(&out);
        let free = steadfast::free_ring_addresses(4);
        for (port, address) in ["ring", "client", "admin", "link"].into_iter().zip(free) {
            init.arg(format!("--{port}-port")).arg(address.port().to_string());
        }
        let made = init.output().map_err(Failure::failed)?;
        if !made.status.success() {
            return Err(Failure::Failed(String::from_utf8_lossy(&made.stderr).into_owned()));
        }
        let mut system = System { nodes: BTreeMap::new(), folder };
        for cell in std::fs::read_dir(&out).map_err(Failure::failed)?.flatten() {
            let Some(path) = cell.file_name().to_str().and_then(|name| name.parse::<Path>().ok())
            else {
                continue;
            };
            if !cell.path().is_dir() {
                continue;
            }
            for node in std::fs::read_dir(cell.path()).map_err(Failure::failed)?.flatten() {
                let file = node.path().join("steadfast.toml");
                if !file.exists() {
                    continue;
                }
                if path.as_str() == carried {
                    let text = std::fs::read_to_string(&file).map_err(Failure::failed)?;
                    let text = text.replacen("[system]", "[system]\ndirect = false", 1);
                    std::fs::write(&file, text).map_err(Failure::failed)?;
                }
                let config = read_config(&file)?;
                let id = config.node;
                let process = Process { config, file, child: None };
                system.nodes.entry(path.clone()).or_default().insert(id, process);
            }
        }
        Ok(system)
    }

    /// Starts all: so many nodes.
    pub(super) fn start(&mut self) -> Result<usize, Failure> {
        let all = self.nodes.values_mut().flat_map(BTreeMap::values_mut);
        let mut count = 0;
        for node in all {
            node.start()?;
            count += 1;
        }
        Ok(count)
    }

    pub(super) fn cells(&self) -> Vec<&Path> {
        self.nodes.keys().collect()
    }

    /// The cells below this one, by their paths.
    pub(super) fn below(&self, path: &Path) -> Vec<Path> {
        self.nodes.keys().filter(|other| other.is_below(path)).cloned().collect()
    }

    /// No node has ended by itself.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        for (path, nodes) in &mut self.nodes {
            for (id, node) in nodes {
                let ended = node.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
                if let Some(status) = ended {
                    let log = node.file.with_extension("log");
                    let log = std::fs::read_to_string(log).unwrap_or_default();
                    let last: Vec<&str> = log.lines().rev().take(5).collect();
                    let why = last.into_iter().rev().collect::<Vec<_>>().join("\n");
                    return Err(Failure::Failed(format!("{path}, {id} ended: {status}\n{why}")));
                }
            }
        }
        Ok(())
    }

    /// The book at the first node of a cell that is current.
    fn book(&self, path: &Path) -> Result<(CellStatus, Cell), Failure> {
        let nodes = self.nodes.get(path).into_iter().flat_map(BTreeMap::values);
        let sockets = nodes.filter(|node| node.child.is_some());
        for socket in sockets.filter_map(|node| node.config.admin.as_ref()) {
            let status = admin::Client::connect(socket).ok().and_then(|mut node| {
                node.set_timeout(Some(PATIENCE)).ok()?;
                node.cell(None, Duration::ZERO).ok()
            });
            let Some(status) = status.filter(|status| status.ranks.is_some()) else { continue };
            if let Some(book) = status.book() {
                return Ok((status, book));
            }
        }
        Err(Failure::Failed(format!("no node of {path} answers")))
    }

    /// The cells that are attached to this one.
    pub(super) fn children(&self, path: &Path) -> Result<Vec<Path>, Failure> {
        let picture = self.book(path)?.1.picture();
        Ok(picture.children.into_iter().map(|child| child.place.path).collect())
    }

    /// Cells that are attached to the one above them.
    pub(super) fn attached(&self) -> Result<usize, Failure> {
        let mut count = 0;
        for path in self.nodes.keys() {
            count +=
                self.children(path)?.iter().filter(|it| it.parent().as_ref() == Some(path)).count();
        }
        Ok(count)
    }

    pub(super) fn seat(&self, path: &Path) -> Result<NodeId, Failure> {
        let (status, book) = self.book(path)?;
        let ranks = status.ranks.unwrap_or_default();
        let seat = book.carriers_among(&ranks.order, &ranks.members).next();
        seat.map(|it| it.member.node).ok_or_else(|| Failure::Failed(format!("{path} has no seat")))
    }

    pub(super) fn members(&self, path: &Path) -> Result<usize, Failure> {
        Ok(self.book(path)?.0.ranks.map_or(0, |ranks| ranks.members.len()))
    }

    /// A picture of all cells.
    pub(super) fn tree(&self) -> Result<String, Failure> {
        let mut text = String::new();
        for path in self.nodes.keys() {
            let line = match self.book(path) {
                Ok((status, book)) => line(&status, &book),
                Err(_) => format!("{path}  no node answers"),
            };
            let indent = path.depth() * 2;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:indent$}{line}", "");
        }
        Ok(text)
    }

    fn node(&mut self, path: &Path, id: NodeId) -> Result<&mut Process, Failure> {
        let node = self.nodes.get_mut(path).and_then(|nodes| nodes.get_mut(&id));
        node.ok_or_else(|| Failure::Failed(format!("{path} has no {id}")))
    }

    pub(super) fn kill(&mut self, path: &Path, id: NodeId) -> Result<(), Failure> {
        self.node(path, id)?.kill();
        Ok(())
    }

    pub(super) fn restart(&mut self, path: &Path, id: NodeId) -> Result<(), Failure> {
        self.node(path, id)?.start()
    }

    /// All nodes of a cell fall silent.
    pub(super) fn stop(&self, path: &Path) -> Result<(), Failure> {
        self.nodes[path].values().try_for_each(|node| node.signal(Signal::STOP))
    }

    pub(super) fn go_on(&self, path: &Path) -> Result<(), Failure> {
        self.nodes[path].values().try_for_each(|node| node.signal(Signal::CONT))
    }

    /// A client of a cell.
    pub(super) fn client(&self, cell: &str) -> Result<Client, Failure> {
        let nodes = self.nodes.get(&path(cell)).into_iter().flat_map(BTreeMap::values);
        let at: Vec<_> = nodes.filter_map(|node| node.config.client).collect();
        let folder = self.folder.path().join("porto").join(cell).join("client-app");
        let tls = Tls::from_dir(folder).map_err(Failure::failed)?;
        Client::builder().tls(tls).connect(at).map_err(Failure::failed)
    }

    /// The sum of a counter.
    pub(super) fn sum(&self, from: &str, group: &str) -> Result<u64, Failure> {
        let get = Invocation::new(group, "get").json().body("[]").within(Duration::from_secs(20));
        let sum = self.client(from)?.call(get).map_err(Failure::failed)?;
        serde_json::from_slice(&sum).map_err(Failure::failed)
    }

    /// The folder stays.
    pub(super) fn keep(&mut self) -> PathBuf {
        self.folder.disable_cleanup(true);
        self.folder.path().to_owned()
    }
}
