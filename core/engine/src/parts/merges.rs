//! States of histories that were given up, on their way to the groups that go on
//! (`docs/protocol/group.md`, "Merges").

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::{MAX_MERGE, MAX_PARTED, MAX_PARTED_BYTES, UPDATE_CHUNK};
use wire::ordered::MergeChunk;
use wire::{ClientId, Duration, GroupId, Member, RingId, Time, ViewNumber};

use crate::api::Ticket;

/// A merge of which nothing is known is tried again after this long, then after twice as long each
/// time, up to 64 times.
const RETRY: Duration = Duration::from_secs(1);
const MOST_DOUBLINGS: u32 = 6;

/// Another replica's merge is waited for so long.
const OTHERS: Duration = Duration::from_secs(10);

/// A history that was given up, by its group and the client of its merge.
pub(crate) type Key = (GroupId, ClientId);

/// States to be merged: those of this node's replicas, and those whose pieces are being ordered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merges {
    parted: BTreeMap<Key, Parted>,
    /// One at a time in each group: of others, the first piece is ignored.
    arriving: BTreeMap<GroupId, Arriving>,
}

/// A history that was given up here, and counts as discarded if its state is not merged.
#[derive(Clone, Debug)]
pub(crate) struct Parted {
    /// The group's name.
    pub(crate) name: String,
    /// The calls that it had on its own.
    pub(crate) calls: u64,
    /// How often its state was sent.
    sent: u32,
    step: Step,
}

#[derive(Clone, Debug)]
enum Step {
    /// The service was asked for the state by this command.
    Asked(Ticket),
    /// It is to be sent, but not before this time.
    Waits(Bytes, Option<Time>),
    /// The piece of this index is under way, in this view.
    Goes(Bytes, (RingId, ViewNumber), u32),
    /// Another replica has the state, and should have merged it until then; `None`: it is late.
    Awaits(Option<Time>),
}

/// Pieces that were ordered.
#[derive(Clone, Debug)]
struct Arriving {
    sender: Member,
    parted: ClientId,
    within: (RingId, ViewNumber),
    next: u32,
    bytes: usize,
}

