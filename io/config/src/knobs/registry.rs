//! `[registry]`: whether this node has a part in the registry, and how it binds its replicas there.

use registry::{Technique, Terms};
use serde::{Deserialize, Serialize};

use crate::error::Problem;

/// The registry's knobs. [`DEFAULT_CONFIG`](crate::DEFAULT_CONFIG) explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistryKnobs {
    /// This node has a replica of the registry.
    pub on: bool,
    /// The replicas of this node's groups are bound under the groups' names; `None`: they are not.
    pub groups: Option<Technique>,
    /// Lease and refresh of those, and of what is bound at the admin socket without saying more.
    pub terms: Terms,
}

impl Default for RegistryKnobs {
    fn default() -> Self {
        RegistryKnobs { on: false, groups: Some(Technique::default()), terms: Terms::default() }
    }
}

impl RegistryKnobs {
    pub(crate) fn check(&self) -> Result<(), Problem> {
        self.terms.check().map_err(|refusal| Problem::Registry(refusal.to_string()))
    }
}

/// As it stands in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Table {
    on: bool,
    bind: Bind,
    lease_ms: u32,
    refresh_ms: u32,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Bind {
    None,
    Lease,
    Notification,
    Both,
}

impl Default for Table {
    fn default() -> Self {
        RegistryKnobs::default().into()
    }
}

impl From<RegistryKnobs> for Table {
    fn from(knobs: RegistryKnobs) -> Self {
        Table {
            on: knobs.on,
            bind: match knobs.groups {
                None => Bind::None,
                Some(Technique::Lease) => Bind::Lease,
                Some(Technique::Notification) => Bind::Notification,
                Some(Technique::Both) => Bind::Both,
            },
            lease_ms: knobs.terms.lease_ms,
            refresh_ms: knobs.terms.refresh_ms,
        }
    }
}

impl From<Table> for RegistryKnobs {
    fn from(table: Table) -> Self {
        let groups = match table.bind {
            Bind::None => None,
            Bind::Lease => Some(Technique::Lease),
            Bind::Notification => Some(Technique::Notification),
            Bind::Both => Some(Technique::Both),
        };
        let (lease_ms, refresh_ms) = (table.lease_ms, table.refresh_ms);
        let technique = groups.unwrap_or_default();
        RegistryKnobs { on: table.on, groups, terms: Terms { technique, lease_ms, refresh_ms } }
    }
}
