//! A system as its cells' books show it.

use std::time::{Duration, Instant};

use admin::cell::CellStatus;
use cells::{Cell, Picture};
use rustix::process::Signal;
use steadfast::NodeId;
use steadfast::admin::Client as Admin;

use super::System;
use crate::Outcome;
use crate::sites::{Host, Site};
use crate::wait::until;

/// How long a system may take for anything. Far longer than a healthy one needs.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// How often it is looked. Each look asks all nodes, which takes processor time from those that
/// are measured.
const LOOK: Duration = Duration::from_millis(20);

/// A node's copy of its cell's book.
pub struct Sight {
    /// The node, and the ring as it knows it.
    pub status: CellStatus,
    /// The book.
    pub book: Cell,
}

impl Sight {
    /// The book's contents, for people.
    pub fn picture(&self) -> Picture {
        self.book.picture()
    }

    /// The nodes that carry and are in the ring, the seat first.
    pub fn carriers(&self) -> Vec<NodeId> {
        let Some(ranks) = &self.status.ranks else { return Vec::new() };
        let carries = |node: &&NodeId| {
            self.book.carrier(**node).is_some_and(|it| ranks.members.contains(&it.member))
        };
        ranks.order.iter().filter(carries).copied().collect()
    }

    /// It is attached to this cell.
    pub fn is_attached_to(&self, cell: &str) -> bool {
        let above = self.book.above().first();
        self.book.epoch().0 > 0 && above.is_some_and(|place| place.path.as_str() == cell)
    }

    /// This cell is attached here with so many nodes.
    pub fn has_below(&self, cell: &str, nodes: usize) -> bool {
        self.picture()
            .children
            .iter()
            .any(|child| child.place.path.as_str() == cell && usize::from(child.nodes) == nodes)
    }

    /// The node has a link to a node of this cell.
    pub fn is_linked_to(&self, cell: &str) -> bool {
        self.status.neighbours.iter().any(|it| it.cell.as_str() == cell)
    }
}

impl System {
    /// A connection to a node's admin socket.
    pub fn admin(&self, (site, host): (Site, Host)) -> Outcome<Admin> {
        let admin = Admin::connect(&self.node(site, host).socket)?;
        admin.set_timeout(Some(TIMEOUT))?;
        Ok(admin)
    }

    /// The first node of a cell that runs and is not stopped.
    pub fn any(&self, site: Site) -> Outcome<Host> {
        let cell = &self.cells[site];
        let lives = |host: &Host| {
            let node = &cell.nodes[host - 1];
            node.id().is_some() && !node.is_stopped
        };
        Ok((1..=cell.nodes.len()).find(lives).ok_or("no node of this cell runs")?)
    }

    /// A cell as one of its nodes sees it.
    pub fn sight(&self, site: Site) -> Outcome<Sight> {
        self.sight_of((site, self.any(site)?))
    }

    /// A cell as this node sees it.
    pub fn sight_of(&self, node: (Site, Host)) -> Outcome<Sight> {
        see(&mut self.admin(node)?, None)
    }

    /// The node that attaches a cell.
    pub fn seat(&self, site: Site) -> Outcome<Host> {
        let carriers = self.sight(site)?.carriers();
        Ok(carriers.first().ok_or("this cell has no seat")?.0 as Host)
    }

    /// Waits until a node's copy of the book is like this. Returns when it was.
    pub fn until(
        &self,
        node: (Site, Host),
        what: &str,
        is_so: impl Fn(&Sight) -> bool,
    ) -> Outcome<Instant> {
        let end = Instant::now() + TIMEOUT;
        let (mut admin, mut since) = (self.admin(node)?, None);
        loop {
            let sight = see(&mut admin, since)?;
            if is_so(&sight) {
                return Ok(Instant::now());
            }
            if Instant::now() > end {
                let (path, picture) = (self.path(node.0), sight.picture());
                return Err(format!("{path}: {what}, after {TIMEOUT:?}: {picture:?}").into());
            }
            since = Some(sight.status.version);
        }
    }

    /// Waits until all cells have all their nodes, and are attached where they belong.
    pub fn wait_until_whole(&self) -> Outcome<()> {
        self.wait_for(0..self.cells.len())
    }

    /// The same of these cells.
    pub fn wait_for(&self, sites: impl IntoIterator<Item = Site> + Clone) -> Outcome<()> {
        until(TIMEOUT, LOOK, || {
            for site in sites.clone() {
                if let Some(missing) = self.missing(site) {
                    return Ok(Err(format!("{} after {TIMEOUT:?}: {missing}", self.path(site))));
                }
            }
            Ok(Ok(()))
        })
    }

    /// The first thing that is not right in a cell, in words.
    fn missing(&self, site: Site) -> Option<String> {
        let nodes = self.cells[site].nodes.len();
        if self.is_alone(site) {
            return self.missing_alone(site);
        }
        for host in 1..=nodes {
            let sight = match self.sight_of((site, host)) {
                Ok(sight) => sight,
                Err(error) => return Some(format!("node {host} does not tell: {error}")),
            };
            let members = sight.status.ranks.as_ref().map_or(0, |ranks| ranks.members.len());
            let carriers = sight.carriers();
            if members != nodes || carriers.len() != nodes {
                return Some(format!("node {host} knows {members} members, {carriers:?} carry"));
            }
            let Some(parent) = self.parent(site) else { continue };
            if !sight.is_attached_to(self.path(parent)) {
                return Some(format!("it is attached above {:?}", sight.book.above().first()));
            }
            let is_seat = carriers.iter().take(2).any(|carrier| carrier.0 as Host == host);
            if is_seat && !sight.is_linked_to(self.path(parent)) {
                return Some(format!("node {host} has no link up"));
            }
        }
        let parent = self.parent(site)?;
        let above = self.sight(parent);
        match above.is_ok_and(|above| above.has_below(self.path(site), nodes)) {
            true => None,
            false => Some("the cell above does not have it, or not with all its nodes".into()),
        }
    }

    /// The same of a cluster of no system.
    fn missing_alone(&self, site: Site) -> Option<String> {
        let nodes = self.cells[site].nodes.len();
        (1..=nodes).find_map(|host| {
            let status = self.admin((site, host)).and_then(|mut node| Ok(node.status()?));
            let members = status.map_or(0, |status| status.ring.members.len());
            (members != nodes).then(|| format!("node {host} knows {members} members"))
        })
    }

    /// All nodes of a cell get a signal, one right after the other.
    pub fn signal_all(&mut self, site: Site, signal: Signal) -> Outcome<Instant> {
        let at = Instant::now();
        self.cells[site].nodes.iter_mut().try_for_each(|node| node.signal(signal))?;
        Ok(at)
    }
}

fn see(admin: &mut Admin, since: Option<u64>) -> Outcome<Sight> {
    let wait = since.map_or(Duration::ZERO, |_| Duration::from_millis(500));
    let status = admin.cell(since, wait)?;
    let book = status.book().ok_or("the book cannot be read")?;
    Ok(Sight { status, book })
}
