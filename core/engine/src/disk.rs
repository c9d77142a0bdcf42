//! This node's disk: the records given to it, the stored ones and the recovered ones
//! (`docs/protocol/store.md`, "How groups use it").

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::mem;

use bytes::Bytes;
use wire::kept::{
    BEGUN, FOLLOWED, GroupState, LOST, NODE, NodeRecord, Recollection, TAKEN, decode_style,
};
use wire::limits::MAX_GROUPS;
use wire::ordered::{MAX_ATTEMPTS, Place, Style};
use wire::{GroupId, Incarnation, Malformed};

/// The node appends so many of its own records; then a snapshot replaces them.
const MOST_RECORDS: u64 = 1_000;

/// A record or snapshot that a node's store keeps or returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The group; `None`: the node itself.
    pub strand: Option<GroupId>,
    /// The record's number in [`wire::kept`]; `None`: a snapshot.
    pub kind: Option<u8>,
    /// The place in the order at which it was delivered.
    pub place: Place,
    /// Its content.
    pub bytes: Bytes,
}

/// The contents that a node's store returned when it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovery {
    recollection: Recollection,
    /// The largest place of any record.
    reached: Place,
    strands: BTreeMap<GroupId, Strand>,
}

/// The recovered data of one group's replica.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Strand {
    /// The group's style before the log.
    pub(crate) style: Style,
    /// Its state, with its sessions, before the log; `None`: the service's initial state.
    pub(crate) state: Option<Bytes>,
    /// The ordered messages that the replica took since.
    pub(crate) log: Vec<Bytes>,
    /// The place of the last one.
    pub(crate) taken: Place,
    /// Messages of a place whose last message is missing.
    part: Vec<(Place, Bytes)>,
}

impl Strand {
    fn new(style: Style, state: Option<Bytes>, taken: Place) -> Strand {
        Strand { style, state, log: Vec::new(), taken, part: Vec::new() }
    }
}

impl Recovery {
    /// Reads the contents of a store in their order: the snapshot of each strand comes first. An
    /// empty store gives an empty result.
    ///
    /// # Errors
    /// [`Malformed`]: a record is not one of this version. The store itself is well; use the
    /// program that wrote it, or move its folder away.
    pub fn read(pieces: impl IntoIterator<Item = Kept>) -> Result<Recovery, Malformed> {
        let mut recovery = Recovery::default();
        for piece in pieces {
            recovery.reached = recovery.reached.max(piece.place);
            recovery.add(piece)?;
        }
        Ok(recovery)
    }

    fn add(&mut self, piece: Kept) -> Result<(), Malformed> {
        let Kept { strand, kind, place, bytes } = piece;
        match (strand, kind) {
            (None, None) => self.recollection = Recollection::decode(&bytes)?,
            (None, Some(NODE)) => apply(&mut self.recollection, NodeRecord::decode(&bytes)?, place),
            (Some(group), None) => {
                let GroupState { style, state } = GroupState::decode(&bytes)?;
                self.strands.insert(group, Strand::new(style, Some(state), place));
            }
            (Some(group), Some(BEGUN)) => {
                self.strands.insert(group, Strand::new(decode_style(&bytes)?, None, place));
            }
            (Some(group), Some(LOST)) => {
                self.strands.remove(&group);
            }
            (Some(group), Some(TAKEN)) => {
                // Requests taken during a state transfer are worth nothing without the state.
                if let Some(strand) = self.strands.get_mut(&group) {
                    let part = mem::take(&mut strand.part).into_iter();
                    strand.log.extend(part.filter(|(at, _)| *at == place).map(|(_, bytes)| bytes));
                    strand.log.push(bytes);
                    strand.taken = place;
                }
            }
            (Some(group), Some(FOLLOWED)) => {
                if let Some(strand) = self.strands.get_mut(&group) {
                    strand.part.retain(|(at, _)| *at == place);
                    strand.part.push((place, bytes));
                }
            }
            (_, Some(kind)) => return Err(Malformed::Kind(kind)),
        }
        Ok(())
    }

