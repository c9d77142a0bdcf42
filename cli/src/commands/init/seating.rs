//! The place of new hosts in a system: in cells with room, or in a new cell.
//!
//! Certificates are made where the authorities' keys are. So that place seats hosts, and not the
//! root's nodes, as in `stheno.txt`, section 3.2: docs/decisions/0077-seating.md.

use std::net::IpAddr;

use super::plan::{CELL_NODES, NodeSpec, Plan};
use crate::commands::Failure;

/// Cells below one are founded up to this depth: paths have a limit.
const DEPTH: usize = wire::path::MAX_DEPTH;

/// The rules of seating.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Only this cell and those below it are considered.
    pub under: Option<String>,
    /// A cell has room up to so many nodes.
    pub room: usize,
}

/// Nodes to make, all in one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seats {
    /// The cell.
    pub path: String,
    /// The cell is to be founded.
    pub is_new: bool,
    /// The nodes.
    pub nodes: Vec<NodeSpec>,
}

/// Finds a place for each host. The smallest cell comes first, of equal ones the one nearest to the
/// root; hosts for which no cell has room found others.
pub fn seat(cells: &[Plan], hosts: &[IpAddr], rules: &Rules) -> Result<Vec<Seats>, Failure> {
    let mut known: Vec<Known<'_>> = cells.iter().filter_map(Known::new).collect();
    known.sort_by_key(|cell| (cell.depth(), cell.path));
    refuse_known_hosts(&known, hosts)?;
    let taken: Vec<String> = known.iter().map(|cell| cell.path.to_owned()).collect();
    if let Some(under) = &rules.under {
        known.retain(|cell| cell.path == under || cell.path.ends_with(&format!(".{under}")));
    }
    if known.is_empty() {
        let where_to = rules.under.as_deref().unwrap_or("the system");
        return Err(Failure::Usage(format!(
            "{where_to} has no cell here: `steadfast cell found` makes one"
        )));
    }
    let mut left = hosts.iter().copied();
    let mut waiting = left.next();
    while let Some(host) = waiting {
        let smallest = known.iter_mut().min_by_key(|cell| cell.count());
        let Some(cell) = smallest.filter(|cell| cell.count() < rules.room) else { break };
        cell.add(host);
        waiting = left.next();
    }
    let homeless: Vec<IpAddr> = waiting.into_iter().chain(left).collect();
    let founded = found(&known, &homeless, taken, rules)?;
    let grown = known.into_iter().filter(|cell| !cell.new.is_empty()).map(|cell| Seats {
        path: cell.path.to_owned(),
        is_new: false,
        nodes: cell.new,
    });
    Ok(founded.into_iter().chain(grown).collect())
}

/// A cell that is there.
struct Known<'a> {
    path: &'a str,
    plan: &'a Plan,
    new: Vec<NodeSpec>,
}

impl Known<'_> {
    /// `None`: it is none of a system.
    fn new(plan: &Plan) -> Option<Known<'_>> {
        Some(Known { path: tls::path_of(&plan.cluster)?, plan, new: Vec::new() })
    }

    fn depth(&self) -> usize {
        depth(self.path)
    }

    fn count(&self) -> usize {
        self.plan.nodes.len() + self.new.len()
    }

    fn add(&mut self, address: IpAddr) {
        let nodes = self.plan.nodes.iter().chain(&self.new).map(|node| node.id);
        let highest = nodes.chain(self.plan.retired.iter().copied()).max();
        let id = wire::NodeId(highest.map_or(1, |id| id.0 + 1));
        self.new.push(NodeSpec { id, address });
    }
}

fn depth(path: &str) -> usize {
    path.split('.').count() - 1
}

fn refuse_known_hosts(known: &[Known<'_>], hosts: &[IpAddr]) -> Result<(), Failure> {
    for (place, host) in hosts.iter().enumerate() {
        if hosts[..place].contains(host) {
            return Err(Failure::Usage(format!("{host} is there twice: name each host once")));
        }
        let node = |cell: &Known<'_>| {
            let found = cell.plan.nodes.iter().find(|node| node.address == *host);
            found.map(|node| format!("node {} of {}", node.id.0, cell.path))
        };
        if let Some(node) = known.iter().find_map(node) {
            return Err(Failure::Usage(format!(
                "{host} has a node already, {node}: name hosts that have none"
            )));
        }
    }
    Ok(())
}

