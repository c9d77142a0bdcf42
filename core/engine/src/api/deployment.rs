//! The events of a deployment. The I/O driver reports them; the engine's events carry them on.

use alloc::string::String;
use alloc::vec::Vec;

use wire::NodeId;

/// An event of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeploymentNews {
    /// It was created or changed.
    Deployed {
        /// How many replicas are wanted.
        replicas: u32,
    },
    /// The manager placed its replicas on these nodes.
    Placed {
        /// The nodes.
        on: Vec<NodeId>,
    },
    /// The replica at this node changes its program: to the new one, or back to the former one
    /// after a failed upgrade.
    Changing {
        /// The node.
        node: NodeId,
        /// The program and its arguments.
        program: String,
    },
    /// All replicas run the new program.
    Changed {
        /// The program and its arguments.
        program: String,
    },
    /// The new program failed, and the replicas go back to the former one.
    TakenBack {
        /// The node where it failed.
        node: NodeId,
        /// The reason.
        why: String,
    },
    /// Its program keeps ending at this node, so the replica is placed elsewhere.
    Failing {
        /// The node.
        node: NodeId,
    },
    /// The cluster state no longer has it, and its replicas end.
    Withdrawn,
}