impl Merges {
    /// There is nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        self.parted.is_empty()
    }

    /// The service is asked for the state of this history. False: too many are kept already.
    pub(crate) fn ask(&mut self, key: Key, name: String, calls: u64, ticket: Ticket) -> bool {
        self.begins(key, Parted { name, calls, sent: 0, step: Step::Asked(ticket) })
    }

    /// No service has the state here, but another replica's may. False: as of [`Merges::ask`].
    pub(crate) fn await_others(&mut self, now: Time, key: Key, name: String, calls: u64) -> bool {
        self.begins(key, Parted { name, calls, sent: 0, step: Step::Awaits(Some(now + OTHERS)) })
    }

    fn begins(&mut self, key: Key, parted: Parted) -> bool {
        let fits = self.parted.len() < MAX_PARTED;
        if fits {
            self.parted.insert(key, parted);
        }
        fits
    }

    /// The merge that another replica should have made is late.
    pub(crate) fn is_overdue(&self, key: Key) -> bool {
        self.parted.get(&key).is_some_and(|parted| matches!(parted.step, Step::Awaits(None)))
    }

    /// The history whose state was asked for by this command.
    pub(crate) fn asked_by(&self, group: GroupId, by: Ticket) -> Option<Key> {
        let mut all = self.parted.iter().filter(|(key, _)| key.0 == group);
        let asked = |parted: &Parted| matches!(parted.step, Step::Asked(ticket) if ticket == by);
        all.find_map(|(key, parted)| asked(parted).then_some(*key))
    }

    /// Histories of this group whose states were asked for and have not come.
    pub(crate) fn asked(&self, group: GroupId) -> Vec<Key> {
        let asked = |(key, parted): &(&Key, &Parted)| {
            key.0 == group && matches!(parted.step, Step::Asked(_))
        };
        self.parted.iter().filter(asked).map(|(key, _)| *key).collect()
    }

    /// The state is here. False: there is no room for it.
    pub(crate) fn keep(&mut self, key: Key, state: Bytes) -> bool {
        let bytes = |parted: &Parted| match &parted.step {
            Step::Waits(state, _) | Step::Goes(state, ..) => state.len(),
            Step::Asked(_) | Step::Awaits(_) => 0,
        };
        let fits = self.parted.values().map(bytes).sum::<usize>() + state.len() <= MAX_PARTED_BYTES;
        if let Some(parted) = self.parted.get_mut(&key).filter(|_| fits) {
            parted.step = Step::Waits(state, None);
        }
        fits
    }

    /// Another replica's merge is awaited.
    pub(crate) fn awaits_others(&self, key: Key) -> bool {
        self.parted.get(&key).is_some_and(|parted| matches!(parted.step, Step::Awaits(_)))
    }

    /// The history is merged, or given up for good.
    pub(crate) fn end(&mut self, key: Key) -> Option<Parted> {
        self.parted.remove(&key)
    }

    /// Histories whose states are here, or at another replica.
    pub(crate) fn kept(&self) -> Vec<Key> {
        let kept = self.parted.iter().filter(|(_, it)| !matches!(it.step, Step::Asked(_)));
        kept.map(|(key, _)| *key).collect()
    }

    /// The first piece of a state, if it is time to send it, and no other is on its way.
    pub(crate) fn begin(
        &mut self,
        now: Time,
        key: Key,
        within: (RingId, ViewNumber),
    ) -> Option<MergeChunk> {
        if self.arriving.get(&key.0).is_some_and(|arriving| arriving.within == within) {
            return None;
        }
        let parted = self.parted.get_mut(&key)?;
        let state = match &parted.step {
            Step::Waits(state, rest) if rest.is_none_or(|until| until <= now) => state.clone(),
            Step::Goes(state, before, _) if *before != within => state.clone(),
            Step::Asked(_) | Step::Waits(..) | Step::Goes(..) | Step::Awaits(_) => return None,
        };
        let first = piece(key, within.1, &state, 0);
        parted.step = Step::Goes(state, within, 0);
        Some(first)
    }

    /// A piece of this node's is delivered. Returns the next one, if it counts and was not the last.
    pub(crate) fn delivered(
        &mut self,
        now: Time,
        chunk: &MergeChunk,
        counts: bool,
    ) -> Option<MergeChunk> {
        let key = (chunk.group, chunk.parted);
        let parted = self.parted.get_mut(&key)?;
        let Step::Goes(state, (ring, view), index) = &parted.step else { return None };
        if (*view, *index) != (chunk.view, chunk.index) {
            return None;
        }
        let (state, within) = (state.clone(), (*ring, *view));
        if chunk.last || !counts {
            // If it was executed, that is seen before.
            let pause = RETRY * (1 << parted.sent.min(MOST_DOUBLINGS));
            parted.sent += 1;
            parted.step = Step::Waits(state, Some(now + pause));
            return None;
        }
        let next = piece(key, chunk.view, &state, chunk.index + 1);
        parted.step = Step::Goes(state, within, chunk.index + 1);
        Some(next)
    }

    /// Whether this piece is the next of the state that arrives: the same at all members.
    pub(crate) fn arrives(&mut self, sender: Member, ring: RingId, chunk: &MergeChunk) -> bool {
        let within = (ring, chunk.view);
        let before = self.arriving.get(&chunk.group).filter(|it| it.within == within);
        let so_far = match (before, chunk.index) {
            (Some(before), _) if (before.sender, before.parted) != (sender, chunk.parted) => {
                return false;
            }
            (_, 0) => 0,
            (Some(before), index) if before.next == index => before.bytes,
            _ => return false,
        };
        let bytes = so_far + chunk.bytes.len();
        if chunk.last || bytes > MAX_MERGE {
            self.arriving.remove(&chunk.group);
            return bytes <= MAX_MERGE;
        }
        let (parted, next) = (chunk.parted, chunk.index + 1);
        self.arriving.insert(chunk.group, Arriving { sender, parted, within, next, bytes });
        true
    }

    /// Pieces of a state arrive in this view of the group.
    pub(crate) fn is_arriving(&self, group: GroupId, within: (RingId, ViewNumber)) -> bool {
        self.arriving.get(&group).is_some_and(|arriving| arriving.within == within)
    }

    /// The group has this view. True if pieces of another one are of no use any more.
    pub(crate) fn interrupted(&mut self, group: GroupId, within: (RingId, ViewNumber)) -> bool {
        let stale = self.arriving.get(&group).is_some_and(|arriving| arriving.within != within);
        stale && self.arriving.remove(&group).is_some()
    }

    /// When a state is to be sent again, or another replica's merge is late.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let due = self.parted.values().filter_map(|parted| match parted.step {
            Step::Waits(_, due) | Step::Awaits(due) => due,
            Step::Asked(_) | Step::Goes(..) => None,
        });
        due.min()
    }

    /// From these times on, states wait for their groups alone.
    pub(crate) fn wake(&mut self, now: Time) {
        for parted in self.parted.values_mut() {
            if let Step::Waits(_, due) | Step::Awaits(due) = &mut parted.step {
                due.take_if(|due| *due <= now);
            }
        }
    }
}

