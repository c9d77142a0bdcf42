//! What people have said of a service, and what the manager has decided of it. the driver knows it; it is told in the one stream of events.

use alloc::string::String;
use alloc::vec::Vec;

use wire::NodeId;

/// What happened to a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeploymentNews {
    /// It was said, or said anew.
    Deployed {
        /// How many replicas are wanted.
        replicas: u32,
    },
    /// Its replicas are to be on these nodes.
    Placed {
        /// The nodes.
        on: Vec<NodeId>,
    },
    /// The replica at this node is to run another program: the new one, or after it was taken back the former.
    Changing {
        /// The node.
        node: NodeId,
        /// The program and its arguments.
        program: String,
    },
    /// All replicas run it.
    Changed {
        /// The program and its arguments.
        program: String,
    },
    /// The new program is taken back.
    TakenBack {
        /// Where it failed.
        node: NodeId,
        /// Why, in words.
        why: String,
    },
    /// Its program ends again and again at this node: it is tried elsewhere.
    Failing {
        /// The node.
        node: NodeId,
    },
    /// It is forgotten, and its replicas end.
    Withdrawn,
}
