//! A node's place.

use wire::NodeId;

/// One node of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) cell: usize,
    pub(super) node: NodeId,
}
