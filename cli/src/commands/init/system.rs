//! A system of cells: its authority, and one cell after the other.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::cells::Cells;
use super::files::Folder;
use super::make::{self, Changes, People};
use super::plan::{NodeSpec, Plan, Ports};
use super::seating::{Rules, Seats, seat};
use super::system_report::SystemReport;
use crate::commands::Failure;

/// A folder in the system's own, which no cell may have.
const RESERVED: &str = "authority";

/// A system, and how its cells are made.
pub struct System {
    /// Its folder.
    pub out: PathBuf,
    /// Overwrites what exists.
    pub force: bool,
    /// Its name, if it was given.
    pub name: Option<String>,
    pub ports: Ports,
    pub grpc: Option<u16>,
    /// The same for each cell.
    pub people: People,
}

impl System {
    /// A whole system on this machine.
    pub fn found_all(&self, cells: &Cells) -> Result<SystemReport, Failure> {
        let name = self.name.clone().unwrap_or_default();
        check_name(&name)?;
        let home = Folder::new(&self.out, self.force);
        home.expect_no_authority()?;
        let mut plans: Vec<(String, Plan)> = Vec::new();
        for (number, cell) in (1..=u8::MAX).zip(cells.of(&name)?) {
            let nodes = (1..=cell.nodes).map(|node| NodeSpec::local_in(number, node)).collect();
            let above = tls::parent_of(&cell.path);
            let above = plans.iter().find(|(path, _)| Some(path.as_str()) == above);
            let parent = above.map_or(Vec::new(), |(_, plan)| links(plan));
            let plan = Plan::cell(&cell.path, nodes, self.ports, self.grpc, parent)?;
            make::check(&self.folder(&cell.path), &plan, &self.people)?;
            plans.push((cell.path, plan));
        }
        let authority = home.found_system(&name)?;
        let mut report = SystemReport::new(&self.out, &name, true);
        for (path, plan) in plans {
            let folder = self.folder(&path);
            let own = folder.found_cell((&home, &authority), &path, false)?;
            report.add(&path, make::found(&folder, &plan, &self.people, &own, true)?);
        }
        Ok(report)
    }

    /// One cell, with the system's authority if there is none yet.
    pub fn found_cell(&self, path: &str, nodes: &[NodeSpec]) -> Result<SystemReport, Failure> {
        let home = Folder::new(&self.out, false);
        let made_before = home.read_system()?;
        let name = self.agree(made_before.as_deref())?;
        let cells = if made_before.is_some() { home.cells()? } else { Vec::new() };
        let plan = self.plan_cell((path, nodes), &name, &cells)?;
        let authority = match made_before {
            Some(_) => home.system_authority(&name)?,
            None => home.found_system(&name)?,
        };
        let folder = self.folder(path);
        let own = folder.found_cell((&home, &authority), path, false)?;
        let local = plan.is_local();
        let mut report = SystemReport::new(&self.out, &name, local);
        report.add(path, make::found(&folder, &plan, &self.people, &own, local)?);
        Ok(report)
    }

    /// The plan of a further cell, after all checks that need no key.
    fn plan_cell(
        &self,
        (path, nodes): (&str, &[NodeSpec]),
        name: &str,
        cells: &[Plan],
    ) -> Result<Plan, Failure> {
        check_cell(path, name)?;
        let parent = match tls::parent_of(path) {
            None => Vec::new(),
            Some(above) => {
                let found = cells.iter().find(|plan| plan.cluster == tls::cell(above));
                links(found.ok_or_else(|| self.make_first(above))?)
            }
        };
        let plan = Plan::cell(path, nodes.to_vec(), self.ports, self.grpc, parent)?;
        expect_apart(&plan, cells)?;
        let folder = self.folder(path);
        folder.expect_no_authority()?;
        make::check(&folder, &plan, &self.people)?;
        Ok(plan)
    }