    pub(crate) fn recollection(&self) -> &Recollection {
        &self.recollection
    }

    /// The level of the rules that are in force, as far as the disk knows; 0: it knows none. Only a
    /// program that knows them may go on from here.
    pub fn level(&self) -> u8 {
        self.recollection.level
    }

    pub(crate) fn reached(&self) -> Place {
        self.reached
    }

    /// Ordered messages that the services are to execute again.
    pub fn messages(&self) -> usize {
        self.strands.values().map(|strand| strand.log.len()).sum()
    }
}

/// Adds one of the node's own records to the recollection.
fn apply(recollection: &mut Recollection, record: NodeRecord, place: Place) {
    match record {
        NodeRecord::Since(since) => recollection.since = since,
        NodeRecord::Installed { component, groups, volatile, level } => {
            if recollection.attempts.len() == MAX_ATTEMPTS {
                recollection.attempts.remove(0);
            }
            recollection.attempts.push(component);
            recollection.groups = groups.into_iter().map(|group| (group, place)).collect();
            recollection.volatile = volatile;
            recollection.level = level;
        }
        NodeRecord::Effective => {
            if let Some(effective) = recollection.attempts.pop() {
                recollection.last = effective;
                recollection.attempts.clear();
            }
        }
        NodeRecord::Changed(group) => {
            recollection.groups.retain(|(known, _)| known.name != group.name);
            recollection.groups.push((group, place));
            if recollection.groups.len() > MAX_GROUPS {
                // Entries of groups that are gone are kept as long as there is room.
                let gone = recollection.groups.iter().position(|(group, _)| group.is_gone());
                recollection.groups.remove(gone.expect("the table is bounded"));
            }
        }
        NodeRecord::Volatile(volatile) => recollection.volatile = volatile,
        NodeRecord::Level(level) => recollection.level = level,
    }
}

/// A record that is not on the disk yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u64,
    /// Places from here on do not count as stored while the record is not on the disk.
    from: u64,
    /// Places up to here count as stored once it is.
    to: u64,
}

/// This node's disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    recollection: Recollection,
    strands: BTreeMap<GroupId, Strand>,
    /// Records given to it.
    appended: u64,
    /// The last record that is on the disk.
    persisted: u64,
    pending: VecDeque<Pending>,
    /// All places up to here are stored, in the present configuration.
    stored: u64,
    /// The node's own records since its last snapshot.
    own: u64,
    /// The life since which the node has forgotten nothing is on the disk.
    begun: bool,
}

impl Disk {
    pub(crate) fn new(recovery: Recovery) -> Disk {
        Disk {
            begun: recovery.recollection.since != Incarnation::default(),
            recollection: recovery.recollection,
            strands: recovery.strands,
            appended: 0,
            persisted: 0,
            pending: VecDeque::new(),
            stored: 0,
            own: 0,
        }
    }

    /// The life in which the store was made; none before the first record is written.
    pub(crate) fn since(&self) -> Incarnation {
        self.recollection.since
    }

    /// A later life will know that it has forgotten nothing of this one.
    pub(crate) fn is_begun(&self) -> bool {
        self.begun
    }

    pub(crate) fn recollection(&self) -> &Recollection {
        &self.recollection
    }

    /// Takes the recovered data of this group's replica; the second time there is none.
    pub(crate) fn take(&mut self, group: GroupId) -> Option<Strand> {
        self.strands.remove(&group)
    }

    /// Data of this group's replica was recovered, and the replica is not hosted yet.
    pub(crate) fn has(&self, group: GroupId) -> bool {
        self.strands.contains_key(&group)
    }

    /// Groups whose recovered replica is not hosted yet.
    pub(crate) fn waiting(&self) -> Vec<GroupId> {
        self.strands.keys().copied().collect()
    }

