//! The table of groups: replicated state that every node of a component holds alike.
//!
//! It changes only at places in the total order, by the verbs below, and every change of a group
//! makes a new view (`docs/protocol/group.md`, "Groups and views"). The passage of a group from one
//! component to the next is in `directory/state_merge.rs`, groups that begin with a state from a
//! file in `directory/deposits.rs`.

mod deposits;
mod going;
mod group;
mod state_merge;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wire::limits::{MAX_GROUPS, MAX_REPLICAS};
use wire::ordered::{Announce, GroupEntry, GroupOptions, Place, ReplicaEntry, Style};
use wire::system::{most_replicas, most_replicas_ever};
use wire::{GroupId, Member, NodeId, RingId, ViewNumber};

use crate::bug::{Bug, Planted};
use crate::quorum::Gathering;
use crate::style::StyleRules;
pub(crate) use deposits::DepositRefused;
pub(crate) use group::{Group, Replica, State};
use state_merge::{Installed, installed};
pub(crate) use state_merge::{majority, recalled, recalled_entry};

/// Why a replica cannot join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinRefused {
    /// The group exists with these other options, which it cannot have got since it was made, or
    /// the name's hash belongs to another group.
    Options(GroupOptions),
    /// The group, or the table, is full.
    Full(GroupOptions),
}

/// The effect of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing: the table said so already.
    None,
    /// The group has a new view.
    View,
    /// The group is gone with its last replica.
    Removed,
}

/// A number that no other ring has.
pub(crate) fn name_of(ring: RingId) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    (ring.sequence ^ u64::from(ring.representative.0).rotate_right(16)).wrapping_mul(ODD)
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directory {
    groups: BTreeMap<GroupId, Group>,
    /// The last views of groups that ended in this component: one that begins anew goes on from
    /// there, so that no view has two meanings.
    ended: BTreeMap<GroupId, ViewNumber>,
    /// The base of the names of this component's transfers. Separate histories have views of the
    /// same numbers: chunks of a transfer in one must not be taken for those of another.
    transfers: u64,
    /// Groups that have gone on from these replicas' states, which may lack answered calls.
    went_back: Vec<(GroupId, Member)>,
}

impl Directory {
    pub(crate) fn get(&self, group: GroupId) -> Option<&Group> {
        self.groups.get(&group)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (GroupId, &Group)> + '_ {
        self.groups.iter().map(|(id, group)| (*id, group))
    }

    /// A replica on `member` joins a group that was made with these options or has got another
    /// style since. The first replica of a group has the state from the start. So has one that
    /// finds no other in a group that was never called. The rules of this level are in force.
    pub(crate) fn join(
        &mut self,
        member: Member,
        name: &str,
        options: GroupOptions,
        level: u8,
    ) -> Result<Change, JoinRefused> {
        let id = GroupId::of(name);
        let full = self.groups.len() >= MAX_GROUPS;
        let Some(group) = self.groups.get_mut(&id) else {
            if full {
                return Err(JoinRefused::Full(options));
            }
            let replicas = [Replica { member, state: State::Synced }].to_vec();
            let before = self.ended.remove(&id).unwrap_or(ViewNumber(0));
            let (name, view) = (name.into(), ViewNumber(before.0.saturating_add(1)));
            let (last, floor, asleep) = (Place::default(), Place::default(), Vec::new());
            let (reign, awaited, deposit) = (None, Vec::new(), None);
            let transfers = self.transfers;
            let group = Group {
                name,
                options,
                view,
                last,
                floor,
                reign,
                replicas,
                asleep,
                awaited,
                deposit,
                transfers,
            };
            self.groups.insert(id, group);
            return Ok(Change::View);
        };
        group.awaited.retain(|awaited| *awaited != member);
        group.adopt(options);
        if !group.options.may_have_been(options) || group.name != name {
            return Err(JoinRefused::Options(group.options));
        }
        if group.replica(member).is_some() {
            return Ok(Change::None);
        }
        if group.replicas.len() >= most_replicas(id, level) {
            return Err(JoinRefused::Full(group.options));
        }
        group.advance();
        let state = if group.options.style.has_state() {
            State::Unsynced { transfer: group.transfer(), donor: group.donor() }
        } else {
            State::Synced
        };
        group.replicas.push(Replica { member, state });
        group.begin_if_never_called();
        group.renew_transfers();
        Ok(Change::View)
    }

