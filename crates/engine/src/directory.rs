//! The table of groups: replicated state that every node of a component holds alike.
//!
//! It changes only at places in the total order, by the verbs below, and every change of a group
//! makes a new view (`docs/protocol/group.md`, "Groups and views").

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use wire::limits::{MAX_GROUPS, MAX_REPLICAS};
use wire::ordered::{Announce, GroupEntry, GroupOptions, Place, ReplicaEntry};
use wire::{GroupId, Member, ViewNumber};

/// A group as the table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) options: GroupOptions,
    pub(crate) view: ViewNumber,
    /// The place of the last request to it.
    pub(crate) last: Place,
    /// In order of rank.
    pub(crate) replicas: Vec<Replica>,
    /// While nobody here has the group's state: who had it, in order of rank.
    pub(crate) asleep: Vec<Member>,
}

/// A replica as the table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replica {
    pub(crate) member: Member,
    pub(crate) state: State,
}

/// Whether a replica has the group's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has.
    Synced,
    /// It waits for this transfer, from this member: `None` while nobody has the state.
    Unsynced { transfer: ViewNumber, donor: Option<Member> },
}

/// Why a replica cannot join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinRefused {
    /// The group exists with these other options, or the name's hash belongs to another group.
    Options(GroupOptions),
    /// The group, or the table, is full.
    Full(GroupOptions),
}

/// What a verb did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing: the table said so already.
    None,
    /// The group has a new view.
    View,
    /// The group is gone with its last replica.
    Removed,
}

impl Group {
    /// The first replica in rank that has the state.
    pub(crate) fn primary(&self) -> Option<Member> {
        self.synced().next()
    }

    /// The replicas that have the state, in order of rank.
    pub(crate) fn synced(&self) -> impl DoubleEndedIterator<Item = Member> + '_ {
        self.replicas.iter().filter(|r| r.state == State::Synced).map(|r| r.member)
    }

    /// The replica on this member.
    pub(crate) fn replica(&self, member: Member) -> Option<&Replica> {
        self.replicas.iter().find(|replica| replica.member == member)
    }

    /// Those whom clients are told to turn to: first who has the state, by rank.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Member> + '_ {
        let unsynced = self.replicas.iter().filter(|r| r.state != State::Synced);
        self.synced().chain(unsynced.map(|replica| replica.member))
    }

    /// The last in rank that has the state gives it, to spare the primary.
    fn donor(&self) -> Option<Member> {
        self.synced().next_back()
    }

    /// It alone has the state, and others wait for it: it has to stay until one of them has it.
    pub(crate) fn needs(&self, member: Member) -> bool {
        self.replicas.len() > 1 && self.synced().eq([member])
    }

    fn advance(&mut self) {
        // Only a confused member's table can come near the limit.
        self.view.0 = self.view.0.saturating_add(1);
    }

    /// Transfers whose donor is gone begin anew, from another and under a new name.
    fn renew_transfers(&mut self) {
        let donor = self.donor();
        let synced: Vec<Member> = self.synced().collect();
        for replica in &mut self.replicas {
            if let State::Unsynced { donor: old, .. } = replica.state
                && !old.is_some_and(|old| synced.contains(&old))
            {
                replica.state = State::Unsynced { transfer: self.view, donor };
            }
        }
    }
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directory {
    groups: BTreeMap<GroupId, Group>,
}

impl Directory {
    pub(crate) fn get(&self, group: GroupId) -> Option<&Group> {
        self.groups.get(&group)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (GroupId, &Group)> + '_ {
        self.groups.iter().map(|(id, group)| (*id, group))
    }

    /// A replica on `member` joins. The first replica of a group has the state from the start.
    pub(crate) fn join(
        &mut self,
        member: Member,
        name: &str,
        options: GroupOptions,
    ) -> Result<Change, JoinRefused> {
        let id = GroupId::of(name);
        let full = self.groups.len() >= MAX_GROUPS;
        let Some(group) = self.groups.get_mut(&id) else {
            if full {
                return Err(JoinRefused::Full(options));
            }
            let replicas = [Replica { member, state: State::Synced }].to_vec();
            let (name, view) = (name.into(), ViewNumber(1));
            let (last, asleep) = (Place::default(), Vec::new());
            let group = Group { name, options, view, last, replicas, asleep };
            self.groups.insert(id, group);
            return Ok(Change::View);
        };
        if group.options != options || group.name != name {
            return Err(JoinRefused::Options(group.options));
        }
        if group.replica(member).is_some() {
            return Ok(Change::None);
        }
        if group.replicas.len() >= MAX_REPLICAS {
            return Err(JoinRefused::Full(group.options));
        }
        group.advance();
        let state = State::Unsynced { transfer: group.view, donor: group.donor() };
        group.replicas.push(Replica { member, state });
        Ok(Change::View)
    }

