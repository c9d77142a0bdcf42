//! A call that uses a key once more.

use crate::draft::Draft;

/// Another call under the number of one that was made, or the same when it was answered.
pub(super) struct Stray {
    pub(super) caller: usize,
    pub(super) number: u64,
    /// The place of the gateway among the clients.
    pub(super) gateway: usize,
    pub(super) draft: Draft,
    /// It is the call that the key names.
    pub(super) same: bool,
}
