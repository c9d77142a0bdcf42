//! The plan of a run.

use serde::Serialize;

use super::fault::{Means, Role};

/// The cluster's name.
pub const CLUSTER: &str = "steadfast-demo";

/// The name of the service's group.
pub const GROUP: &str = "passengers";

/// The plan of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// How long events flow.
    pub seconds: f64,
    /// Events a second.
    pub rate: f64,
    /// Nodes.
    pub nodes: u32,
    /// Replicas.
    pub replicas: u32,
    /// The roles whose nodes are hit.
    pub faults: Vec<Role>,
    /// How.
    pub means: Means,
    /// The seed of all random numbers.
    pub seed: u64,
    /// With keys: TLS, and sealed datagrams.
    pub secure: bool,
    /// The folder with records and logs outlasts the run.
    #[serde(skip)]
    pub keep: bool,
}