    /// Appends a record of a group. `bound` (from, to): the places that count as stored as the
    /// record says; without it no place waits for the record.
    pub(crate) fn append(&mut self, bound: Option<(u64, u64)>) -> u64 {
        self.appended += 1;
        let number = self.appended;
        self.pending.extend(bound.map(|(from, to)| Pending { number, from, to }));
        number
    }

    /// Appends a record of the node. True if a snapshot is to replace all of them.
    pub(crate) fn note(
        &mut self,
        record: NodeRecord,
        place: Place,
        bound: Option<(u64, u64)>,
    ) -> bool {
        apply(&mut self.recollection, record, place);
        self.append(bound);
        self.own += 1;
        self.own >= MOST_RECORDS
    }

    /// Returns a snapshot that replaces the node's own records so far.
    pub(crate) fn snapshot(&mut self) -> Bytes {
        self.own = 0;
        self.recollection.encode()
    }

    /// All records up to this one are on the disk.
    pub(crate) fn has_all(&self, upto: u64) -> bool {
        upto <= self.persisted
    }

    /// The number of the last record.
    pub(crate) fn appended(&self) -> u64 {
        self.appended
    }

    /// All records up to this one are on the disk. Returns the last stored place, if it has grown.
    pub(crate) fn persisted(&mut self, upto: u64) -> Option<u64> {
        self.begun |= upto > 0; // the first record says since when
        self.persisted = self.persisted.max(upto);
        let mut stored = self.stored;
        while let Some(first) = self.pending.front().filter(|first| first.number <= upto) {
            stored = stored.max(first.to);
            self.pending.pop_front();
        }
        if let Some(first) = self.pending.front() {
            // The places between the two have nothing to store.
            stored = first.from.saturating_sub(1).max(self.stored);
        }
        let grown = stored > self.stored;
        self.stored = stored;
        grown.then_some(stored)
    }

    /// Places are numbered anew: none counts as stored before all records so far are.
    pub(crate) fn new_configuration(&mut self) {
        self.stored = 0;
        self.pending.iter_mut().for_each(|pending| (pending.from, pending.to) = (0, 0));
    }

    pub(crate) fn check_invariants(&self) {
        let from = self.pending.iter().map(|pending| pending.from);
        assert!(from.is_sorted(), "records are given in the order of what they bound");
        assert!(self.recollection.groups.len() <= MAX_GROUPS, "what is recalled is bounded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(kind: u8, sequence: u64, bytes: &'static [u8]) -> Kept {
        let place = Place { sequence, ..Place::default() };
        Kept { strand: Some(GroupId(7)), kind: Some(kind), place, bytes: Bytes::from_static(bytes) }
    }

    fn log(pieces: &[Kept]) -> (Vec<Bytes>, u64) {
        let mut recovery = Recovery::read(pieces.iter().cloned()).expect("all can be read");
        let strand = recovery.strands.remove(&GroupId(7)).expect("it began");
        (strand.log, strand.taken.sequence)
    }

    /// The simulator's seed 470 of the world of disks.
    #[test]
    fn a_place_is_on_the_disk_when_all_its_messages_are() {
        let pieces = [
            kept(BEGUN, 0, &[Style::SemiActive as u8]),
            kept(TAKEN, 3, b"one"),
            kept(FOLLOWED, 5, b"two"),
            kept(FOLLOWED, 5, b"three"),
            kept(TAKEN, 5, b"four"),
        ];
        assert_eq!(log(&pieces), (["one", "two", "three", "four"].map(Bytes::from).to_vec(), 5));
        assert_eq!(
            log(&pieces[..4]),
            ([Bytes::from("one")].to_vec(), 3),
            "the fourth was not there"
        );

        // The next life goes on from there, and may order the same anew.
        let mut next = pieces[..4].to_vec();
        next.extend([kept(FOLLOWED, 9, b"three"), kept(TAKEN, 9, b"two")]);
        assert_eq!(log(&next), (["one", "three", "two"].map(Bytes::from).to_vec(), 9));
    }
}