fn piece((group, parted): Key, view: ViewNumber, state: &Bytes, index: u32) -> MergeChunk {
    let start = index as usize * UPDATE_CHUNK;
    let end = state.len().min(start + UPDATE_CHUNK);
    let (last, bytes) = (end == state.len(), state.slice(start..end));
    MergeChunk { group, view, parted, index, last, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use wire::{Incarnation, NodeId};

    const KEY: Key = (GroupId(1), ClientId(2));
    const WITHIN: (RingId, ViewNumber) =
        (RingId { sequence: 4, representative: NodeId(1) }, ViewNumber(7));

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn kept(bytes: usize) -> Merges {
        let mut merges = Merges::default();
        assert!(merges.ask(KEY, "group".into(), 3, Ticket(9)));
        assert_eq!(merges.asked_by(KEY.0, Ticket(9)), Some(KEY));
        assert!(merges.keep(KEY, vec![7; bytes].into()));
        merges
    }

    #[test]
    fn pieces_of_one_sender_make_up_the_state() {
        for bytes in [0, 1, UPDATE_CHUNK, UPDATE_CHUNK + 1, 3 * UPDATE_CHUNK] {
            let (mut merges, mut other) = (kept(bytes), Merges::default());
            let mut whole = 0;
            let mut next = merges.begin(Time::ZERO, KEY, WITHIN);
            while let Some(chunk) = next {
                assert!(merges.arrives(member(1), WITHIN.0, &chunk));
                assert!(other.arrives(member(1), WITHIN.0, &chunk));
                let strange = MergeChunk { index: 0, ..chunk.clone() };
                assert_eq!(other.arrives(member(2), WITHIN.0, &strange), chunk.last);
                whole += chunk.bytes.len();
                next = merges.delivered(Time::ZERO, &chunk, true);
                assert_eq!(next.is_none(), chunk.last);
            }
            assert_eq!(whole, bytes);
            assert_eq!(merges.begin(Time::ZERO, KEY, WITHIN), None, "it is being executed");
            assert_eq!(merges.next_timeout(), Some(Time::ZERO + RETRY));
        }
    }

    #[test]
    fn another_view_begins_with_the_first_piece() {
        let mut merges = kept(2 * UPDATE_CHUNK);
        let first = merges.begin(Time::ZERO, KEY, WITHIN).unwrap();
        assert!(merges.arrives(member(1), WITHIN.0, &first));
        let second = merges.delivered(Time::ZERO, &first, true).unwrap();
        let later = (WITHIN.0, ViewNumber(8));
        assert!(!merges.interrupted(KEY.0, WITHIN));
        assert!(merges.interrupted(KEY.0, later));
        assert!(!merges.arrives(member(1), WITHIN.0, &second), "the first is gone");
        assert_eq!(merges.begin(Time::ZERO, KEY, later).unwrap().index, 0);
    }
}
