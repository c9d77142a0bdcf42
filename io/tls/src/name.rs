//! The names in certificates, and the roles that they give.
//!
//! ```text
//! node-7.plant.steadfast     node 7 of the cluster "plant"
//! node.plant.steadfast       any node of it: in every node's certificate, what clients demand
//! client-hmi.plant.steadfast a client, called "hmi"
//! admin-ops.plant.steadfast  an administrator, called "ops"
//! ```
//!
//! A *cell* is a cluster of a system, which is a tree of cells. Its name is `cell.` and its *path*,
//! the root's label last, so its names cover those of no other cell:
//!
//! ```text
//! node-7.cell.line-a.porto.steadfast   node 7 of the cell "line-a.porto"
//! client-hmi.cell.porto.steadfast      a client of the root cell of the system "porto"
//! ```
//!
//! They are DNS names in the certificate's `subjectAltName` (RFC 5280, 4.2.1.6), and nobody looks
//! them up: a node may change its address, or be behind address translation, and stays who it is.

use std::fmt;

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;
use wire::NodeId;
use wire::path::{self, MARK, Path, is_label};

/// The top of all names, which no public DNS has.
const TOP: &str = "steadfast";

/// The permissions of a certificate's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It is this node of the cluster.
    Node(NodeId),
    /// It may call services.
    Client,
    /// It may look into nodes, and call services.
    Admin,
}

/// The subject of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The owner's permissions.
    pub role: Role,
    /// In which cluster.
    pub cluster: String,
    /// The first label: `node-7`, `client-hmi`.
    label: String,
}

/// A name that is not possible, or a certificate without one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The cluster's name is no label of a DNS name.
    #[error(
        "cluster = \"{0}\" cannot stand in certificates: use 1 to 63 lower-case letters, digits \
         and hyphens, and no hyphen at either end"
    )]
    Cluster(String),
    /// A cell's path is not possible.
    #[error(transparent)]
    Path(#[from] path::NameError),
    /// The name of a client or administrator is no label.
    #[error(
        "the name \"{0}\" cannot stand in certificates: use lower-case letters, digits and \
         hyphens, at most 50, and no hyphen at either end"
    )]
    Owner(String),
    /// The certificate is not one of Steadfast.
    #[error(
        "the certificate names no node, client or admin of a cluster (such as \
         client-hmi.CLUSTER.steadfast): make one with `steadfast init`"
    )]
    None,
}

impl Identity {
    /// The node of a cluster.
    ///
    /// # Errors
    /// The cluster's name cannot stand in certificates.
    pub fn node(cluster: &str, node: NodeId) -> Result<Identity, NameError> {
        Identity::new(cluster, Role::Node(node), format!("node-{}", node.0))
    }

    /// A client of a cluster.
    ///
    /// # Errors
    /// A name cannot stand in certificates.
    pub fn client(cluster: &str, name: &str) -> Result<Identity, NameError> {
        Identity::new(cluster, Role::Client, check_owner("client", name)?)
    }

    /// An administrator of a cluster.
    ///
    /// # Errors
    /// A name cannot stand in certificates.
    pub fn admin(cluster: &str, name: &str) -> Result<Identity, NameError> {
        Identity::new(cluster, Role::Admin, check_owner("admin", name)?)
    }

    fn new(cluster: &str, role: Role, label: String) -> Result<Identity, NameError> {
        check_cluster(cluster)?;
        Ok(Identity { role, cluster: cluster.into(), label })
    }

    /// The path of its cell, such as `line-a.porto`. `None`: the cluster is no cell.
    pub fn path(&self) -> Option<&str> {
        path_of(&self.cluster)
    }

    /// The system that its cell is in: the label of the root. `None`: the cluster is no cell.
    pub fn system(&self) -> Option<&str> {
        self.path().map(root_of)
    }

    /// Both are of cells of one system. The names alone say so: a check against the system's
    /// authority has to come before.
    pub fn shares_system(&self, other: &Identity) -> bool {
        self.system().is_some() && self.system() == other.system()
    }

