//! A cell, those above it, and those below, for people and for programs.

use std::fmt::Write;
use std::net::SocketAddr;

use admin::cell::{CellStatus, Neighbour};
use cells::{Cell, ChildPicture, Path, Place};
use os::clock::wall_clock;
use serde::Serialize;
use wire::{NodeId, Time};

/// All that a node knows of its system.
#[derive(Debug, Serialize)]
pub(super) struct Tree {
    path: Path,
    /// The node that was asked.
    node: NodeId,
    /// It is with a majority of its cell.
    current: bool,
    /// Nodes in the cell's ring.
    nodes: usize,
    /// The node that attaches the cell; `None`: no node carries.
    seat: Option<NodeId>,
    carriers: Vec<NodeId>,
    /// Where clients of this cell call others, the best first.
    calls: Vec<SocketAddr>,
    /// The attachment above.
    epoch: Option<u64>,
    /// The cells above, the attaching one first.
    above: Vec<Above>,
    below: Vec<Below>,
    exports: Vec<String>,
    /// Names of groups in the cell and below that are exported.
    names: u32,
    /// The links of the node that was asked.
    links: Vec<Neighbour>,
    is_root: bool,
}

#[derive(Debug, Serialize)]
struct Above {
    path: Path,
    links: Vec<SocketAddr>,
}

#[derive(Debug, Serialize)]
struct Below {
    path: Path,
    epoch: u64,
    nodes: u16,
    /// Milliseconds until its lease ends, if it is not renewed.
    lease_ms: u64,
    links: Vec<SocketAddr>,
}

impl Tree {
    pub(super) fn new(status: &CellStatus, book: &Cell) -> Tree {
        let picture = book.picture();
        let ranks = status.ranks.as_ref();
        let order = ranks.map(|ranks| ranks.order.clone()).unwrap_or_default();
        let carries = |node: &&NodeId| picture.carriers.iter().any(|it| it.member.node == **node);
        let carriers: Vec<NodeId> = order.iter().filter(carries).copied().collect();
        let door = |node: &NodeId| Some(book.carrier(*node)?.calls);
        let (calls, now) = (carriers.iter().filter_map(door).collect(), Time(wall_clock()));
        Tree {
            path: picture.path,
            node: status.node.node,
            current: ranks.is_some(),
            nodes: ranks.map_or(0, |ranks| ranks.members.len()),
            seat: carriers.first().copied(),
            carriers,
            calls,
            epoch: picture.epoch.map(|epoch| epoch.0),
            above: picture.above.into_iter().map(Above::from).collect(),
            below: picture.children.into_iter().map(|child| below(child, now)).collect(),
            exports: picture.exports,
            names: picture.names,
            links: status.neighbours.clone(),
            is_root: book.is_root(),
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        for (depth, above) in self.above.iter().rev().enumerate() {
            writeln!(text, "{:depth$}{}  links at {}", "", above.path, list(&above.links))?;
        }
        let depth = self.above.len();
        let attached = match (self.is_root, self.epoch) {
            (true, _) => "the root".into(),
            (false, Some(epoch)) => format!("attached as e{epoch}"),
            (false, None) => "not attached: no node of a cell above answers, or it refuses".into(),
        };
        let seat = match self.seat {
            Some(seat) => format!("seat {seat}, carriers {}", list(&self.carriers)),
            None => "no node carries ([system] listen)".into(),
        };
        write!(text, "{:depth$}{}  {attached}; {} nodes, {seat}", "", self.path, self.nodes)?;
        text.push_str(if self.current {
            "\n"
        } else {
            "; node without a majority: it may be old\n"
        });
        for below in &self.below {
            let Below { path, epoch, nodes, lease_ms, links } = below;
            let indent = depth + 1;
            write!(text, "{:indent$}{path}  attached as e{epoch}; {nodes} nodes, lease ", "")?;
            writeln!(text, "{:.1} s, links at {}", *lease_ms as f64 / 1_000.0, list(links))?;
        }
        if !self.exports.is_empty() {
            writeln!(text, "exports: {}", list(&self.exports))?;
        }
        if !self.calls.is_empty() {
            writeln!(text, "calls to other cells: at {}", list(&self.calls))?;
        }
        for Neighbour { cell, node, round_trip_us } in &self.links {
            let round_trip = match *round_trip_us {
                0 => "round trip not measured here".into(),
                us => format!("round trip {:.2} ms", us as f64 / 1_000.0),
            };
            writeln!(text, "link of {}: {cell}, {node}, {round_trip}", self.node)?;
        }
        Ok(())
    }
}

impl From<Place> for Above {
    fn from(Place { path, at }: Place) -> Above {
        Above { path, links: at }
    }
}

fn below(child: ChildPicture, now: Time) -> Below {
    let ChildPicture { place: Place { path, at }, epoch, nodes, until } = child;
    let lease_ms = u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX);
    Below { path, epoch: epoch.0, nodes, lease_ms, links: at }
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use admin::cell::Ranks;
    use cells::{Attachment, Carrier, Command, Epoch};
    use wire::{Incarnation, Member, ViewNumber};

    use super::*;

    #[test]
    fn people_see_the_cells_above_and_below_in_steps() {
        let mut book = Cell::new("a.porto".parse().unwrap());
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let member = Member { node: NodeId(2), incarnation: Incarnation(1) };
        let place = |path: &str| Place { path: path.parse().unwrap(), at: vec![at(7)] };
        let child = Attachment { place: place("x.a.porto"), epoch: Epoch(0), founded: 1, nodes: 3 };
        let now = Time(wall_clock());
        for command in [
            Command::Carry(Carrier { member, links: at(1), calls: at(2) }),
            Command::Rise { epoch: Epoch(9), seen: 0, above: vec![place("porto")] },
            Command::Attach(child),
            Command::Export("alarms".into()),
        ] {
            book.apply(now, command).unwrap();
        }
        let link =
            Neighbour { cell: "porto".parse().unwrap(), node: NodeId(1), round_trip_us: 250 };
        let order = vec![NodeId(1), NodeId(2)];
        let ranks = Ranks { view: ViewNumber(1), order, members: vec![member] };
        let mut status = CellStatus::new(member, 1, Some(ranks), &book);
        status.neighbours.push(link);
        let mut tree = Tree::new(&status, &book);
        let epoch = tree.below[0].epoch;
        assert!(tree.below[0].lease_ms <= 3_000 && tree.below[0].lease_ms > 2_000);
        tree.below[0].lease_ms = 2_900;
        assert_eq!(
            tree.text(),
            format!(
                "porto  links at 127.0.0.1:7\n \
                 a.porto  attached as e9; 1 nodes, seat n2, carriers n2\n  \
                 x.a.porto  attached as e{epoch}; 3 nodes, lease 2.9 s, links at 127.0.0.1:7\n\
                 exports: alarms\n\
                 calls to other cells: at 127.0.0.1:2\n\
                 link of n2: porto, n1, round trip 0.25 ms\n"
            )
        );
    }
}
