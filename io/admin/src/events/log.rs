//! Events as lines of the log: one fact a line, nodes by their short names.

use engine::Event;
use wire::NodeId;

use super::known::Known;
use super::table;

/// Writes the log, and remembers what it takes to write it for people.
#[derive(Debug, Default)]
pub struct Log(Known);

impl Log {
    /// The log of node `me`. `configured`: the cluster's nodes.
    pub fn new(me: NodeId, configured: Vec<NodeId>) -> Self {
        Log(Known::new(me, configured))
    }

    /// Writes the event's line.
    pub fn write(&mut self, event: &Event) {
        self.0.learn(event);
        table::log(event, &self.0);
    }
}
