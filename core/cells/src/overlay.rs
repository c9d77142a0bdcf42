//! Which cells a cell talks to directly: chosen at the start, as `stheno.txt` (2.1) demands.

use alloc::vec::Vec;
use core::net::SocketAddr;

use wire::Time;
use wire::path::Path;

use crate::cell::Cell;
use crate::command::Place;
use crate::message::MemberCell;

/// The ways of a system beyond its tree.
///
/// The tree of attachments is always there: it decides who may speak for whom, and is the last way
/// to everywhere. An overlay may know shorter ones.
pub trait Overlay {
    /// Where the nodes of a cell are that it is worth having a link to; `None`: the tree's ways do.
    fn shortcut(&mut self, now: Time, to: &Path) -> Option<Place>;

    /// This cell's links are taken there now; by the wall's clock, which its nodes share. Routers tell
    /// that at each look, so it is made only where it is wanted.
    fn handle_own(&mut self, wall: Time, cell: &Cell, at: &dyn Fn() -> Vec<SocketAddr>);

    /// A neighbour has told of cells. Returns what was news.
    fn handle_members(&mut self, now: Time, members: Vec<MemberCell>) -> Vec<MemberCell>;

    /// The cells that a new neighbour is told.
    fn members(&self) -> Vec<MemberCell>;
}

/// The tree alone (P3): a cell's state grows with its children and its depth, and with nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tree;

impl Overlay for Tree {
    fn shortcut(&mut self, _: Time, _: &Path) -> Option<Place> {
        None
    }

    fn handle_own(&mut self, _: Time, _: &Cell, _: &dyn Fn() -> Vec<SocketAddr>) {}

    fn handle_members(&mut self, _: Time, _: Vec<MemberCell>) -> Vec<MemberCell> {
        Vec::new()
    }

    fn members(&self) -> Vec<MemberCell> {
        Vec::new()
    }
}
