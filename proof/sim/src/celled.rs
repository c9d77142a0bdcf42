//! The parts of a system of cells that its two worlds share: where nodes are, the tree of cells, and
//! routers and books with the overlay and the mistake that a seed has drawn.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use cells::{Cell, Chosen, Path, Router, Shape};
use wire::NodeId;

use crate::plant::Plant;

/// One node of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) cell: usize,
    pub(crate) node: NodeId,
}

/// Where a carrier's links are taken.
pub(crate) fn address(cell: usize, node: NodeId) -> SocketAddr {
    let [.., a, b, c] = (cell as u32).to_be_bytes();
    let last = u8::try_from(node.0).expect("few carriers");
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, a, b, c)), 7_100 + u16::from(last))
}

/// The one who has this address.
pub(crate) fn place_of(address: &SocketAddr) -> At {
    let IpAddr::V4(ip) = address.ip() else { unreachable!("no other was made") };
    let [_, a, b, c] = ip.octets();
    let cell = u32::from_be_bytes([0, a, b, c]) as usize;
    At { cell, node: NodeId(u32::from(address.port() - 7_100)) }
}

/// The paths of so many cells, each with the place of its parent, so many below one at most.
pub(crate) fn tree(cells: usize, fan_out: usize) -> Vec<(Path, Option<usize>)> {
    let root: Path = "root".parse().expect("a path");
    let mut all: Vec<(Path, Option<usize>)> = vec![(root, None)];
    let mut children = vec![0];
    let mut parent = 0;
    while all.len() < cells && parent < all.len() {
        if children[parent] >= fan_out {
            parent += 1;
            continue;
        }
        match all[parent].0.child(&format!("c{}", children[parent])) {
            Ok(path) => {
                children[parent] += 1;
                all.push((path, Some(parent)));
                children.push(0);
            }
            // As deep as it may be.
            Err(_) => parent += 1,
        }
    }
    all
}

/// A node's router, with the mistake.
#[cfg(feature = "planted-bugs")]
pub(crate) fn router(node: NodeId, shape: Shape, plant: Plant) -> Router<Chosen> {
    match plant.cells {
        Some(bug) => Router::with_bug(node, shape.into(), bug),
        None => Router::new(node, shape.into()),
    }
}

/// A node's router.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) fn router(node: NodeId, shape: Shape, _: Plant) -> Router<Chosen> {
    Router::new(node, shape.into())
}

/// A cell's book, with the mistake.
#[cfg(feature = "planted-bugs")]
pub(crate) fn book(path: &Path, plant: Plant) -> Cell {
    match plant.cells {
        Some(bug) => Cell::with_bug(path.clone(), bug),
        None => Cell::new(path.clone()),
    }
}

/// The book of these bytes, with the mistake.
#[cfg(feature = "planted-bugs")]
pub(crate) fn kept_book(state: &[u8], plant: Plant) -> Option<Cell> {
    let mut book = Cell::decode(state).ok()?;
    plant.cells.into_iter().for_each(|bug| book.plant(bug));
    Some(book)
}

/// The book of these bytes.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) fn kept_book(state: &[u8], _: Plant) -> Option<Cell> {
    Cell::decode(state).ok()
}

/// A cell's book.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) fn book(path: &Path, _: Plant) -> Cell {
    Cell::new(path.clone())
}
