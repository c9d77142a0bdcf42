//! The status of a node's security: TLS at its ports, and the seal of its datagrams.

use serde::{Deserialize, Serialize};
use wire::NodeId;

use seal::Counters as SealCounters;

/// TLS at this node's ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsStatus {
    /// The name in the node's certificate; `None`: it has none, and connections are not encrypted.
    pub certificate: Option<String>,
    /// The certificate expires within two months.
    pub expires_soon: bool,
    /// The number of connections for each name in clients' certificates. In order of name, the
    /// first 64.
    pub clients: Vec<(String, u64)>,
}

/// The seal of a node's datagrams.
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
    /// Counters since the start.
    pub counters: SealCounters,
}

/// A change of the cluster's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyChange {
    /// The next key's number.
    pub key: u8,
    /// Its fingerprint, in hexadecimal digits.
    pub fingerprint: String,
    /// The next key seals already; the last one still opens.
    pub switched: bool,
    /// The change waits only for the nodes that are in the ring.
    pub forced: bool,
    /// The nodes that the change waits for.
    pub lacking: Vec<NodeId>,
}

impl SealStatus {
    /// The status of the seal, without a change of the key.
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

    /// Adds the change that is under way, if any.
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
