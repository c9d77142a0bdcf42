//! `[system]`: the links of a cell with the other cells of its system.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::Problem;

/// A cluster whose name begins with this is a cell; its path follows, the root's label last.
const CELL: &str = "cell.";

/// The most nodes that are named of the cell above.
const MAX_PARENT: usize = 32;

/// The place of the cell in its system. A system is a tree of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct System {
    /// Where this node takes links from other cells, UDP and TCP. `None`: nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Where nodes of the cell above take them. None at the root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parent: Vec<SocketAddr>,
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

/// Checks a node's place against the rest of its configuration.
pub(crate) fn check(config: &Config) -> Result<(), Problem> {
    match &config.system {
        Some(system) => system.check(config).map_err(Problem::System),
        None => Ok(()),
    }
}

impl System {
    fn check(&self, config: &Config) -> Result<(), SystemProblem> {
        // TLS has the rules for labels, and refuses what breaks them at the start.
        let path = config.cluster.strip_prefix(CELL).filter(|path| !path.is_empty());
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
        if let Some(listen) = self.listen {
            let taken = [config.client, config.admin_tls, config.grpc, config.jobs.listen];
            let mut taken = taken.iter().flatten().chain(config.ring_addresses());
            if listen.port() == 0 || taken.any(|other| other.port() == listen.port()) {
                return Err(SystemProblem::Port(listen));
            }
        }
        if config.security.tls().is_none() && !config.insecure {
            return Err(SystemProblem::NoTls);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    const KEYS: &str = "[security]\nauthority = \"authority.pem\"\ncertificate = \"node-1.pem\"\n\
                        key = \"node-1.key\"\n";

    fn file(cluster: &str, keys: &str, system: &str) -> String {
        format!(
            "node = 1\ncluster = \"{cluster}\"\n[[nodes]]\nid = 1\nring = \"127.0.0.1:7201\"\n\
             {keys}[listen]\nclient = \"127.0.0.1:7100\"\n[system]\n{system}\n"
        )
    }

    #[test]
    fn a_cell_says_where_it_takes_links_and_where_its_parents_do() {
        let links =
            "listen = \"127.0.0.1:7102\"\nparent = [\"127.0.1.1:7102\", \"127.0.1.2:7102\"]";
        let config = Config::from_toml(&file("cell.line-a.porto", KEYS, links)).unwrap();
        let system = config.system.clone().unwrap();
        assert_eq!(system.listen, Some("127.0.0.1:7102".parse().unwrap()));
        assert_eq!(system.parent.len(), 2);
        assert_eq!(Config::from_toml(&config.to_toml()).unwrap(), config, "printed and read alike");
        let root = Config::from_toml(&file("cell.porto", KEYS, "listen = \"127.0.0.1:7102\""));
        assert!(root.unwrap().system.unwrap().parent.is_empty());
        assert!(Config::from_toml(&file("cell.porto", KEYS, "")).unwrap().system.is_some());
        let open = format!("insecure = true\n{}", file("cell.porto", "", ""));
        assert!(Config::from_toml(&open).is_ok());
        let mut elsewhere = config.clone();
        elsewhere.system.as_mut().unwrap().parent.pop();
        assert_eq!(config.needs_restart(&elsewhere), ["system"]);
    }

    #[test]
    fn a_place_that_cannot_be_is_refused_with_line_and_remedy() {
        let parent = "parent = [\"127.0.1.1:7102\"]";
        let twice = "parent = [\"127.0.1.1:7102\", \"127.0.1.1:7102\"]";
        let (below, root) = ("cell.line-a.porto", "cell.porto");
        for (cluster, keys, system, expected) in [
            ("porto", KEYS, "", "line 12: [system] is for cells"),
            ("cell.", KEYS, "", "line 12: [system] is for cells"),
            (below, KEYS, "", "line 12: [system] lacks parent"),
            (root, KEYS, parent, "line 13: [system] has a parent"),
            (below, KEYS, twice, "line 13: [system] cannot have the parent 127.0.1.1:7102"),
            (below, KEYS, "parent = [\"0.0.0.0:7102\"]", "cannot have the parent"),
            (below, KEYS, "parent = [\"127.0.1.1:0\"]", "cannot have the parent"),
            (root, KEYS, "listen = \"127.0.0.1:7201\"", "line 13: [system] listen"),
            (root, KEYS, "listen = \"127.0.0.1:7100\"", "line 13: [system] listen"),
            (root, KEYS, "listen = \"127.0.0.1:0\"", "line 13: [system] listen"),
            (root, KEYS, "port = 7102", "line 13"),
            (root, "", "", "line 8: [system] needs a certificate"),
        ] {
            let text = file(cluster, keys, system);
            let refusal = Config::from_toml(&text).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{text}{refusal}");
        }
    }
}
