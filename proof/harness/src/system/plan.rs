//! The plan of a system of cells, and the files of its nodes.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use steadfast::{
    Durability, Folders, GroupOptions, NodeConfig, ProgramConfig, ReplicaConfig, Style,
};

use crate::process::Role;
use crate::sites::{self, Host, Site};
use crate::{Outcome, bail};

/// The group of registers and logs.
pub const OBJECTS: &str = "objects";

/// The group that gives back what it gets.
pub const ECHO: &str = "echo";

/// The tree of the paper: a cell of 4, two of 3 below it, and two of 3 below each of these.
pub const TREE: [(&str, usize); 7] = [
    ("porto", 4),
    ("a.porto", 3),
    ("b.porto", 3),
    ("a.a.porto", 3),
    ("b.a.porto", 3),
    ("a.b.porto", 3),
    ("b.b.porto", 3),
];

/// The port at which each node takes its cell's callers of other cells.
const CALLS: u16 = 7_103;

/// The plan of a system.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Paths and numbers of nodes: the root first, and each cell after the one above it.
    pub cells: Vec<(&'static str, usize)>,
    /// The last of them is a cluster by itself: its nodes have no `[system]`.
    pub alone: bool,
    /// One way between two cells.
    pub delay: Duration,
    /// Callers of other cells go to the nodes there. Without it links are measured, and not the
    /// network beside them.
    pub direct: bool,
    /// The cells with a group of [`OBJECTS`], on disk.
    pub objects: Vec<&'static str>,
    /// A folder is made here, with all files of all nodes.
    pub storage: PathBuf,
    /// The program `steadfast`.
    pub program: PathBuf,
}

/// The program `steadfast`, and where the files of nodes are.
#[derive(Clone, Debug, clap::Args)]
pub struct Place {
    /// The program; if none is given, the one beside this.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Where nodes keep their files: a folder of its own is made there and removed.
    #[arg(long, value_name = "FOLDER", default_value_os_t = env::temp_dir())]
    storage: PathBuf,
}

impl Place {
    fn program(&self) -> PathBuf {
        let beside = || env::current_exe().unwrap_or_default().with_file_name("steadfast");
        self.program.clone().unwrap_or_else(beside)
    }

    /// The build of the program, for people.
    pub fn build(&self) -> String {
        let program = self.program();
        let folder = program.parent().and_then(|folder| folder.file_name());
        let folder = folder.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        format!("the program is a {folder} build")
    }

    /// Why this machine does not permit it, if so.
    pub fn impossible(&self) -> Option<String> {
        let program = self.program();
        let missing = (!program.exists()).then(|| {
            format!("no program at {}: `cargo build -p steadfast-cli`", program.display())
        });
        missing.or_else(sites::impossible)
    }

    /// The plan of these cells.
    pub fn plan(&self, cells: &[(&'static str, usize)], delay: Duration) -> Plan {
        Plan {
            cells: cells.to_vec(),
            alone: false,
            delay,
            direct: false,
            objects: Vec::new(),
            storage: self.storage.clone(),
            program: self.program(),
        }
    }
}

impl Plan {
    /// Has `steadfast init` make all keys and certificates below a folder.
    pub(super) fn init(&self, out: &Path) -> Outcome<()> {
        for (site, (path, nodes)) in self.cells.iter().enumerate() {
            let mut init = Command::new(&self.program);
            init.args(["init", "--out"]).arg(out).args(["--cell", path]);
            if site == 0 {
                init.args(["--system", path]);
            }
            init.args((1..=*nodes).map(|id| format!("{id}={}", sites::address(site, id))));
            let output = init.stdin(Stdio::null()).stdout(Stdio::null()).output()?;
            if !output.status.success() {
                bail!("steadfast init: {}", String::from_utf8_lossy(&output.stderr).trim());
            }
        }
        Ok(())
    }

    /// Writes the configuration that a node starts with: as it was made, with groups. Its admin
    /// socket.
    pub(super) fn configure(&self, folder: &Path, (site, host): (Site, Host)) -> Outcome<PathBuf> {
        let (path, _) = self.cells[site];
        let mut config = NodeConfig::from_toml(&fs::read_to_string(made(folder))?)?;
        config.resolve(&Folders::one(folder));
        if let Some(system) = &mut config.system {
            system.calls = Some((sites::address(site, host), CALLS).into());
            system.direct = self.direct;
        }
        if self.alone && site + 1 == self.cells.len() {
            config.system = None;
        }
        config.replicas.push(ReplicaConfig {
            group: ECHO.into(),
            service: "echo".into(),
            style: Style::SemiActive,
            ack: None,
            durability: Durability::Memory,
            execution: steadfast::Execution::Inline,
        });
        if self.objects.contains(&path) {
            let command = Role::Objects { log: folder.join("objects.log") }.command()?;
            let options = GroupOptions { durability: Durability::Disk, ..GroupOptions::default() };
            let group = OBJECTS.into();
            config.programs.push(ProgramConfig { group, command, options, ..Default::default() });
        }
        fs::write(configured(folder), config.to_toml())?;
        Ok(config.admin.ok_or("the node has no admin socket")?)
    }
}

fn made(folder: &Path) -> PathBuf {
    folder.join("steadfast.toml")
}

/// The configuration that a node starts with.
pub(super) fn configured(folder: &Path) -> PathBuf {
    folder.join("node.toml")
}
