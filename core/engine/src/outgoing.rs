//! A state on its way to replicas that have none (`docs/protocol/group.md`, "State transfer").
//!
//! A small one is ordered in chunks, each after the delivery of the one before. A large one is
//! offered, and who waits for it fetches it by a stream beside the order. If a stream fails, the
//! state goes in chunks after all.

use wire::limits::STATE_CHUNK;
use wire::ordered::{Ordered, StateChunk, StateOffer};
use wire::{GroupId, Payload, ViewNumber};

/// One state. Its owner orders what it returns.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    group: GroupId,
    transfer: ViewNumber,
    state: Payload,
    /// The number of the chunk under way. `None`: it is offered.
    chunk: Option<u32>,
}

/// The step that follows a delivered chunk.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The chunk is of no transfer of this kind.
    Other,
    /// The next is to be ordered.
    Next(Ordered),
    /// It was the last.
    Over,
}

impl Outgoing {
    /// A state that begins its way, and the first message. One of at least `streamed` bytes is
    /// offered.
    pub(crate) fn begin(
        group: GroupId,
        transfer: ViewNumber,
        state: Payload,
        streamed: usize,
    ) -> (Outgoing, Ordered) {
        let bytes = state.len();
        let mut outgoing = Outgoing { group, transfer, state, chunk: None };
        let first = match bytes >= streamed {
            true => Ordered::StateOffer(StateOffer { group, transfer, bytes: bytes as u64 }),
            false => outgoing.ordered_from(0),
        };
        (outgoing, first)
    }

    /// The name of its transfer.
    pub(crate) fn transfer(&self) -> ViewNumber {
        self.transfer
    }

    /// The state, for a stream.
    pub(crate) fn state(&self) -> &Payload {
        &self.state
    }

    /// A chunk is delivered.
    pub(crate) fn delivered(&mut self, chunk: &StateChunk) -> Step {
        if chunk.transfer != self.transfer || self.chunk != Some(chunk.index) {
            return Step::Other;
        }
        if chunk.last { Step::Over } else { Step::Next(self.ordered_from(chunk.index + 1)) }
    }

    /// A replica could not fetch it: the first chunk, unless chunks are on their way already.
    pub(crate) fn declined(&mut self, transfer: ViewNumber) -> Option<Ordered> {
        (transfer == self.transfer && self.chunk.is_none()).then(|| self.ordered_from(0))
    }

    fn ordered_from(&mut self, index: u32) -> Ordered {
        self.chunk = Some(index);
        let start = index as usize * STATE_CHUNK;
        let count = STATE_CHUNK.min(self.state.len() - start);
        Ordered::StateChunk(StateChunk {
            group: self.group,
            transfer: self.transfer,
            index,
            last: start + count == self.state.len(),
            bytes: self.state.part(start, count),
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use bytes::Bytes;

    use super::*;

    const GROUP: GroupId = GroupId(1);
    const TRANSFER: ViewNumber = ViewNumber(7);

    fn state(bytes: usize) -> Payload {
        let service: Bytes = (0..bytes).map(|at| at as u8).collect::<Vec<u8>>().into();
        Payload { head: Bytes::from_static(b"head"), body: service }
    }

    /// The chunks from this one on, and that the last says so.
    fn chunks(outgoing: &mut Outgoing, mut ordered: Ordered) -> Vec<u8> {
        let mut whole = vec![];
        loop {
            let Ordered::StateChunk(chunk) = ordered else { panic!("{ordered:?} is no chunk") };
            whole.extend_from_slice(&chunk.bytes);
            match outgoing.delivered(&chunk) {
                Step::Next(next) => ordered = next,
                Step::Over => return whole,
                Step::Other => panic!("it was the one under way"),
            }
        }
    }

    #[test]
    fn a_small_state_goes_in_chunks_that_make_it_up() {
        for bytes in [0, 1, STATE_CHUNK - 4, STATE_CHUNK - 3, 3 * STATE_CHUNK] {
            let (mut outgoing, first) = Outgoing::begin(GROUP, TRANSFER, state(bytes), usize::MAX);
            assert_eq!(chunks(&mut outgoing, first), state(bytes).whole(), "{bytes}");
        }
    }

    #[test]
    fn a_large_state_is_offered_and_goes_in_chunks_only_when_it_is_declined() {
        let (mut outgoing, first) = Outgoing::begin(GROUP, TRANSFER, state(100), 104);
        let offer = StateOffer { group: GROUP, transfer: TRANSFER, bytes: 104 };
        assert_eq!(first, Ordered::StateOffer(offer));
        assert_eq!(outgoing.declined(ViewNumber(6)), None, "that was another transfer");
        let first = outgoing.declined(TRANSFER).expect("it was offered");
        assert_eq!(outgoing.declined(TRANSFER), None, "they are on their way to all");
        assert_eq!(chunks(&mut outgoing, first), state(100).whole());
    }

    #[test]
    fn chunks_of_other_transfers_move_nothing() {
        let (mut outgoing, _) = Outgoing::begin(GROUP, TRANSFER, state(STATE_CHUNK), usize::MAX);
        let chunk = |transfer, index| StateChunk {
            group: GROUP,
            transfer: ViewNumber(transfer),
            index,
            last: false,
            bytes: Bytes::new(),
        };
        for stale in [chunk(6, 0), chunk(7, 1)] {
            assert!(matches!(outgoing.delivered(&stale), Step::Other));
        }
    }
}
