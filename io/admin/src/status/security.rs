//! How a node is secured: TLS at its ports, and the seal of its datagrams.

use serde::{Deserialize, Serialize};
use wire::NodeId;

use seal::Counters as SealCounters;

/// How this node is secured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsStatus {
    /// Whom the node's certificate is for; `None`: there is none, and clients are not encrypted.
    pub certificate: Option<String>,
    /// The certificate has less than two months left.
    pub expires_soon: bool,
    /// Connections by the names in clients' certificates, in order of name, the first 64.
    pub clients: Vec<(String, u64)>,
}

/// How a node's datagrams are sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealStatus {
    /// The number of the cluster key that seals.
    pub key: u8,
    /// Its fingerprint, in hexadecimal digits.
    pub fingerprint: String,
    /// The numbers of all cluster keys that open.
    pub opens: Vec<u8>,
    /// The change of the key that is under way.
    #[serde(default)]
    pub change: Option<KeyChange>,
    /// What was counted since the start.
    pub counters: SealCounters,
}

/// A change of the cluster's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyChange {
    /// The next key's number.
    pub key: u8,
    /// Its fingerprint, in hexadecimal digits.
    pub fingerprint: String,
    /// It seals already; the last one still opens.
    pub switched: bool,
    /// Nodes that are away are not waited for.
    pub forced: bool,
    /// Who is waited for.
    pub lacking: Vec<NodeId>,
}

impl SealStatus {
    /// What the sealing of this life of the node is.
    pub fn new(seal: &seal::Seal) -> SealStatus {
        let key = seal.keys().sealing();
        SealStatus {
            key: key.number(),
            fingerprint: key.fingerprint().to_string(),
            opens: seal.keys().iter().map(seal::ClusterKey::number).collect(),
            change: None,
            counters: seal.counters(),
        }
    }

    /// With the change that is under way, if one is.
    pub fn with_change(self, keys: Option<&engine::KeyStatus>) -> SealStatus {
        let change = keys.and_then(|keys| keys.change.as_ref()).map(|change| KeyChange {
            key: change.key.number,
            fingerprint: seal::Fingerprint(change.key.fingerprint).to_string(),
            switched: change.switched,
            forced: change.forced,
            lacking: change.lacking.clone(),
        });
        SealStatus { change, ..self }
    }
}
