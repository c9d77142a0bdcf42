//! A replica's state for a file (`docs/protocol/backup.md`). It is taken as for a transfer, to
//! nobody in the group.

mod acting;

use wire::ViewNumber;

/// The number of transfer names, at the end of their range, that belong to saves. Another transfer
/// meets one only by chance, as do two transfers of different histories.
const NAMES: u64 = 1 << 16;

/// The name of a save among the transfers.
fn name_of(number: u64) -> ViewNumber {
    ViewNumber(u64::MAX - number % NAMES)
}

pub(super) fn is_save(transfer: ViewNumber) -> bool {
    transfer.0 > u64::MAX - NAMES
}
