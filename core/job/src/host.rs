//! A host, as a place for ranks.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use wire::limits::MAX_NAME;

use crate::{MAX_LABELS, MAX_PROCESSOR, Spec};

/// A host, as its agent introduces it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its labels, as `key=value`.
    pub labels: Vec<String>,
    /// Bytes of memory that ranks may have.
    pub memory: u64,
    /// Processors.
    pub processors: u32,
    /// The kind of its processors: their maker, and what programs choose their instructions by. A
    /// program's results may differ by a bit where this differs.
    pub kind: String,
    /// Where other agents get copies of images: HOST:PORT, or a socket's path on the same machine.
    pub copies: String,
}

impl Host {
    /// Whether it may be in the book.
    pub(crate) fn is_possible(&self) -> bool {
        self.copies.len() <= MAX_NAME
            && self.kind.len() <= MAX_PROCESSOR
            && self.labels.len() <= MAX_LABELS
            && self.labels.iter().all(|it| it.len() <= MAX_NAME)
    }

    /// Whether it has what a rank of such a job needs. `kind`: that of the processors where the job
    /// began.
    pub fn suits(&self, spec: &Spec, kind: Option<&str>) -> bool {
        spec.labels.iter().all(|label| self.labels.contains(label))
            && spec.memory <= self.memory
            && (spec.any_processor || kind.is_none_or(|kind| *kind == self.kind))
    }
}