    /// The replica on `member` leaves by its own will, unless it is needed; or it is not to come
    /// back.
    pub(crate) fn leave(&mut self, member: Member, id: GroupId) -> Change {
        let Some(group) = self.groups.get_mut(&id) else { return Change::None };
        if group.awaited.contains(&member) {
            group.awaited.retain(|awaited| *awaited != member);
            group.advance();
            return Change::View;
        }
        if group.replica(member).is_none() || group.needs(member) {
            return Change::None;
        }
        self.go(member, id)
    }

    /// The replica on `member` is gone, needed or not.
    pub(crate) fn go(&mut self, member: Member, id: GroupId) -> Change {
        let Some(group) = self.groups.get_mut(&id) else { return Change::None };
        if group.synced().any(|synced| synced == member) {
            group.floor = group.last;
        }
        group.replicas.retain(|replica| replica.member != member);
        if group.replicas.is_empty() && group.asleep.is_empty() && group.depositor().is_none() {
            return self.end(id);
        }
        group.advance();
        group.begin_if_never_called();
        group.renew_transfers();
        Change::View
    }

    /// This node's replicas.
    pub(crate) fn on_node(&self, node: NodeId) -> Vec<(Member, GroupId)> {
        let all = self
            .groups
            .iter()
            .flat_map(|(id, group)| group.replicas.iter().map(|replica| (replica.member, *id)));
        all.filter(|(member, _)| member.node == node).collect()
    }

    /// Some group would be lost with this node, or waits for what is on its disk.
    pub(crate) fn needs(&self, node: NodeId) -> bool {
        self.groups.values().any(|group| {
            let mut synced = group.synced().peekable();
            let alone = synced.peek().is_some() && synced.all(|member| member.node == node);
            let deposited = group.depositor().is_some_and(|deposit| deposit.holder.node == node);
            let alone = alone && group.options.style.has_state();
            alone || deposited || group.asleep.iter().any(|member| member.node == node)
        })
    }

    /// The group is gone.
    fn end(&mut self, id: GroupId) -> Change {
        let Some(group) = self.groups.remove(&id) else { return Change::None };
        if self.ended.len() >= MAX_GROUPS {
            self.ended.pop_first();
        }
        self.ended.insert(id, group.view);
        Change::Removed
    }

    /// The replica on `member` has the state of `transfer`.
    pub(crate) fn synced(&mut self, member: Member, id: GroupId, transfer: ViewNumber) -> Change {
        let Some(group) = self.groups.get_mut(&id) else { return Change::None };
        let waiting = |replica: &&mut Replica| {
            replica.member == member
                && matches!(replica.state, State::Unsynced { transfer: t, .. } if t == transfer)
        };
        let Some(replica) = group.replicas.iter_mut().find(waiting) else { return Change::None };
        replica.state = State::Synced;
        group.take_deposit();
        if group.options.style.keeps_its_primary() {
            let had_it = group.synced().filter(|synced| *synced != member).count();
            let place = group.replicas.iter().position(|replica| replica.member == member);
            let replica = group.replicas.remove(place.expect("it was found"));
            group.replicas.insert(had_it, replica);
        }
        group.floor = group.last;
        group.advance();
        Change::View
    }

    /// The replica on `member` was not given the state by `transfer`: it is given it under another name,
    /// and by another member if there is one.
    pub(crate) fn give_anew(
        &mut self,
        member: Member,
        id: GroupId,
        transfer: ViewNumber,
    ) -> Change {
        let Some(group) = self.groups.get_mut(&id) else { return Change::None };
        let waits = |replica: &Replica| match replica.state {
            State::Unsynced { transfer: t, donor: Some(donor) } => {
                (replica.member == member && t == transfer).then_some(donor)
            }
            _ => None,
        };
        let Some(before) = group.replicas.iter().find_map(waits) else { return Change::None };
        // The next towards the first in rank; after that the last again.
        let synced: Vec<Member> = group.synced().collect();
        let place = synced.iter().position(|donor| *donor == before).unwrap_or_default();
        let donor = match place {
            0 => synced.last().copied(),
            place => Some(synced[place - 1]),
        };
        group.advance();
        let state = State::Unsynced { transfer: group.transfer(), donor };
        let replica = group.replicas.iter_mut().find(|replica| replica.member == member);
        replica.expect("it was found").state = state;
        Change::View
    }

