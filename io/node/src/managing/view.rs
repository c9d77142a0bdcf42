//! What the data plane shows the manager.

use std::sync::Arc;

use manager::Picture;
use manager::book::Book;

/// What there is to look at, all at one moment.
pub(crate) struct View {
    /// How often something had changed.
    pub changes: u64,
    pub picture: Picture,
    /// The book, if this node's replica has it.
    pub book: Option<Arc<Book>>,
}
