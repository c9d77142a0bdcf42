//! A comparison whose place has come (`docs/protocol/group.md`, "Replicas are compared").

mod acting;

use wire::RingId;

/// A comparison whose place has come. The service may be there much later, or never.
#[derive(Clone, Debug)]
pub(super) struct Comparing {
    at: (RingId, u64),
    executed: u64,
}
