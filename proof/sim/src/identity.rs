//! The identity of the simulated cluster.

use wire::ClusterId;

/// The name of every simulated cluster.
pub const CLUSTER: &str = "sim";

/// Its id.
pub const CLUSTER_ID: ClusterId = ClusterId::of(CLUSTER);