    /// All names of the certificate, its own first.
    pub fn names(&self) -> Vec<String> {
        let own = self.to_string();
        match self.role {
            Role::Node(_) => vec![own, any_node(&self.cluster)],
            Role::Client | Role::Admin => vec![own],
        }
    }

    /// The first label of the name: `node-7`, `client-hmi`. Also the name of its files.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The name by which rules of this cluster know it: the first label, and with an `@` the path of
    /// its cell, if that is another: `client-hmi@line-b.porto`.
    pub fn name_in(&self, cluster: &str) -> String {
        match self.path() {
            Some(path) if self.cluster != cluster => format!("{}@{path}", self.label),
            _ => self.label.clone(),
        }
    }

    /// The owner of a name in a cluster: as certificates have it, or its first label alone. Whole
    /// names may also be those of other cells of the cluster's system.
    pub(crate) fn named(name: &str, cluster: &str) -> Option<Identity> {
        let system = path_of(cluster).map(root_of);
        let near =
            |it: &Identity| it.cluster == cluster || system.is_some_and(|_| it.system() == system);
        let short = || read(&format!("{name}.{cluster}.{TOP}")).filter(|it| it.cluster == cluster);
        read(name).filter(near).or_else(short)
    }

    /// Reads the identity in a certificate, without a check that it is genuine.
    ///
    /// # Errors
    /// It is not one of Steadfast.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Identity, NameError> {
        let certificate = EndEntityCert::try_from(certificate).map_err(|_| NameError::None)?;
        certificate.valid_dns_names().find_map(read).ok_or(NameError::None)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{TOP}", self.label, self.cluster)
    }
}

/// The name that every node of a cluster has.
pub fn any_node(cluster: &str) -> String {
    format!("node.{cluster}.{TOP}")
}

/// The top of all names of a cluster, or of a system: its authority makes no others.
pub(crate) fn top_of(cluster: &str) -> String {
    format!("{cluster}.{TOP}")
}

/// The cluster that is the cell of this path.
pub fn cell(path: &str) -> String {
    format!("{MARK}{path}")
}

/// The path of the cell that is this cluster. `None`: it is no cell.
pub fn path_of(cluster: &str) -> Option<&str> {
    cluster.strip_prefix(MARK)
}

/// The last label of a path: the system's name.
pub fn root_of(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The path of the cell above. `None`: this is the root's.
pub fn parent_of(path: &str) -> Option<&str> {
    path.split_once('.').map(|(_, above)| above)
}

/// Whether a cluster's name can stand in certificates: a label, or a cell's.
///
/// # Errors
/// If not, with the rule.
pub fn check_cluster(cluster: &str) -> Result<(), NameError> {
    match path_of(cluster) {
        Some(path) => check_path(path),
        None if is_label(cluster) => Ok(()),
        None => Err(NameError::Cluster(cluster.into())),
    }
}

/// Whether this can be the path of a cell.
///
/// # Errors
/// If not, with the rule.
pub fn check_path(path: &str) -> Result<(), NameError> {
    path.parse::<Path>()?;
    Ok(())
}

fn check_owner(role: &str, name: &str) -> Result<String, NameError> {
    let label = format!("{role}-{name}");
    if is_label(name) && name.len() <= 50 { Ok(label) } else { Err(NameError::Owner(name.into())) }
}

/// The identity in a name that gives one: `node.CLUSTER.steadfast` gives none.
fn read(name: &str) -> Option<Identity> {
    let (label, rest) = name.split_once('.')?;
    let cluster = rest.strip_suffix(TOP)?.strip_suffix('.')?;
    let (role, owner) = label.split_once('-')?;
    match role {
        // As it is written, not "node-+7" or "node-007": one node has one name.
        "node" => Identity::node(cluster, NodeId(owner.parse().ok()?)).ok(),
        "client" => Identity::client(cluster, owner).ok(),
        "admin" => Identity::admin(cluster, owner).ok(),
        _ => None,
    }
    .filter(|identity| identity.label == label)
}

#[cfg(test)]
mod tests;
