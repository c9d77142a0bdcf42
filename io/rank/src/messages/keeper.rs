//! The agent's thread that has messages on disks, behind their receivers.

use memlog::Bell;

use super::outgoing::Outgoing;

/// As its agent has told of it.
#[derive(Debug)]
pub(super) struct Keeper {
    /// So many messages of a channel may be on no disk before it is rung.
    pub transit: u32,
    pub bell: Bell,
}

impl Keeper {
    /// Asks for messages to be kept, where too many are not yet. True: the sender is to wait. The log
    /// has those from the first to the last.
    pub fn is_behind(&self, outgoing: &Outgoing, (first, last): (u64, u64)) -> bool {
        let Some(kept) = outgoing.last_kept() else { return false };
        let behind = last.saturating_sub(kept.max(first.saturating_sub(1)));
        let transit = u64::from(self.transit);
        if behind < transit {
            return false;
        }
        outgoing.writer().ask_to_keep();
        self.bell.ring();
        behind >= 2 * transit
    }
}