    /// The replica on `member` becomes the primary, if it has the state and the group is still in
    /// this view.
    pub(crate) fn promote(
        &mut self,
        member: Member,
        id: GroupId,
        view: ViewNumber,
        planted: Planted,
    ) -> Change {
        let Some(group) = self.groups.get_mut(&id) else { return Change::None };
        let Some(rank) = group.replicas.iter().position(|replica| replica.member == member) else {
            return Change::None;
        };
        let synced = group.replicas[rank].state == State::Synced;
        if group.primary() == Some(member)
            || (!synced && !planted.is(Bug::MoveToUnsynced))
            || (group.view != view && !planted.is(Bug::ObeyOldMove))
        {
            return Change::None;
        }
        // The others keep their order: the former primary is the next.
        group.replicas[..=rank].rotate_right(1);
        group.advance();
        Change::View
    }

    /// The backups that have the state get this order, if the group is still in this view. Backups
    /// that it does not name come after them. Replicas without the state, and the primary, keep
    /// their places.
    pub(crate) fn rank(
        &mut self,
        id: GroupId,
        view: ViewNumber,
        order: &[NodeId],
        planted: Planted,
    ) -> Change {
        let Some(replicas) = self.ranked(id, view, order, planted) else { return Change::None };
        let Some(group) = self.groups.get_mut(&id) else { return Change::None };
        group.replicas = replicas;
        group.advance();
        Change::View
    }

    /// The replicas as [`rank`](Directory::rank) would leave them, if that would change anything.
    pub(crate) fn ranked(
        &self,
        id: GroupId,
        view: ViewNumber,
        order: &[NodeId],
        planted: Planted,
    ) -> Option<Vec<Replica>> {
        let group = self.groups.get(&id)?;
        if group.view != view && !planted.is(Bug::ObeyOldRank) {
            return None;
        }
        let kept = if planted.is(Bug::RankPrimary) { 0 } else { 1 };
        let all = planted.is(Bug::RankJoining);
        let synced = |replica: &&Replica| replica.state == State::Synced || all;
        let mut backups: Vec<Replica> =
            group.replicas.iter().filter(synced).skip(kept).copied().collect();
        let named = |replica: &Replica| order.iter().position(|node| *node == replica.member.node);
        backups.sort_by_key(|replica| named(replica).unwrap_or(order.len()));
        let mut replicas = group.replicas.clone();
        let places = replicas.iter_mut().filter(|replica| synced(&&**replica));
        for (place, backup) in places.skip(kept).zip(backups) {
            *place = backup;
        }
        (replicas != group.replicas).then_some(replicas)
    }

    /// The group gets this style, if it is still in this view and may.
    pub(crate) fn restyle(
        &mut self,
        id: GroupId,
        view: ViewNumber,
        style: Style,
        planted: Planted,
    ) -> Change {
        let Some(group) = self.groups.get_mut(&id) else { return Change::None };
        let current = group.view == view || planted.is(Bug::ObeyOldRestyle);
        if !current || group.options.style == style || !group.options.may_become(style) {
            return Change::None;
        }
        group.options.style = style;
        if style.keeps_its_primary() {
            group.put_synced_first();
        }
        group.advance();
        Change::View
    }

    /// A request to the group has this place. False if no replica takes it: the group sleeps, or
    /// its calls are not ordered.
    pub(crate) fn requested(&mut self, id: GroupId, place: Place) -> bool {
        let takes = |group: &&mut Group| group.primary().is_some() && group.options.style.orders();
        let group = self.groups.get_mut(&id).filter(takes);
        group.map(|group| group.last = place).is_some()
    }

    /// Whether this member is the group's primary, and has been since then: if so its updates
    /// count.
    pub(crate) fn reigns(&self, id: GroupId, member: Member, since: Place) -> bool {
        self.get(id).is_some_and(|group| group.reign == Some((member, since)))
    }

    /// The group's view has changed at this place, or the component has: it may begin the time of
    /// another primary. True if it does.
    pub(crate) fn enthrone(&mut self, id: GroupId, place: Place) -> bool {
        let Some(group) = self.groups.get_mut(&id) else { return false };
        let primary = group.primary();
        let is_another = group.reign.map(|(member, _)| member) != primary;
        if is_another {
            group.reign = primary.map(|primary| (primary, place));
        }
        is_another
    }