/// New cells for these hosts, as few as can be and of about one size, each below the cell that has
/// the fewest below it.
fn found(
    known: &[Known<'_>],
    hosts: &[IpAddr],
    mut taken: Vec<String>,
    rules: &Rules,
) -> Result<Vec<Seats>, Failure> {
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    if hosts.len() < *CELL_NODES.start() {
        let hosts: Vec<String> = hosts.iter().map(IpAddr::to_string).collect();
        return Err(Failure::Usage(format!(
            "no cell has room for {}: a new one needs {} hosts, or let cells be larger, up to {}, \
             with --room",
            hosts.join(", "),
            CELL_NODES.start(),
            CELL_NODES.end()
        )));
    }
    let count = hosts.len().div_ceil(rules.room);
    let mut seats = Vec::new();
    for number in 0..count {
        let part = &hosts[number * hosts.len() / count..(number + 1) * hosts.len() / count];
        let below =
            |path: &str| taken.iter().filter(|other| tls::parent_of(other) == Some(path)).count();
        let parents = known.iter().filter(|cell| cell.depth() + 1 < DEPTH);
        let Some(parent) = parents.min_by_key(|cell| below(cell.path)) else {
            return Err(Failure::Usage(format!(
                "a system has at most {DEPTH} levels: name a higher cell with --under"
            )));
        };
        let path = (1..)
            .map(|number| format!("cell-{number}.{}", parent.path))
            .find(|path| !taken.contains(path))
            .expect("numbers do not end");
        let nodes = (1..)
            .zip(part)
            .map(|(id, address)| NodeSpec { id: wire::NodeId(id), address: *address });
        seats.push(Seats { path: path.clone(), is_new: true, nodes: nodes.collect() });
        taken.push(path);
    }
    Ok(seats)
}

#[cfg(test)]
mod tests {
    use super::super::plan::Ports;
    use super::*;

    const PORTS: Ports = Ports { ring: 1, client: 2, admin: 3, links: 4 };

    fn host(number: u8) -> IpAddr {
        IpAddr::from([10, 9, 0, number])
    }

    fn hosts(count: u8) -> Vec<IpAddr> {
        (1..=count).map(host).collect()
    }

    /// A cell with so many nodes, of hosts that no other has.
    fn cell(number: u8, path: &str, nodes: u8) -> Plan {
        let node = |id: u8| NodeSpec {
            id: wire::NodeId(id.into()),
            address: IpAddr::from([10, number, 0, id]),
        };
        Plan::cell(path, (1..=nodes).map(node).collect(), PORTS, None, Vec::new()).unwrap()
    }

    fn seated(cells: &[Plan], count: u8, under: Option<&str>, room: usize) -> Vec<String> {
        let rules = Rules { under: under.map(str::to_owned), room };
        let seats = seat(cells, &hosts(count), &rules).unwrap();
        let nodes = |seats: Seats| {
            let new = if seats.is_new { "new " } else { "" };
            let ids: Vec<String> = seats.nodes.iter().map(|it| it.id.0.to_string()).collect();
            format!("{new}{}: {}", seats.path, ids.join(" "))
        };
        seats.into_iter().map(nodes).collect()
    }

    fn refused(cells: &[Plan], hosts: &[IpAddr], under: Option<&str>, room: usize) -> String {
        let rules = Rules { under: under.map(str::to_owned), room };
        match seat(cells, hosts, &rules) {
            Err(Failure::Usage(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_smallest_cell_comes_first_and_of_equal_ones_the_highest() {
        let cells = [cell(1, "porto", 4), cell(2, "b.porto", 3), cell(3, "a.porto", 3)];
        assert_eq!(seated(&cells, 1, None, 16), ["a.porto: 4"]);
        assert_eq!(seated(&cells, 4, None, 16), ["porto: 5", "a.porto: 4 5", "b.porto: 4"]);
        assert_eq!(seated(&cells, 2, Some("b.porto"), 16), ["b.porto: 4 5"]);
    }

    #[test]
    fn a_number_that_was_retired_is_not_given_again() {
        let mut cells = [cell(1, "porto", 5)];
        cells[0].retire(&[5]).unwrap();
        assert_eq!(seated(&cells, 1, None, 16), ["porto: 6"]);
    }

    #[test]
    fn full_cells_found_others_below_those_that_have_fewest() {
        let cells = [cell(1, "porto", 5), cell(2, "cell-1.porto", 5)];
        assert_eq!(seated(&cells, 4, None, 5), ["new cell-1.cell-1.porto: 1 2 3 4"]);
        let many = ["new cell-1.cell-1.porto: 1 2 3", "new cell-2.porto: 1 2 3 4"];
        assert_eq!(seated(&cells, 7, None, 5), many);
        let both = ["new cell-1.cell-1.porto: 1 2 3", "porto: 6", "cell-1.porto: 6"];
        assert_eq!(seated(&cells, 5, None, 6), both);
        let why = refused(&cells, &hosts(2), None, 5);
        assert!(why.contains("10.9.0.1, 10.9.0.2: a new one needs 3") && why.contains("--room"));
        for count in 3..60 {
            for room in 5..=32 {
                let rules = Rules { under: None, room };
                let seats = seat(&cells[..1], &hosts(count), &rules);
                let sizes = |seats: Vec<Seats>| -> Vec<usize> {
                    seats.iter().filter(|it| it.is_new).map(|it| it.nodes.len()).collect()
                };
                // One or two more than there is room for have no place.
                let sizes = seats.map(sizes).unwrap_or_default();
                assert!(sizes.iter().all(|size| (3..=room).contains(size)), "{sizes:?} {room}");
            }
        }
    }

    #[test]
    fn a_host_has_one_node_and_a_subtree_must_be_there() {
        let cells = [cell(1, "porto", 4)];
        let why = refused(&cells, &[IpAddr::from([10, 1, 0, 2])], None, 16);
        assert!(why.contains("10.1.0.2 has a node already, node 2 of porto"), "{why}");
        let why = refused(&cells, &[host(1), host(1)], None, 16);
        assert!(why.contains("twice"), "{why}");
        let why = refused(&cells, &hosts(1), Some("x.porto"), 16);
        assert!(why.contains("x.porto has no cell here"), "{why}");
    }
}
