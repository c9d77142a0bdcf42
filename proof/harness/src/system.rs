//! A system of cells: real nodes of the program `steadfast` with the processes beside them, on
//! hosts at several sites. Each cell has a site of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::process::Signal;
use steadfast::{Client, Tls};
use tempfile::TempDir;

use crate::Outcome;
use crate::sites::{Host, Site, Sites, address};

mod load;
mod node;
mod plan;
mod sight;
mod trial;

pub use load::{Load, Reply};
use node::Node;
pub use plan::{ECHO, OBJECTS, Place, Plan, TREE};
pub use sight::{Sight, TIMEOUT};
pub use trial::Trial;

/// The port at which each node takes clients, as `steadfast init` has it.
const CLIENTS: u16 = 7_100;

/// The processes. Dropped in this order.
pub struct System {
    cells: Vec<Cell>,
    program: PathBuf,
    alone: bool,
    sites: Sites,
    folder: TempDir,
}

struct Cell {
    path: &'static str,
    /// Host 1 is the first.
    nodes: Vec<Node>,
    tls: Tls,
}

impl System {
    /// Makes all files, and starts nothing.
    pub fn prepare(plan: &Plan) -> Outcome<System> {
        let sizes: Vec<usize> = plan.cells.iter().map(|(_, nodes)| *nodes).collect();
        let sites = Sites::new(&sizes, plan.delay)?;
        let folder = tempfile::Builder::new().prefix("steadfast-lab-").tempdir_in(&plan.storage)?;
        plan.init(folder.path())?;
        let cell = |(site, (path, nodes)): (Site, &(&'static str, usize))| {
            let of_cell = folder.path().join(path);
            let node = |host| {
                let of_node = of_cell.join(format!("node-{host}"));
                let socket = plan.configure(&of_node, (site, host))?;
                Ok(Node::new(of_node, socket))
            };
            let nodes = (1..=*nodes).map(node).collect::<Outcome<_>>()?;
            Ok(Cell { path, nodes, tls: Tls::from_dir(of_cell.join("client-app"))? })
        };
        let cells = plan.cells.iter().enumerate().map(cell).collect::<Outcome<_>>()?;
        Ok(System { cells, program: plan.program.clone(), alone: plan.alone, sites, folder })
    }

    /// Starts all nodes, and waits until the system is whole.
    pub fn start(plan: &Plan) -> Outcome<System> {
        let mut system = System::prepare(plan)?;
        for site in 0..system.cells.len() {
            system.start_cell(site)?;
        }
        system.wait_until_whole()?;
        Ok(system)
    }

    /// Starts the nodes of a cell that do not run. Returns when: just before.
    pub fn start_cell(&mut self, site: Site) -> Outcome<Instant> {
        let at = Instant::now();
        for host in 1..=self.cells[site].nodes.len() {
            if self.cells[site].nodes[host - 1].id().is_none() {
                self.start_node((site, host))?;
            }
        }
        Ok(at)
    }

    /// Starts a node. Returns when: just before.
    pub fn start_node(&mut self, (site, host): (Site, Host)) -> Outcome<Instant> {
        let at = Instant::now();
        let System { cells, sites, program, .. } = self;
        sites.within((site, host), || cells[site].nodes[host - 1].start(program))?;
        Ok(at)
    }

    /// Sends a node and the processes that it has started a signal. Returns when: just before.
    pub fn signal(&mut self, (site, host): (Site, Host), signal: Signal) -> Outcome<Instant> {
        let at = Instant::now();
        self.cells[site].nodes[host - 1].signal(signal)?;
        Ok(at)
    }

    /// The hosts, and the network between them.
    pub fn sites(&self) -> &Sites {
        &self.sites
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// How many nodes a cell has.
    pub fn nodes(&self, site: Site) -> usize {
        self.cells[site].nodes.len()
    }

    /// The path of a cell.
    pub fn path(&self, site: Site) -> &'static str {
        self.cells[site].path
    }

    /// The cell with this path.
    pub fn site(&self, path: &str) -> Outcome<Site> {
        let found = self.cells.iter().position(|cell| cell.path == path);
        Ok(found.ok_or_else(|| format!("no cell is called {path}"))?)
    }

    /// The cell above one.
    pub fn parent(&self, site: Site) -> Option<Site> {
        let (_, parent) = self.path(site).split_once('.')?;
        self.cells.iter().position(|cell| cell.path == parent)
    }

    /// It is a cluster of no system.
    pub fn is_alone(&self, site: Site) -> bool {
        self.alone && site + 1 == self.cells.len()
    }

    /// The folder with all files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The processes of a node that runs: its own, and those that it has started.
    pub fn processes(&self, (site, host): (Site, Host)) -> Vec<u32> {
        let all = self.node(site, host).processes();
        all.into_iter().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()).collect()
    }

    fn node(&self, site: Site, host: Host) -> &Node {
        &self.cells[site].nodes[host - 1]
    }

    /// A node runs, and its processes are not stopped.
    pub fn lives(&self, (site, host): (Site, Host)) -> bool {
        let node = self.node(site, host);
        node.id().is_some() && !node.is_stopped
    }

    /// Leaves what the nodes and their programs said in a folder.
    pub fn copy_logs(&self, to: &Path) -> Outcome<()> {
        for (site, cell) in self.cells.iter().enumerate() {
            for host in 1..=cell.nodes.len() {
                for log in ["node.log", "objects.log"] {
                    let from = self.node(site, host).folder.join(log);
                    if from.exists() {
                        std::fs::copy(&from, to.join(format!("{}-{host}-{log}", cell.path)))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Where clients of this cell call its groups, and by full names those of others.
    pub fn clients(&self, site: Site) -> Vec<SocketAddr> {
        (1..=self.nodes(site)).map(|host| (address(site, host), CLIENTS).into()).collect()
    }

    /// Does something on the host of a cell's callers: the threads that are started are there.
    pub fn at_callers<T>(&self, site: Site, what: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        self.sites.within((site, self.sites.callers(site)), what)
    }

    /// A client in this cell, which calls at these addresses. Its calls are to be made on the host
    /// of the cell's callers.
    pub fn connect(&self, site: Site, at: Vec<SocketAddr>) -> Outcome<Client> {
        self.at_callers(site, || Ok(Client::builder().tls(self.tls(site)).connect(at)?))
    }

    /// The certificate of a cell's callers.
    pub fn tls(&self, site: Site) -> Tls {
        self.cells[site].tls.clone()
    }
}