    /// The replica on `member` is gone by its own will, unless it is needed.
    pub(crate) fn leave(&mut self, member: Member, id: GroupId) -> Change {
        let Some(group) = self.groups.get_mut(&id) else { return Change::None };
        if group.replica(member).is_none() || group.needs(member) {
            return Change::None;
        }
        group.replicas.retain(|replica| replica.member != member);
        if group.replicas.is_empty() && group.asleep.is_empty() {
            self.groups.remove(&id);
            return Change::Removed;
        }
        group.advance();
        group.renew_transfers();
        Change::View
    }

    /// The replica on `member` has the state that `transfer` brought.
    pub(crate) fn synced(&mut self, member: Member, id: GroupId, transfer: ViewNumber) -> Change {
        let Some(group) = self.groups.get_mut(&id) else { return Change::None };
        let waiting = |replica: &&mut Replica| {
            replica.member == member
                && matches!(replica.state, State::Unsynced { transfer: t, .. } if t == transfer)
        };
        let Some(replica) = group.replicas.iter_mut().find(waiting) else { return Change::None };
        replica.state = State::Synced;
        group.advance();
        Change::View
    }

    /// A request to the group has this place.
    pub(crate) fn requested(&mut self, id: GroupId, place: Place) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.last = place;
        }
    }

    /// A new component takes over the authority's table. Replicas of lives that are gone are
    /// struck out; those that lack a request, or took one that is in no history, lose their
    /// state, unless they are the only ones that can have it; transfers begin anew. Returns the
    /// groups with a new view.
    pub(crate) fn install(
        &mut self,
        entries: &[GroupEntry],
        announces: &BTreeMap<Member, Announce>,
    ) -> Vec<GroupId> {
        let mut changed = Vec::new();
        self.groups.clear();
        for entry in entries {
            let id = GroupId::of(&entry.name);
            let (group, as_before) = Group::installed(entry, announces);
            if !as_before {
                changed.push(id);
            }
            self.groups.insert(id, group);
        }
        changed
    }

    /// The table as an installation carries it.
    pub(crate) fn entries(&self) -> Vec<GroupEntry> {
        let mut entries: Vec<GroupEntry> = self.groups.values().map(Group::to_entry).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }

    /// What must hold whatever happened.
    pub(crate) fn check_invariants(&self) {
        assert!(self.groups.len() <= MAX_GROUPS, "the table is bounded");
        for (id, group) in &self.groups {
            assert_eq!(*id, GroupId::of(&group.name), "a group's id is its name's");
            assert!(group.replicas.len() <= MAX_REPLICAS, "a group is bounded");
            for (i, replica) in group.replicas.iter().enumerate() {
                let later = &group.replicas[i + 1..];
                assert!(later.iter().all(|r| r.member != replica.member), "one replica a node");
                if let State::Unsynced { donor: Some(donor), .. } = replica.state {
                    let donor = group.replica(donor).expect("a donor is in the group");
                    assert_eq!(donor.state, State::Synced, "a donor has the state");
                }
            }
        }
    }
}

impl Group {
    /// The group as it is in a new component, and whether nothing about it has changed.
    fn installed(entry: &GroupEntry, announces: &BTreeMap<Member, Announce>) -> (Group, bool) {
        // A replica that has been given the state may say so before the table does.
        let mut known: Vec<Member> = entry.replicas.iter().map(|r| r.member).collect();
        let returning = entry.asleep.iter().filter(|member| !known.contains(member));
        let returning: Vec<Member> = returning.copied().collect();
        known.extend(returning);
        let (synced, last) = with_state(entry, &known, announces);
        let had_state = |member: &Member| {
            entry.asleep.contains(member)
                || entry.replicas.iter().any(|r| r.member == *member && r.synced)
        };
        known.retain(|member| synced.is_empty() && had_state(member));
        let asleep = known;
        let alive = entry.replicas.iter().filter(|r| announces.contains_key(&r.member));
        let unsynced = State::Unsynced { transfer: ViewNumber(0), donor: None };
        let mut replicas: Vec<Replica> =
            alive.map(|r| Replica { member: r.member, state: unsynced }).collect();
        for member in synced {
            match replicas.iter_mut().find(|replica| replica.member == member) {
                Some(replica) => replica.state = State::Synced,
                // It was struck out while it was away.
                None => replicas.push(Replica { member, state: State::Synced }),
            }
        }
        let as_before = asleep == entry.asleep
            && replicas.len() == entry.replicas.len()
            && replicas.iter().all(|replica| replica.state == State::Synced);
        let GroupEntry { name, options, view, .. } = entry.clone();
        let mut group = Group { name, options, view, last, replicas, asleep };
        if !as_before {
            group.advance();
            group.renew_transfers();
        }
        (group, as_before)
    }

