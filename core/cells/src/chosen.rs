//! The overlay of a system, where it is chosen at the start.

use alloc::vec::Vec;
use core::net::SocketAddr;

use wire::Time;
use wire::path::Path;

use crate::cell::Cell;
use crate::command::Place;
use crate::mesh::Mesh;
use crate::message::MemberCell;
use crate::overlay::{Overlay, Tree};

/// The cells that talk directly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Those above and below each other.
    #[default]
    Tree,
    /// All.
    Mesh,
}

/// One of the overlays.
#[derive(Clone, Debug)]
pub enum Chosen {
    /// For [`Shape::Tree`].
    Tree(Tree),
    /// For [`Shape::Mesh`].
    Mesh(Mesh),
}

impl From<Shape> for Chosen {
    fn from(shape: Shape) -> Chosen {
        match shape {
            Shape::Tree => Chosen::Tree(Tree),
            Shape::Mesh => Chosen::Mesh(Mesh::default()),
        }
    }
}

impl Chosen {
    fn overlay(&mut self) -> &mut dyn Overlay {
        match self {
            Chosen::Tree(tree) => tree,
            Chosen::Mesh(mesh) => mesh,
        }
    }
}

impl Overlay for Chosen {
    fn shortcut(&mut self, now: Time, to: &Path) -> Option<Place> {
        self.overlay().shortcut(now, to)
    }

    fn handle_own(&mut self, wall: Time, cell: &Cell, at: &dyn Fn() -> Vec<SocketAddr>) {
        self.overlay().handle_own(wall, cell, at);
    }

    fn handle_members(&mut self, now: Time, members: Vec<MemberCell>) -> Vec<MemberCell> {
        self.overlay().handle_members(now, members)
    }

    fn members(&self) -> Vec<MemberCell> {
        match self {
            Chosen::Tree(tree) => tree.members(),
            Chosen::Mesh(mesh) => mesh.members(),
        }
    }
}
