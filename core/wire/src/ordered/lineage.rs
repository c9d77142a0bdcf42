//! The components of a node's history: where two histories that meet have parted
//! (`docs/protocol/group.md`, "Histories that meet").

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::codec::{append, at_most};
use crate::limits::MAX_LINEAGE;
use crate::{Extension, Malformed, RingId};

use super::Place;

/// The components of the sender's history. A member orders it before its announcement where each
/// side of a partition goes on. It is part of no history. From level
/// [`WHOLE`](crate::versions::WHOLE) on.
///
/// ```text
/// | ring.seq | rep | count, each place |
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// The configuration that this is about.
    pub ring: RingId,
    /// The last places of components, oldest first.
    pub ends: Vec<Place>,
}

impl Lineage {
    pub(super) fn checked(self) -> Result<Lineage, Malformed> {
        at_most(self.ends.len(), MAX_LINEAGE, "lineage")?;
        Ok(self)
    }
}

impl Extension {
    /// The extension of an announcement: the ring of the first component of the sender's history.
    pub fn of_root(root: RingId) -> Extension {
        match root == RingId::default() {
            true => Extension::default(),
            false => Extension(append(Vec::new(), &root)),
        }
    }

    /// The first component of the sender's history, if it is known. What a newer program adds
    /// behind it is skipped.
    pub fn root(&self) -> Option<RingId> {
        let root = postcard::take_from_bytes::<RingId>(&self.0).ok().map(|(root, _)| root);
        root.filter(|root| *root != RingId::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeId;

    #[test]
    fn the_root_fits_an_extension() {
        let root = RingId { sequence: u64::MAX, representative: NodeId(u32::MAX) };
        let extension = Extension::of_root(root);
        assert!(extension.check().is_ok());
        assert_eq!(extension.root(), Some(root));
        assert_eq!(Extension::of_root(RingId::default()), Extension::default());
        assert_eq!(Extension::default().root(), None);
        assert_eq!(Extension(alloc::vec![255; 3]).root(), None);
    }
}
