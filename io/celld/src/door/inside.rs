//! The things that all callers share.

use std::sync::Arc;
use std::time::Duration;

use cells::Path;
use tls::Server;
use wire::NodeId;

use super::News;
use crate::inbound::Tell;

/// A caller shakes hands, and says who it is, within this time.
pub(super) const GREETING: Duration = Duration::from_secs(5);

/// The things that all callers share.
#[derive(Debug)]
pub(crate) struct Inside {
    pub node: NodeId,
    pub cell: Path,
    pub tls: Option<Arc<Server>>,
    pub news: News,
    pub tell: Tell,
}
