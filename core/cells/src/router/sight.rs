//! The knowledge that a router has of its cell.

use alloc::vec::Vec;
use core::net::SocketAddr;

use wire::{NodeId, Time};

use crate::cell::Cell;
use crate::limits::MAX_PLACES;

/// Carriers of a cell that have links.
pub const LINKING: usize = 2;

/// A node's knowledge of its cell at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// Its copy of the book.
    pub cell: &'a Cell,
    /// Its place among the cell's carriers, the seat's first. `None`: it has none, or does not know.
    pub rank: Option<usize>,
    /// The carriers that are there, the seat first.
    pub order: &'a [NodeId],
    /// The nodes of the cell above that the configuration names.
    pub parent: &'a [SocketAddr],
    /// Nodes of the cell.
    pub nodes: u16,
    /// The wall's clock, in nanoseconds since the Unix epoch.
    pub wall: Time,
}

impl Sight<'_> {
    pub(super) fn is_seat(&self) -> bool {
        self.rank == Some(0)
    }

    pub(super) fn links_up(&self) -> bool {
        self.rank.is_some_and(|rank| rank < LINKING)
    }

    /// Where the links of this cell are taken, the seat's node first.
    pub(super) fn links_at(&self) -> Vec<SocketAddr> {
        self.places().collect()
    }

    /// They are taken there.
    pub(super) fn links_are(&self, at: &[SocketAddr]) -> bool {
        self.places().eq(at.iter().copied())
    }

    fn places(&self) -> impl Iterator<Item = SocketAddr> {
        let carriers = self.order.iter().filter_map(|node| self.cell.carrier(*node));
        carriers.map(|carrier| carrier.links).take(MAX_PLACES)
    }
}
