//! The things that all callers share.

use std::sync::Arc;
use std::time::Duration;

use cells::Path;
use tls::Server;
use tokio::sync::watch;
use wire::NodeId;
use wire::client::Targets;

use crate::inbound::Tell;
use crate::routes::Direct;

/// A caller shakes hands, and says who it is, within this time.
pub(super) const GREETING: Duration = Duration::from_secs(5);

/// The things that callers are told when they change.
#[derive(Clone, Debug)]
pub(crate) struct News {
    /// The nodes at which this door is, the best first.
    pub doors: watch::Receiver<Targets>,
    /// Groups of other cells that can be called directly.
    pub routes: watch::Receiver<Direct>,
}

/// The things that all callers share.
#[derive(Debug)]
pub(crate) struct Inside {
    pub node: NodeId,
    pub cell: Path,
    pub tls: Option<Arc<Server>>,
    pub news: News,
    pub tell: Tell,
}
