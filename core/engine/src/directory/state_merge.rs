//! A group's passage from one component to the next: which of its replicas have its state, and when
//! nobody can tell yet (`docs/protocol/group.md`, "Who has a group's state"; the proof is there).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wire::limits::MAX_GROUPS;
use wire::ordered::{AckLevel, Announce, Durability, GroupEntry, Place, Style};
use wire::system::most_replicas;
use wire::versions::WHOLE;
use wire::{GroupId, Member, ViewNumber};

use super::group::{Group, Replica, State};
use crate::api::Quorum;
use crate::bug::{Bug, Planted};
use crate::component_order::ComponentOrder;
use crate::quorum::{Gathering, is_restarted, reached, recalls};
use crate::style::StyleRules;

/// The number of these synced replicas that hold a request before its reply leaves.
pub(crate) fn majority(replicas: usize) -> usize {
    replicas / 2 + 1
}

/// Any so many of these synced replicas include one that holds all answered requests.
fn enough(ack: AckLevel, replicas: usize) -> usize {
    match ack {
        AckLevel::All => 1,
        AckLevel::One | AckLevel::Majority => replicas + 1 - majority(replicas),
    }
}

/// A group in a new component.
#[derive(Clone, Debug)]
pub(super) struct Installed {
    pub(super) group: Group,
    /// It is unchanged.
    pub(super) as_before: bool,
    /// It goes on from this replica's state, which may lack answered calls.
    pub(super) went_back: Option<Member>,
}