    fn to_entry(&self) -> GroupEntry {
        let replicas = self.replicas.iter().map(|replica| ReplicaEntry {
            member: replica.member,
            synced: replica.state == State::Synced,
        });
        GroupEntry {
            name: self.name.clone(),
            options: self.options,
            view: self.view,
            last: self.last,
            replicas: replicas.collect(),
            asleep: self.asleep.clone(),
        }
    }
}

/// Those of the group's replicas that are here with its state: who has taken the last request, and
/// none beyond it. If there is nobody, who has taken more: requests that went into no history were
/// never acknowledged, and their clients' retries find them executed. Of several the furthest,
/// for the others lack what that one took: its place is then that of the group's last request.
fn with_state(
    entry: &GroupEntry,
    known: &[Member],
    announces: &BTreeMap<Member, Announce>,
) -> (Vec<Member>, Place) {
    let group = GroupId::of(&entry.name);
    let taken = |member: &Member| {
        let replicas = &announces.get(member)?.replicas;
        replicas.iter().find(|(id, _)| *id == group).map(|(_, place)| *place)
    };
    let at = |place| known.iter().copied().filter(|m| taken(m) == Some(place)).collect();
    let exact: Vec<Member> = at(entry.last);
    if !exact.is_empty() {
        return (exact, entry.last);
    }
    match known.iter().filter_map(taken).max().filter(|place| *place > entry.last) {
        Some(furthest) => (at(furthest), furthest),
        None => (Vec::new(), entry.last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ordered::Component;
    use wire::{Incarnation, NodeId, RingId};

    /// Members, each with the last request that its replica took: in ring 1, at this place.
    fn announced(places: &[(u32, u64)]) -> BTreeMap<Member, Announce> {
        let announce = |sequence| Announce {
            ring: RingId::default(),
            first_life: false,
            last: Component::default(),
            attempts: Vec::new(),
            position: 0,
            replicas: [(GroupId::of("bank"), place(sequence))].to_vec(),
            address: None,
        };
        places.iter().map(|(node, sequence)| (member(*node), announce(*sequence))).collect()
    }

    fn place(sequence: u64) -> Place {
        Place { epoch: 1, ring: RingId::default(), sequence }
    }

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn three() -> (Directory, GroupId) {
        let mut directory = Directory::default();
        for node in 1..=3 {
            let change = directory.join(member(node), "bank", GroupOptions::default());
            assert_eq!(change, Ok(Change::View));
        }
        let id = GroupId::of("bank");
        for node in 2..=3 {
            assert_eq!(directory.synced(member(node), id, ViewNumber(node.into())), Change::View);
        }
        directory.requested(id, place(9));
        directory.check_invariants();
        (directory, id)
    }

    #[test]
    fn the_first_replica_has_the_state_and_the_last_synced_one_gives_it() {
        let (mut directory, id) = three();
        assert_eq!(directory.get(id).unwrap().primary(), Some(member(1)));
        directory.join(member(4), "bank", GroupOptions::default()).unwrap();
        let group = directory.get(id).unwrap();
        let state = State::Unsynced { transfer: group.view, donor: Some(member(3)) };
        assert_eq!(group.replica(member(4)).unwrap().state, state);
    }

    #[test]
    fn when_the_donor_leaves_another_takes_over_under_a_new_name() {
        let (mut directory, id) = three();
        directory.join(member(4), "bank", GroupOptions::default()).unwrap();
        let old = directory.get(id).unwrap().view;
        directory.leave(member(3), id);
        let group = directory.get(id).unwrap();
        let state = State::Unsynced { transfer: group.view, donor: Some(member(2)) };
        assert_eq!(group.replica(member(4)).unwrap().state, state);
        assert_eq!(directory.synced(member(4), id, old), Change::None, "the old transfer is void");
        directory.check_invariants();
    }

    #[test]
    fn an_installation_strikes_out_the_dead_and_resets_those_behind() {
        let (directory, id) = three();
        let mut other = Directory::default();
        let announces = announced(&[(2, 8), (3, 9)]);
        let changed = other.install(&directory.entries(), &announces);
        assert_eq!(changed, [id]);
        let group = other.get(id).unwrap();
        assert_eq!(group.primary(), Some(member(3)), "2 is behind, 1 is gone");
        assert_eq!(group.view.0, directory.get(id).unwrap().view.0 + 1);
        let state = State::Unsynced { transfer: group.view, donor: Some(member(3)) };
        assert_eq!(group.replica(member(2)).unwrap().state, state);
    }

    /// The simulator's seed 4134: a lone replica's node missed the installation of a component in
    /// which nothing was asked of the group, and the group was never found again.
    #[test]
    fn who_took_the_last_request_has_the_state_whatever_it_missed_since() {
        let (directory, id) = three();
        let mut announces = announced(&[(1, 9)]);
        let mut ahead = announced(&[(4, 0)]);
        ahead.values_mut().for_each(|announce| {
            announce.last.epoch = 7;
            announce.replicas.clear();
        });
        announces.extend(ahead);
        let mut other = Directory::default();
        other.install(&directory.entries(), &announces);
        assert_eq!(other.get(id).unwrap().primary(), Some(member(1)));
    }

    /// The simulator's seed 17080: the donor alone knew that its transfers were done, and died.
    #[test]
    fn a_replica_that_was_given_the_state_has_it_before_the_table_says_so() {
        let (mut directory, id) = three();
        directory.join(member(4), "bank", GroupOptions::default()).unwrap();
        let mut other = Directory::default();
        other.install(&directory.entries(), &announced(&[(4, 9)]));
        let group = other.get(id).unwrap();
        assert_eq!((group.primary(), group.asleep.len()), (Some(member(4)), 0));
    }

    #[test]
    fn a_group_whose_replicas_are_cut_off_sleeps_until_one_is_back_with_everything() {
        let (directory, id) = three();
        let mut other = Directory::default();
        other.install(&directory.entries(), &announced(&[(4, 0)]));
        other.join(member(4), "bank", GroupOptions::default()).unwrap();
        assert_eq!(other.get(id).unwrap().primary(), None, "it does not begin anew");

        // 1 is back, but lacks something that was ordered for the group.
        let mut later = Directory::default();
        let mut announces = announced(&[(1, 8)]);
        announces.extend(announced(&[(4, 0)]));
        later.install(&other.entries(), &announces);
        assert_eq!(later.get(id).unwrap().primary(), None);

        // 2 and 3 are back: both took requests that went into no history, 3 more than 2.
        let announces = announced(&[(2, 10), (3, 11), (4, 0)]);
        later.install(&other.entries(), &announces);
        let group = later.get(id).unwrap();
        assert_eq!(group.synced().collect::<Vec<_>>(), [member(3)]);
        let state = State::Unsynced { transfer: group.view, donor: Some(member(3)) };
        assert_eq!(group.replica(member(4)).unwrap().state, state);
        later.check_invariants();
    }

    #[test]
    fn who_is_taken_back_with_more_is_not_the_equal_of_who_has_less() {
        let (mut directory, id) = three();
        directory.requested(id, place(9));
        let mut asleep = Directory::default();
        asleep.install(&directory.entries(), &announced(&[(4, 0)]));
        let mut awake = asleep.clone();
        awake.install(&asleep.entries(), &announced(&[(1, 12)]));
        assert_eq!(awake.get(id).unwrap().primary(), Some(member(1)));
        // What it announces from now on.
        assert_eq!(awake.get(id).unwrap().last, place(12), "2 and 3 took no more than 9");
    }

    #[test]
    fn other_options_are_refused() {
        let (mut directory, _) = three();
        let options = GroupOptions { hold: wire::ordered::Hold::All, ..GroupOptions::default() };
        let refused = directory.join(member(5), "bank", options);
        assert_eq!(refused, Err(JoinRefused::Options(GroupOptions::default())));
    }
}
