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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use channel::Notes;
    use wire::rank::Frame;

    use super::*;
    use crate::messages::Messages;

    /// A log that is full for another reason has room when the agent says so: it is to be heard.
    #[test]
    fn a_sender_waits_for_disks_only_as_long_as_they_are_behind() {
        let folder = tempfile::tempdir().unwrap();
        let kept = memlog::Kept::create(&folder.path().join("kept"), 1 << 13, 0).unwrap();
        let mut messages = Messages::new((0, 2), 1, Notes::default()).unwrap();
        let bell = Bell::new().unwrap();
        messages.hear(Frame::Keeper(1), Some(bell.file().try_clone().unwrap()));
        let send = |messages: &mut Messages| messages.send(1, 0, [&[], b"message"]).unwrap();
        assert!(send(&mut messages));
        messages.hear(Frame::Kept(1), Some(kept.file().try_clone().unwrap()));
        assert!(send(&mut messages) && !send(&mut messages), "two are on no disk");
        // They are needless by now, so no disk need have them.
        messages.hear(Frame::Needless(vec![(1, 2)]), None);
        let mut heard = 0;
        for _ in 0..2 {
            let attend = |_: &mut Messages| {
                heard += 1;
                Ok(true)
            };
            messages.wait(None, Duration::ZERO, attend).unwrap();
        }
        assert_eq!(heard, 1, "the first wait is over at once, and the second hears the agent");
        assert!(send(&mut messages));
    }
}