    /// The group's style changes at this place. Its primary's updates and checkpoints from before
    /// are of no use any more: a late checkpoint would be of another log.
    pub(crate) fn reign_anew(&mut self, id: GroupId, place: Place) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.reign = group.primary().map(|primary| (primary, place));
        }
    }

    /// A new component takes over the authority's table. Replicas of lives that are gone are struck
    /// out. Replicas that lack a request, or took one that is in no history, lose their state,
    /// unless the group must go on with it or wait for other members. Transfers begin anew. Returns
    /// the groups that have a new view, or had another here, since members from another branch do
    /// not know theirs.
    pub(crate) fn install(
        &mut self,
        ring: RingId,
        entries: &[GroupEntry],
        announces: &BTreeMap<Member, Announce>,
        gathering: Gathering<'_>,
    ) -> Vec<GroupId> {
        let mut changed = Vec::new();
        let before = core::mem::take(&mut self.groups);
        self.ended.clear();
        self.transfers = name_of(ring);
        for entry in entries {
            let id = GroupId::of(&entry.name);
            let Installed { group, as_before, went_back } =
                installed(entry, announces, gathering, self.transfers);
            self.went_back.extend(went_back.map(|member| (id, member)));
            let known = before.get(&id).is_some_and(|before| {
                before.view == group.view
                    && before.options == group.options
                    && before.replicas == group.replicas
            });
            if !as_before || !known {
                changed.push(id);
            }
            self.groups.insert(id, group);
        }
        changed
    }

    /// A member has announced a group's state after the component was installed. The replicas that
    /// have it may be known now.
    pub(crate) fn wake(
        &mut self,
        id: GroupId,
        announces: &BTreeMap<Member, Announce>,
        gathering: Gathering<'_>,
    ) -> Change {
        let Some(group) = self.groups.get_mut(&id).filter(|group| !group.asleep.is_empty()) else {
            return Change::None;
        };
        let entry = recalled_entry(&group.to_entry(), announces);
        let Installed { group: woken, went_back, .. } =
            installed(&entry, announces, gathering, self.transfers);
        if woken.asleep.is_empty() {
            self.went_back.extend(went_back.map(|member| (id, member)));
            *group = woken;
            return Change::View;
        }
        // The next component must know in which life it is here: its announcement as restarted
        // exists in one component alone.
        group.asleep = entry.asleep;
        Change::None
    }

    /// The groups that have gone on from states that may lack answered calls, since this was asked.
    pub(crate) fn take_went_back(&mut self) -> Vec<(GroupId, Member)> {
        core::mem::take(&mut self.went_back)
    }

    /// The table as an installation carries it.
    pub(crate) fn entries(&self) -> Vec<GroupEntry> {
        let mut entries: Vec<GroupEntry> = self.groups.values().map(Group::to_entry).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }

    /// Invariants.
    pub(crate) fn check_invariants(&self) {
        assert!(self.groups.len() <= MAX_GROUPS, "the table is bounded");
        assert!(self.ended.len() <= MAX_GROUPS, "what is remembered of groups is bounded");
        for (id, group) in &self.groups {
            assert_eq!(*id, GroupId::of(&group.name), "a group's id is its name's");
            let most = most_replicas_ever(*id);
            assert!(group.replicas.len() <= most, "a group is bounded");
            assert!(group.awaited.len() <= MAX_REPLICAS, "who is awaited is bounded");
            let begun = group.primary().is_some() || !group.asleep.is_empty();
            let waits = group.depositor().is_some();
            assert!(!(begun && waits), "a group that waits for its state has none");
            let awaits = |replica: &Replica| group.awaited.contains(&replica.member);
            assert!(!group.replicas.iter().any(awaits), "nobody who is there is awaited");
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
    pub(crate) fn to_entry(&self) -> GroupEntry {
        let replicas = self.replicas.iter().map(|replica| ReplicaEntry {
            member: replica.member,
            synced: replica.state == State::Synced,
        });
        GroupEntry {
            name: self.name.clone(),
            options: self.options,
            view: self.view,
            last: self.last,
            floor: self.floor,
            replicas: replicas.collect(),
            asleep: self.asleep.clone(),
            awaited: self.awaited.clone(),
            deposit: self.deposit,
        }
    }
}

#[cfg(test)]
mod tests;
