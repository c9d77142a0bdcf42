//! Groups of the system's own, and a method.

use crate::limits::{MAX_MEMBERS, MAX_REPLICAS};
use crate::versions::{GROWTH, RULES};
use crate::{GroupId, MethodId};

/// Names that begin so are the system's: no service of people's has one.
pub const PREFIX: &str = "steadfast.";

/// The method of a merge (`docs/protocol/group.md`, "Merges"). Its arguments are the state of another
/// history. Clients may not call it.
pub const MERGE: MethodId = MethodId::of("steadfast.merge");

/// The group that keeps what people said about deployments (`docs/protocol/deployment.md`). Only
/// nodes call it: who could would have programs started on every host.
pub const MANAGER: &str = "steadfast.manager";

/// Its id.
pub const MANAGER_ID: GroupId = GroupId::of(MANAGER);

/// The group that has the book of jobs (`docs/protocol/jobs.md`). Only nodes call it: who could would
/// have programs started on every host.
pub const JOBS: &str = "steadfast.jobs";

/// Its id.
pub const JOBS_ID: GroupId = GroupId::of(JOBS);

/// The group that has the book of a cell (`docs/protocol/cells.md`). Only nodes call it: who could
/// would end the attachments of other cells.
pub const CELL: &str = "steadfast.cell";

/// Its id.
pub const CELL_ID: GroupId = GroupId::of(CELL);

/// Whether clients may not call this group, and services neither.
pub fn is_closed(group: GroupId) -> bool {
    matches!(group, MANAGER_ID | JOBS_ID | CELL_ID)
}

/// Whether this is one of the system's groups.
pub fn is_own(group: GroupId) -> bool {
    is_closed(group) || group == REGISTRY_ID
}

/// The most replicas of a group, whatever rules are in force.
pub fn most_replicas_ever(group: GroupId) -> usize {
    most_replicas(group, RULES.greatest)
}

/// The most replicas of a group, by the rules of this level: from [`GROWTH`] on, each node may have
/// one of the system's own groups.
pub fn most_replicas(group: GroupId, level: u8) -> usize {
    if level >= GROWTH && is_own(group) { MAX_MEMBERS } else { MAX_REPLICAS }
}

/// Whether a name is the system's.
pub fn is_system(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The group that keeps who can be reached by which name (`docs/protocol/registry.md`). Clients may
/// call it.
pub const REGISTRY: &str = "steadfast.registry";

/// Its id.
pub const REGISTRY_ID: GroupId = GroupId::of(REGISTRY);