/// The group in a new component.
pub(super) fn installed(
    entry: &GroupEntry,
    announces: &BTreeMap<Member, Announce>,
    gathering: Gathering<'_>,
    transfers: u64,
) -> Installed {
    let Brought { had_state, synced, last, floor, goes_back } = if entry.options.style.has_state() {
        brought(entry, announces, gathering)
    } else {
        let here = entry.replicas.iter().map(|replica| replica.member);
        let here = here.filter(|member| announces.contains_key(member)).collect();
        let last = entry.last;
        Brought { had_state: Vec::new(), synced: here, last, floor: last, goes_back: false }
    };
    let went_back = synced.first().copied().filter(|_| goes_back);
    let asleep = if synced.is_empty() { had_state } else { Vec::new() };
    let keeps = |member: &Member| !asleep.is_empty() || is_kept(entry, &synced, announces, member);
    let alive =
        entry.replicas.iter().filter(|r| announces.contains_key(&r.member) && keeps(&r.member));
    let unsynced = State::Unsynced { transfer: ViewNumber(0), donor: None };
    let mut replicas: Vec<Replica> =
        alive.map(|r| Replica { member: r.member, state: unsynced }).collect();
    let most = most_replicas(GroupId::of(&entry.name), gathering.level);
    for member in synced {
        match replicas.iter_mut().find(|replica| replica.member == member) {
            Some(replica) => replica.state = State::Synced,
            // It was struck out while it was away. In a full group a replica without the state
            // makes room.
            None => {
                replicas.truncate(most - 1);
                replicas.push(Replica { member, state: State::Synced });
            }
        }
    }
    let GroupEntry { name, options, view, mut awaited, deposit, .. } = entry.clone();
    let is_there = |member: &Member| replicas.iter().any(|replica| replica.member == *member);
    awaited.retain(|member| announces.contains_key(member) && !is_there(member));
    let reign = None;
    let mut group = Group {
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
    if group.primary().is_some() {
        group.take_deposit();
    }
    group.take_change_back(announces);
    if group.options.style.keeps_its_primary() {
        group.put_synced_first();
    }
    group.take_back_what_is_ahead(announces);
    group.begin_if_never_called();
    let back = |replica: &Replica| announces.get(&replica.member).is_some_and(is_restarted);
    let as_before = group.asleep == entry.asleep
        && group.options == entry.options
        && !group.replicas.iter().any(back)
        && group.replicas.len() == entry.replicas.len()
        && group.replicas.iter().all(|replica| replica.state == State::Synced);
    if !as_before {
        group.advance();
        group.renew_transfers();
    }
    Installed { group, as_before, went_back }
}

impl Group {
    /// The primary of a warm passive group has ordered the change to another style. If a new
    /// component begins before the change is delivered to it, it takes calls again. The change as
    /// other members have it is void then.
    fn take_change_back(&mut self, announces: &BTreeMap<Member, Announce>) {
        let id = GroupId::of(&self.name);
        if self.primary().is_some_and(|primary| announces[&primary].ahead.contains(&id)) {
            self.options.style = Style::WarmPassive;
        }
    }

    /// A replica that executed unordered calls can only go on as primary: any other gets the state
    /// anew.
    fn take_back_what_is_ahead(&mut self, announces: &BTreeMap<Member, Announce>) {
        let id = GroupId::of(&self.name);
        let is_ahead = |member: &Member| announces[member].ahead.contains(&id);
        let synced = self.replicas.iter_mut().filter(|replica| replica.state == State::Synced);
        for replica in synced.skip(1).filter(|replica| is_ahead(&replica.member)) {
            replica.state = State::Unsynced { transfer: ViewNumber(0), donor: None };
        }
        if self.options.style.keeps_its_primary() {
            self.put_synced_first();
        }
    }
}

/// The table that a component begins with. It is the installer's, unless its groups on disk may be
/// incomplete (then there is a `component_order`). For those the newest entry on any disk counts,
/// and their last request is unknown.
pub(crate) fn recalled(
    entries: &[GroupEntry],
    announces: &BTreeMap<Member, Announce>,
    installer: Member,
    component_order: Option<&ComponentOrder>,
    planted: Planted,
) -> Vec<GroupEntry> {
    let Some(component_order) = component_order else {
        return entries.iter().map(|entry| recalled_entry(entry, announces)).collect();
    };
    let mut newest: BTreeMap<&str, (Place, &GroupEntry)> = BTreeMap::new();
    let own = &announces[&installer];
    let table = entries.iter().map(|entry| (entry, reached(own)));
    // A restarted member's announcement contains the table of its disk, with the places.
    let table = table.filter(|(entry, _)| !(is_restarted(own) && is_on_disk(entry)));
    let recalls = announces.values().filter_map(|announce| announce.recall.as_ref());
    let disks = recalls.filter(|recall| recall.restarted).flat_map(|recall| &recall.groups);
    for (entry, at) in table.chain(disks.map(|(entry, at)| (entry, *at))) {
        let known = newest.entry(&entry.name).or_insert((at, entry));
        if component_order.is_after(at, known.0) {
            *known = (at, entry);
        }
    }
    let there = newest.into_values().filter(|(_, entry)| !entry.is_gone());
    let entries = there.map(|(_, entry)| {
        let known = !is_on_disk(entry) || entry.waits() || planted.is(Bug::TrustOldTable);
        let last = if known { entry.last } else { Place::UNKNOWN };
        recalled_entry(&GroupEntry { last, ..entry.clone() }, announces)
    });
    entries.take(MAX_GROUPS).collect()
}

fn is_on_disk(entry: &GroupEntry) -> bool {
    entry.options.durability == Durability::Disk
}

/// Replaces the former life of a replica on disk by its node's present one. A replica that was
/// hosted late may report itself only in a later component of that life.
pub(crate) fn recalled_entry(
    entry: &GroupEntry,
    announces: &BTreeMap<Member, Announce>,
) -> GroupEntry {
    let mut entry = entry.clone();
    if is_on_disk(&entry) {
        let group = GroupId::of(&entry.name);
        let now = |life: Member| {
            let is_back = |(here, announce): &(&Member, &Announce)| {
                announce.recall.is_some()
                    && recalls(**here, announce, life)
                    && announce.replicas.iter().any(|(id, _)| *id == group)
            };
            announces.iter().find(is_back).map_or(life, |(here, _)| *here)
        };
        for replica in &mut entry.replicas {
            replica.member = now(replica.member);
        }
        for member in &mut entry.asleep {
            *member = now(*member);
        }
    }
    entry
}

/// Whether a member stays in the table of a group that goes on with these replicas. For a group on
/// disk, a member with another state does not. It keeps that state until all members' disks know
/// that it is of no use, and joins anew.
fn is_kept(
    entry: &GroupEntry,
    synced: &[Member],
    announces: &BTreeMap<Member, Announce>,
    member: &Member,
) -> bool {
    !is_on_disk(entry) || synced.contains(member) || taken(entry, announces, member).is_none()
}

/// The last request that this member's replica took, if the replica has the state.
fn taken(
    entry: &GroupEntry,
    announces: &BTreeMap<Member, Announce>,
    member: &Member,
) -> Option<Place> {
    let group = GroupId::of(&entry.name);
    let replicas = &announces.get(member)?.replicas;
    replicas.iter().find(|(id, _)| *id == group).map(|(_, place)| *place)
}

/// The members' contribution to a group.
#[derive(Clone, Debug)]
struct Brought {
    /// The synced replicas of the last view that had any, here or not.
    had_state: Vec<Member>,
    /// The replicas that have the group's state: none, if nobody can tell.
    synced: Vec<Member>,
    /// The last request in that state.
    last: Place,
    /// The last request before the present set of synced replicas.
    floor: Place,
    /// Answered requests may be missing, and nobody is left who could have them.
    goes_back: bool,
}

fn brought(
    entry: &GroupEntry,
    announces: &BTreeMap<Member, Announce>,
    gathering: Gathering<'_>,
) -> Brought {
    let group = GroupId::of(&entry.name);
    let most = most_replicas(group, gathering.level);
    let is_after = |one, other| gathering.component_order.is_after(one, other);
    // States from before a deposit are of no use: it is as if the group had been called there.
    let counts =
        |place: &Place| !entry.waits() || *place == entry.last || is_after(*place, entry.last);
    let taken = |member: &Member| taken(entry, announces, member).filter(counts);
    // A replica that has received the state may announce it before the table shows it.
    let mut known: Vec<Member> = entry.replicas.iter().map(|r| r.member).collect();
    let returning: Vec<Member> =
        entry.asleep.iter().filter(|member| !known.contains(member)).copied().collect();
    known.extend(returning);
    let had_state = |member: &&Member| {
        entry.asleep.contains(member)
            || entry.replicas.iter().any(|r| r.member == **member && r.synced)
    };
    let had_state: Vec<Member> = known.iter().filter(had_state).copied().collect();

    let took_last = |member: &&Member| taken(member) == Some(entry.last);
    let exact: Vec<Member> = known.iter().filter(took_last).copied().collect();
    if !exact.is_empty() {
        let (synced, last) = (with_returned(exact, entry, gathering, announces, taken), entry.last);
        return Brought { had_state, synced, last, floor: last, goes_back: false };
    }
    if !known.iter().filter_map(taken).any(|place| is_after(place, entry.last))
        && let Some((synced, last)) = struck_out(entry.last, most, announces, taken)
    {
        return Brought { had_state, synced, last, floor: last, goes_back: false };
    }
    // A node that is here in another life or without the state no longer has it. A state on its
    // disk that is not hosted yet counts as away.
    let brings = |announce: &Announce| {
        let waiting = announce.recall.as_ref().map(|recall| &recall.waiting);
        !waiting.is_some_and(|waiting| waiting.contains(&group))
    };
    let is_away =
        |member: &Member| !announces.iter().any(|(here, a)| here.node == member.node && brings(a));
    let nobody_else = !had_state.iter().any(is_away);
    if gathering.rule == Quorum::Off
        && nobody_else
        && known.iter().all(|member| taken(member).is_none())
    {
        // The state of the replicas in the table ended with them. Another branch of the history may
        // have gone on.
        known = announces.keys().copied().filter(|member| taken(member).is_some()).collect();
        known.truncate(most);
    }
    let at = |known: &[Member], place| -> Vec<Member> {
        known.iter().copied().filter(|member| taken(member) == Some(place)).collect()
    };
    let here = had_state.iter().filter(|member| taken(member).is_some()).count();
    let enough = enough(entry.options.ack, had_state.len());
    if let Some(furthest) = gathering.component_order.latest(known.iter().filter_map(taken)) {
        let has_all = !is_after(entry.floor, furthest);
        // A replica behind the floor never had on its disk the requests that the table ascribes to
        // it: others may have more.
        let nobody_else = nobody_else && (has_all || !is_on_disk(entry));
        // Requests beyond the last one went into no history. So none of them was answered, and
        // clients' retries find them executed.
        let is_whole = is_after(furthest, entry.last) || here >= enough && has_all;
        if is_whole || nobody_else {
            let (synced, goes_back) = (at(&known, furthest), !is_whole);
            return Brought { had_state, synced, last: furthest, floor: furthest, goes_back };
        }
    }
    let (synced, last, floor) = (Vec::new(), entry.last, entry.floor);
    let nobody = Brought { had_state, synced, last, floor, goes_back: false };
    match gathering.whole && is_on_disk(entry) && announces.values().all(brings) {
        true => brought_by_all(nobody, &known, announces, (gathering.component_order, most), taken),
        false => nobody,
    }
}

/// The replicas that took the last request, with those that were struck out while they were away, took
/// it, too, and find room: nothing was executed since that they do not have, so they need no transfer.
fn with_returned(
    mut exact: Vec<Member>,
    entry: &GroupEntry,
    gathering: Gathering<'_>,
    announces: &BTreeMap<Member, Announce>,
    taken: impl Fn(&Member) -> Option<Place>,
) -> Vec<Member> {
    let last = entry.last;
    if gathering.level < WHOLE || last == Place::default() || last == Place::UNKNOWN {
        return exact;
    }
    let known = |member: &Member| entry.replicas.iter().any(|replica| replica.member == *member);
    let here = entry.replicas.iter().filter(|replica| announces.contains_key(&replica.member));
    let most = most_replicas(GroupId::of(&entry.name), gathering.level);
    let room = most.saturating_sub(here.count());
    let trusted = |place| place == last || gathering.planted.is(Bug::TrustReturned);
    let has_all = |member: &&Member| !known(member) && taken(member).is_some_and(trusted);
    let returned = announces.keys().filter(has_all).copied();
    let returned: Vec<Member> = returned.filter(|it| !exact.contains(it)).take(room).collect();
    exact.extend(returned);
    exact
}

/// All disks are here, and with them all answered requests: the furthest replica has them. If there
/// is none, nothing was answered.
fn brought_by_all(
    nobody: Brought,
    known: &[Member],
    announces: &BTreeMap<Member, Announce>,
    (component_order, most): (&ComponentOrder, usize),
    taken: impl Fn(&Member) -> Option<Place>,
) -> Brought {
    let mut all: Vec<Member> = announces.keys().copied().collect();
    if let Some(last) = component_order.latest(all.iter().filter_map(&taken)) {
        all.retain(|member| taken(member) == Some(last));
        all.sort_by_key(|member| !known.contains(member));
        all.truncate(most);
        return Brought { synced: all, last, floor: last, ..nobody };
    }
    let table = &nobody.had_state;
    if !table.is_empty() && table.iter().all(|life| is_recalled(*life, announces)) {
        return Brought { last: Place::default(), floor: Place::default(), ..nobody };
    }
    nobody
}

/// A later life of this node is here, and its disk has forgotten nothing of this life.
fn is_recalled(life: Member, announces: &BTreeMap<Member, Announce>) -> bool {
    let is_later = |here: &Member, announce: &Announce| {
        here.incarnation > life.incarnation && recalls(*here, announce, life)
    };
    announces.iter().any(|(here, announce)| is_later(here, announce))
}

/// A replica that was struck out while it was away still has the state if it took the last request.
/// Those that went on without it may be gone. Later requests of the same component follow all
/// answered ones; those of another component may be an older branch.
fn struck_out(
    last: Place,
    most: usize,
    announces: &BTreeMap<Member, Announce>,
    taken: impl Fn(&Member) -> Option<Place>,
) -> Option<(Vec<Member>, Place)> {
    let has_last = |place: &Place| {
        let same = (place.epoch, place.ring) == (last.epoch, last.ring);
        same && place.sequence >= last.sequence && last != Place::default()
    };
    let furthest = announces.keys().filter_map(&taken).filter(has_last).max()?;
    let there = announces.keys().filter(|member| taken(member) == Some(furthest));
    Some((there.copied().take(most).collect(), furthest))
}
