//! A replica's state for a file (`docs/protocol/backup.md`). It is taken as for a transfer, to
//! nobody in the group.

mod acting;

use wire::ViewNumber;

/// So many names of transfers, the last ones, are those of saves. A view would have to be numbered
/// by chance to meet one, as two transfers of different histories would.
const NAMES: u64 = 1 << 16;

/// What a save is called among the transfers.
fn name_of(number: u64) -> ViewNumber {
    ViewNumber(u64::MAX - number % NAMES)
}

pub(super) fn is_save(transfer: ViewNumber) -> bool {
    transfer.0 > u64::MAX - NAMES
}
