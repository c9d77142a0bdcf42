//! `[jobs]`: whether this node has a part in jobs.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where jobs' images are. [`DEFAULT_CONFIG`](crate::DEFAULT_CONFIG) explains each key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobsKnobs {
    /// The folder of images and of what ranks print; `None`: this node has no part in jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Where agents of other hosts get copies of images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
}
