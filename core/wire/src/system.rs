//! Groups of the system's own.

use crate::GroupId;

/// Names that begin so are the system's: no service of people's has one.
pub const PREFIX: &str = "steadfast.";

/// The group that keeps what people said about deployments (`docs/protocol/deployment.md`). Only
/// nodes call it: who could would have programs started on every host.
pub const MANAGER: &str = "steadfast.manager";

/// Its id.
pub const MANAGER_ID: GroupId = GroupId::of(MANAGER);

/// Whether a name is the system's.
pub fn is_system(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The group that keeps who can be reached by which name (`docs/protocol/registry.md`). Clients may
/// call it.
pub const REGISTRY: &str = "steadfast.registry";

/// Its id.
pub const REGISTRY_ID: GroupId = GroupId::of(REGISTRY);