    /// A node for each of these hosts, in cells that are there, or in new ones where none has room.
    pub fn join(&self, hosts: &[IpAddr], rules: &Rules) -> Result<SystemReport, Failure> {
        let home = Folder::new(&self.out, false);
        let made_before = home.read_system()?;
        let name = self.agree(made_before.as_deref())?;
        let cells = home.cells()?;
        let seats = seat(&cells, hosts, rules)?;
        let (new, grown): (Vec<Seats>, Vec<Seats>) = seats.into_iter().partition(|it| it.is_new);
        // All that may be in the way is found out before anything is made.
        for Seats { path, nodes, .. } in &new {
            self.plan_cell((path, nodes), &name, &cells)?;
        }
        if !new.is_empty() {
            home.system_authority(&name)?;
        }
        let mut extensions = Vec::new();
        for Seats { path, nodes, .. } in grown {
            let changes = Changes { add: nodes, ..Changes::default() };
            extensions.push((make::prepare(&self.folder(&path), changes)?, path));
        }
        let local = hosts.iter().all(IpAddr::is_loopback);
        let mut report = SystemReport::new(&self.out, &name, local);
        for Seats { path, nodes, .. } in new {
            report.join(self.found_cell(&path, &nodes)?);
        }
        for (extension, path) in extensions {
            report.add(&path, extension.make()?);
        }
        Ok(report)
    }

    /// A new authority for a cell that was made before, and new certificates for all that it made.
    pub fn renew(&self, path: &str) -> Result<SystemReport, Failure> {
        let home = Folder::new(&self.out, false);
        let made_before = home.read_system()?;
        let name = self.agree(made_before.as_deref())?;
        check_cell(path, &name)?;
        let folder = self.folder(path);
        let local = folder.read_plan()?.is_local();
        let authority = home.system_authority(&name)?;
        folder.found_cell((&home, &authority), path, true)?;
        let changes = Changes { renew: true, ..Changes::default() };
        let mut report = SystemReport::new(&self.out, &name, local);
        report.add(path, make::extend(&folder, &changes)?);
        Ok(report)
    }

    fn folder(&self, path: &str) -> Folder {
        Folder::new(&self.out.join(path), self.force)
    }

    /// The system's name: given, or that of what was made here before.
    fn agree(&self, made_before: Option<&str>) -> Result<String, Failure> {
        let out = self.out.display();
        match (self.name.as_deref(), made_before) {
            (Some(given), Some(found)) if given != found => Err(Failure::Usage(format!(
                "{out} is that of the system {found}: a path ends in it; for another, give another --out"
            ))),
            (_, Some(name)) => Ok(name.to_owned()),
            (Some(name), None) => check_name(name).map(|()| name.to_owned()),
            (None, None) => Err(Failure::Usage(format!(
                "{out} has no system: begin with its root, such as `steadfast cell found porto --out \
                 {out} 1=10.0.0.1 2=10.0.0.2 3=10.0.0.3`, or give the --out of one"
            ))),
        }
    }

    fn make_first(&self, above: &str) -> Failure {
        Failure::Usage(format!(
            "the cell above, {above}, is not in {out}: make it first, by `steadfast cell found {above} \
             --out {out}` with its nodes",
            out = self.out.display()
        ))
    }
}

fn check_name(system: &str) -> Result<(), Failure> {
    tls::check_path(system).map_err(Failure::usage)?;
    if system.contains('.') || system == RESERVED {
        return Err(Failure::Usage(format!(
            "the system's name \"{system}\" must be one label, and not \"{RESERVED}\": such as \
             porto; --cell takes whole paths"
        )));
    }
    Ok(())
}

fn check_cell(path: &str, system: &str) -> Result<(), Failure> {
    tls::check_path(path).map_err(Failure::usage)?;
    if tls::root_of(path) == system {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{path} is no cell of the system {system}: its root is {system}, and others end in \
         \".{system}\""
    )))
}

/// Where a cell's nodes take links.
fn links(plan: &Plan) -> Vec<SocketAddr> {
    plan.nodes.iter().filter_map(|node| plan.sockets(node.id).links).collect()
}

/// Cells may share hosts, but not ports of them.
fn expect_apart(plan: &Plan, others: &[Plan]) -> Result<(), Failure> {
    let sockets = |plan: &Plan| -> Vec<SocketAddr> {
        plan.nodes.iter().flat_map(|node| plan.sockets(node.id).all()).collect()
    };
    let ours = sockets(plan);
    for other in others.iter().filter(|other| other.cluster != plan.cluster) {
        if let Some(taken) = sockets(other).into_iter().find(|it| ours.contains(it)) {
            return Err(Failure::Usage(format!(
                "{taken} is used by a node of {}: give other addresses, or other ports (--ring-port, \
                 --client-port, --admin-port, --link-port, --grpc)",
                other.cluster
            )));
        }
    }
    Ok(())
}
