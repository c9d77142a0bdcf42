//! Writes events as lines of the log: one fact a line, nodes by their short names.

use engine::Event;
use wire::NodeId;

use super::known::Known;
use super::table;

/// Writes events into the log. It remembers names and members, to write them instead of ids.
#[derive(Debug, Default)]
pub struct Log(Known);

impl Log {
    /// The log of node `me`. `configured` are the cluster's nodes.
    pub fn new(me: NodeId, configured: Vec<NodeId>) -> Self {
        Log(Known::new(me, configured))
    }

    /// The cluster has these nodes from now on.
    pub fn set_nodes(&mut self, nodes: Vec<NodeId>) {
        self.0.configured = nodes;
    }

    /// Writes the event's line.
    pub fn write(&mut self, event: &Event) {
        self.0.learn(event);
        table::log(event, &self.0);
    }
}
