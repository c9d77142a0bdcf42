//! The overlay that the configuration has chosen.

use std::net::SocketAddr;

use cells::{Cell, MemberCell, Mesh, Overlay, Path, Place, Tree};
use wire::Time;

use crate::options::Shape;

/// One of the overlays.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    Tree(Tree),
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
