//! `[system]`: the links of a cell with the other cells of its system.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use wire::path::MARK;

/// The most nodes that are named of the cell above.
const MAX_PARENT: usize = 32;

/// The place of the cell in its system. A system is a tree of cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct System {
    /// Where this node takes links from other cells, UDP and TCP. `None`: nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Where nodes of the cell above take them. None at the root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parent: Vec<SocketAddr>,
    /// Where clients of this cell call groups of others. `None`: a free port beside the clients' own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<SocketAddr>,
    /// Clients of other cells may come to this node's own port for clients, where they reach it.
    /// Otherwise their calls are carried.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub direct: bool,
    /// The cells whose nodes talk directly.
    #[serde(skip_serializing_if = "Overlay::is_tree")]
    pub overlay: Overlay,
}

impl Default for System {
    fn default() -> System {
        let (listen, parent, calls, overlay) = Default::default();
        System { listen, parent, calls, direct: true, overlay }
    }
}

/// The cells whose nodes talk directly. It is one for the whole system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overlay {
    /// Those above and below each other.
    #[default]
    Tree,
    /// All, at most 256 cells.
    Mesh,
}

impl Overlay {
    /// Cells talk to those above and below them alone.
    pub fn is_tree(&self) -> bool {
        *self == Overlay::Tree
    }
}

/// A place that is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SystemProblem {
    /// The cluster is no cell.
    #[error(
        "is for cells: call the cluster cell.PATH, the root's label last, such as \
         cluster = \"cell.line-a.porto\" (`steadfast init --system` does), or leave [system] out"
    )]
    NoCell,
    /// Links would come from anybody.
    #[error(
        "needs a certificate ([security] authority, certificate and key; `steadfast init --system` \
         makes them): links are for nodes of the system's cells alone. Or, on a network whose every \
         host you trust, set insecure = true"
    )]
    NoTls,
    /// A cell hangs in the air.
    #[error(
        "lacks parent, and {0} is not the root: name where nodes of the cell above take links, such \
         as parent = [\"10.0.0.1:7102\", \"10.0.0.2:7102\"]"
    )]
    NoParent(String),
    /// Above the root is nothing.
    #[error("has a parent, and {0} is the root: leave parent out, or give the cell a longer path")]
    RootWithParent(String),
    /// An address that nobody can connect to, or this node's own, or there twice.
    #[error("cannot have the parent {0}: name each node of the cell above once, with its port")]
    Parent(SocketAddr),
    /// More than a cell has nodes.
    #[error("has {0} parents: a cell has at most {MAX_PARENT} nodes")]
    TooManyParents(usize),
    /// A port that has another use, or that nobody knows.
    #[error(
        "listen = \"{0}\" needs a port of its own, UDP and TCP: not 0, and not that of \
         [listen], [jobs] or the ring"
    )]
    Port(SocketAddr),
}

impl SystemProblem {
    /// The key to look at, if it is one's fault.
    pub(crate) fn key(&self) -> Option<&'static str> {
        match self {
            SystemProblem::NoCell | SystemProblem::NoTls | SystemProblem::NoParent(_) => None,
            SystemProblem::RootWithParent(_)
            | SystemProblem::Parent(_)
            | SystemProblem::TooManyParents(_) => Some("parent"),
            SystemProblem::Port(_) => Some("listen"),
        }
    }
}

impl System {
    /// Checks the place of the cluster of this name.
    pub(crate) fn check(&self, cluster: &str) -> Result<(), SystemProblem> {
        // TLS has the rules for labels, and refuses what breaks them at the start.
        let path = cluster.strip_prefix(MARK).filter(|path| !path.is_empty());
        let path = path.ok_or(SystemProblem::NoCell)?;
        match (path.contains('.'), self.parent.is_empty()) {
            (true, true) => return Err(SystemProblem::NoParent(path.into())),
            (false, false) => return Err(SystemProblem::RootWithParent(path.into())),
            _ => {}
        }
        if self.parent.len() > MAX_PARENT {
            return Err(SystemProblem::TooManyParents(self.parent.len()));
        }
        for (place, parent) in self.parent.iter().enumerate() {
            let nowhere = parent.port() == 0 || parent.ip().is_unspecified();
            if nowhere || self.listen == Some(*parent) || self.parent[..place].contains(parent) {
                return Err(SystemProblem::Parent(*parent));
            }
        }
        Ok(())
    }
}
