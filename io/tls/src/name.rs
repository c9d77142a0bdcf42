//! The names in certificates, and the roles that they give.
//!
//! ```text
//! node-7.plant.steadfast     node 7 of the cluster "plant"
//! node.plant.steadfast       any node of it: in every node's certificate, what clients demand
//! client-hmi.plant.steadfast a client, called "hmi"
//! admin-ops.plant.steadfast  an administrator, called "ops"
//! ```
//!
//! They are DNS names in the certificate's `subjectAltName` (RFC 5280, 4.2.1.6), and nobody looks
//! them up: a node may change its address, or be behind address translation, and stays who it is.

use std::fmt;

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;
use wire::NodeId;

/// The top of all names, which no public DNS has.
const TOP: &str = "steadfast";

/// Bytes of a label (RFC 1035, 2.3.4).
const MAX_LABEL: usize = 63;

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

    /// The owner of a name in a cluster: as certificates have it, or its first label alone.
    pub(crate) fn named(name: &str, cluster: &str) -> Option<Identity> {
        let whole = || read(&format!("{name}.{cluster}.{TOP}"));
        read(name).filter(|identity| identity.cluster == cluster).or_else(whole)
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
pub(crate) fn any_node(cluster: &str) -> String {
    format!("node.{cluster}.{TOP}")
}

/// Whether a cluster's name can stand in certificates.
///
/// # Errors
/// If not, with the rule.
pub fn check_cluster(cluster: &str) -> Result<(), NameError> {
    if is_label(cluster) { Ok(()) } else { Err(NameError::Cluster(cluster.into())) }
}

fn check_owner(role: &str, name: &str) -> Result<String, NameError> {
    let label = format!("{role}-{name}");
    if is_label(name) && name.len() <= 50 { Ok(label) } else { Err(NameError::Owner(name.into())) }
}

fn is_label(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_LABEL).contains(&text.len())
        && text.bytes().all(fits)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The identity in a name that gives one: `node.CLUSTER.steadfast` gives none.
fn read(name: &str) -> Option<Identity> {
    let mut labels = name.split('.');
    let (label, cluster, top) = (labels.next()?, labels.next()?, labels.next()?);
    if top != TOP || labels.next().is_some() {
        return None;
    }
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
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written() {
        for identity in [
            Identity::node("plant", NodeId(7)).unwrap(),
            Identity::client("plant-2", "hmi").unwrap(),
            Identity::admin("p", "on-call").unwrap(),
        ] {
            assert_eq!(read(&identity.to_string()), Some(identity));
        }
    }

    #[test]
    fn what_is_no_name_of_ours_gives_no_role() {
        for name in [
            "node.plant.steadfast",
            "node-+7.plant.steadfast",
            "node-007.plant.steadfast",
            "node-7.plant.steadfast.org",
            "node-7.plant.example",
            "root-x.plant.steadfast",
            "admin-.plant.steadfast",
            "x.admin-ops.plant.steadfast",
            "*.plant.steadfast",
            "admin-ops.Plant.steadfast",
        ] {
            assert_eq!(read(name), None, "{name}");
        }
    }

    #[test]
    fn clusters_that_cannot_stand_in_a_certificate_are_refused() {
        for cluster in ["", "Plant", "plant.two", "-plant", "plant-", "a b", "ä"] {
            assert_eq!(check_cluster(cluster), Err(NameError::Cluster(cluster.into())));
        }
        assert!(check_cluster(&"x".repeat(64)).is_err() && check_cluster("steadfast").is_ok());
        assert!(Identity::client("plant", &"x".repeat(51)).is_err());
    }
}
