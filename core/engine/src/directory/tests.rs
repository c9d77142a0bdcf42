//! The table, case by case.

mod awaited;
mod disk;

use super::*;
use crate::api::Quorum;
use crate::component_order::ComponentOrder;
use wire::limits::{MAX_MEMBERS, MAX_REPLICAS};
use wire::ordered::{Component, Style};
use wire::system::REGISTRY;
use wire::versions::{GROWTH, WHOLE};
use wire::{Incarnation, NodeId, RingId};

const NONE_VOID: &ComponentOrder = &ComponentOrder::new();
const NONE_PLANTED: Planted = Planted {
    #[cfg(feature = "planted-bugs")]
    bug: None,
};
const MAJORITY: Gathering<'static> = Gathering {
    rule: Quorum::Majority,
    whole: false,
    component_order: NONE_VOID,
    level: 1,
    planted: NONE_PLANTED,
};

/// Members, each with the last request that its replica took: in ring 1, at this place.
fn announced(places: &[(u32, u64)]) -> BTreeMap<Member, Announce> {
    let announce = |sequence| Announce {
        ring: RingId::default(),
        first_life: false,
        last: Component::default(),
        attempts: Vec::new(),
        position: 0,
        replicas: [(GroupId::of("bank"), place(sequence))].to_vec(),
        ahead: Vec::new(),
        address: None,
        recall: None,
        program: wire::Program::this("trial"),
        level: 0,
        extension: wire::Extension::default(),
        roster: Default::default(),
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
    three_of(Style::SemiActive)
}

fn three_of(style: Style) -> (Directory, GroupId) {
    let options = GroupOptions { style, ..GroupOptions::default() };
    let mut directory = Directory::default();
    for node in 1..=3 {
        let change = directory.join(member(node), "bank", options, 1);
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
fn each_node_may_have_a_replica_of_the_systems_groups_by_newer_rules_and_of_others_sixteen_may() {
    let stateless = GroupOptions { style: Style::Stateless, ..GroupOptions::default() };
    let room = |name: &str, level| {
        let mut directory = Directory::default();
        let joins = |node: &u32| directory.join(member(*node), name, stateless, level).is_ok();
        let count = (1..=100).take_while(joins).count();
        directory.check_invariants();
        count
    };
    assert_eq!([room("bank", 1), room("bank", GROWTH)], [MAX_REPLICAS; 2]);
    assert_eq!([room(REGISTRY, 1), room(REGISTRY, GROWTH)], [MAX_REPLICAS, MAX_MEMBERS]);
}

#[test]
fn the_first_replica_has_the_state_and_the_last_synced_one_gives_it() {
    let (mut directory, id) = three();
    assert_eq!(directory.get(id).unwrap().primary(), Some(member(1)));
    directory.join(member(4), "bank", GroupOptions::default(), 1).unwrap();
    let group = directory.get(id).unwrap();
    let state = State::Unsynced { transfer: group.view, donor: Some(member(3)) };
    assert_eq!(group.replica(member(4)).unwrap().state, state);
}

#[test]
fn when_the_donor_leaves_another_takes_over_under_a_new_name() {
    let (mut directory, id) = three();
    directory.join(member(4), "bank", GroupOptions::default(), 1).unwrap();
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
    let changed = other.install(RingId::default(), &directory.entries(), &announces, MAJORITY);
    assert_eq!(changed, [id]);
    let group = other.get(id).unwrap();
    assert_eq!(group.primary(), Some(member(3)), "2 is behind, 1 is gone");
    assert_eq!(group.view.0, directory.get(id).unwrap().view.0 + 1);
    let state = State::Unsynced { transfer: group.view, donor: Some(member(3)) };
    assert_eq!(group.replica(member(2)).unwrap().state, state);
}

#[test]
fn who_was_not_given_the_state_is_given_it_by_another() {
    let (mut directory, id) = three();
    directory.join(member(4), "bank", GroupOptions::default(), 1).unwrap();
    let of_four = |directory: &Directory| match directory.get(id).unwrap().replica(member(4)) {
        Some(Replica { state: State::Unsynced { transfer, donor }, .. }) => (*transfer, *donor),
        other => panic!("{other:?}"),
    };
    let mut donors = Vec::new();
    for _ in 0..4 {
        let (transfer, donor) = of_four(&directory);
        donors.extend(donor);
        assert_eq!(directory.give_anew(member(3), id, transfer), Change::None, "it has the state");
        assert_eq!(directory.give_anew(member(4), id, transfer), Change::View);
        assert_eq!(directory.give_anew(member(4), id, transfer), Change::None, "it is another now");
        directory.check_invariants();
    }
    assert_eq!(donors, [3, 2, 1, 3].map(member));
}

/// A false suspicion: nothing was asked of the group while the third was away.
#[test]
fn who_comes_back_with_the_last_request_needs_no_transfer() {
    let (directory, id) = three();
    let newest = Gathering { level: WHOLE, ..MAJORITY };
    let mut without = Directory::default();
    let two = announced(&[(1, 9), (2, 9)]);
    without.install(RingId::default(), &directory.entries(), &two, newest);
    assert_eq!(without.get(id).unwrap().synced().count(), 2);
    let all = |third| announced(&[(1, 9), (2, 9), (3, third)]);
    let back = |without: &Directory, third, gathering| {
        let mut back = Directory::default();
        back.install(RingId::default(), &without.entries(), &all(third), gathering);
        back.check_invariants();
        let group = back.get(id).unwrap();
        (group.synced().collect::<Vec<Member>>(), group.last, group.floor)
    };
    let everybody = ([1, 2, 3].map(member).to_vec(), place(9), place(9));
    assert_eq!(back(&without, 9, newest), everybody);
    assert_eq!(back(&without, 8, newest).0.len(), 2, "it lacks a request");
    assert_eq!(back(&without, 10, newest).0.len(), 2, "it took one that is in no history");
    assert_eq!(back(&without, 9, MAJORITY).0.len(), 2, "older programs would not follow");
    // The others have executed one meanwhile.
    without.requested(id, place(11));
    assert_eq!(back(&without, 9, newest).0.len(), 2, "it lacks that, as these announcements do");
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
    other.install(RingId::default(), &directory.entries(), &announces, MAJORITY);
    assert_eq!(other.get(id).unwrap().primary(), Some(member(1)));
}

/// The simulator's seed 17080: the donor alone knew that its transfers were done, and died.
#[test]
fn a_replica_that_was_given_the_state_has_it_before_the_table_says_so() {
    let (mut directory, id) = three();
    directory.join(member(4), "bank", GroupOptions::default(), 1).unwrap();
    let mut other = Directory::default();
    other.install(RingId::default(), &directory.entries(), &announced(&[(4, 9)]), MAJORITY);
    let group = other.get(id).unwrap();
    assert_eq!((group.primary(), group.asleep.len()), (Some(member(4)), 0));
}

#[test]
fn a_group_whose_replicas_are_cut_off_sleeps_until_one_is_back_with_everything() {
    let (directory, id) = three();
    let mut other = Directory::default();
    other.install(RingId::default(), &directory.entries(), &announced(&[(4, 0)]), MAJORITY);
    other.join(member(4), "bank", GroupOptions::default(), 1).unwrap();
    assert_eq!(other.get(id).unwrap().primary(), None, "it does not begin anew");

    // 1 is back, but lacks something that was ordered for the group.
    let mut later = Directory::default();
    let mut announces = announced(&[(1, 8)]);
    announces.extend(announced(&[(4, 0)]));
    later.install(RingId::default(), &other.entries(), &announces, MAJORITY);
    assert_eq!(later.get(id).unwrap().primary(), None);

    // 2 and 3 are back: both took requests that went into no history, 3 more than 2.
    let announces = announced(&[(2, 10), (3, 11), (4, 0)]);
    later.install(RingId::default(), &other.entries(), &announces, MAJORITY);
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
    asleep.install(RingId::default(), &directory.entries(), &announced(&[(4, 0)]), MAJORITY);
    let mut awake = asleep.clone();
    awake.install(RingId::default(), &asleep.entries(), &announced(&[(1, 12)]), MAJORITY);
    assert_eq!(awake.get(id).unwrap().primary(), Some(member(1)));
    // It announces this from now on.
    assert_eq!(awake.get(id).unwrap().last, place(12), "2 and 3 took no more than 9");
}

/// The table in a component of these members, and the replicas that have the group's state there.
fn install(
    directory: &Directory,
    announces: &BTreeMap<Member, Announce>,
) -> (Directory, Vec<Member>) {
    let mut next = Directory::default();
    next.install(RingId::default(), &directory.entries(), announces, MAJORITY);
    next.check_invariants();
    let group = next.get(GroupId::of("bank")).expect("the group");
    let synced = group.synced().collect();
    (next, synced)
}

/// A bystander knows of a request that was held by the dead alone: nobody was answered.
#[test]
fn enough_replicas_go_on_without_what_none_of_them_has() {
    let (directory, id) = three();
    let (asleep, synced) = install(&directory, &announced(&[(2, 7), (4, 0)]));
    assert_eq!(synced, [], "1 and 3 may have answered what 2 lacks");
    assert_eq!(asleep.get(id).unwrap().asleep.len(), 3);

    let both = announced(&[(2, 7), (3, 5), (4, 0)]);
    for before in [&directory, &asleep] {
        let (awake, synced) = install(before, &both);
        assert_eq!(synced, [member(2)], "two of three replicas had whatever was answered");
        let group = awake.get(id).unwrap();
        assert_eq!((group.last, group.floor), (place(7), place(7)));
    }
}

#[test]
fn of_two_replicas_either_goes_on_and_with_hold_all_each_of_three() {
    let (mut two, id) = three();
    two.leave(member(3), id);
    let group = two.groups.get_mut(&id).unwrap();
    (group.floor, group.last) = (place(6), place(9));
    assert_eq!(install(&two, &announced(&[(2, 8), (4, 0)])).1, [member(2)]);
    let (_, synced) = install(&two, &announced(&[(2, 5), (4, 0)]));
    assert_eq!(synced, [], "what was answered before there were two, 2 may not hold");

    let (mut three, id) = three();
    three.groups.get_mut(&id).unwrap().options.ack = wire::ordered::AckLevel::All;
    assert_eq!(install(&three, &announced(&[(2, 8), (4, 0)])).1, [member(2)]);
}

/// The simulator's seed 68557: a component without node 3 was begun, and then its last replica
/// died.
#[test]
fn who_was_struck_out_while_it_was_away_has_the_state_if_nothing_was_executed_since() {
    let (directory, id) = three();
    let (mut without, synced) = install(&directory, &announced(&[(1, 9), (4, 0)]));
    assert_eq!(synced, [member(1)]);
    let back = announced(&[(3, 9)]);
    assert_eq!(install(&without, &back).1, [member(3)], "1 is gone, 3 has all");
    without.requested(id, place(10));
    assert_eq!(install(&without, &back).1, [], "what 1 executed was answered");
}

/// The simulator's seed 19129: while 1 was away and had one request more, a component without it
/// began with 3 alone, which died before anything was executed in it.
#[test]
fn who_was_struck_out_with_more_than_the_last_request_goes_on_if_that_was_in_the_same_component() {
    let (directory, id) = three();
    let (without, synced) = install(&directory, &announced(&[(3, 9), (4, 0)]));
    assert_eq!(synced, [member(3)]);
    let back = announced(&[(1, 11), (2, 10), (4, 0)]);
    assert_eq!(install(&without, &back).1, [member(1)], "the furthest");
    assert_eq!(install(&without, &announced(&[(1, 8)])).1, [], "it lacks a request");

    let elsewhere = Place { epoch: 2, ..place(1) };
    let mut branch = announced(&[(1, 0)]);
    branch.get_mut(&member(1)).unwrap().replicas[0].1 = elsewhere;
    assert_eq!(install(&without, &branch).1, [], "a branch that may lack what was answered since");

    // A member of the table that took more goes first.
    let (mut asleep, synced) = install(&directory, &announced(&[(4, 0)]));
    assert_eq!(synced, []);
    asleep.join(member(4), "bank", GroupOptions::default(), 1).unwrap();
    assert_eq!(install(&asleep, &announced(&[(2, 10), (5, 11)])).1, [member(2)]);
    assert_eq!(asleep.get(id).unwrap().asleep.len(), 3);
}

#[test]
fn whose_node_is_back_in_another_life_is_not_waited_for() {
    let (directory, _) = three();
    let mut announces = announced(&[(2, 7)]);
    let reborn = |node| Member { incarnation: Incarnation(2), ..member(node) };
    let nothing = Announce { replicas: Vec::new(), ..announces[&member(2)].clone() };
    announces.insert(reborn(1), nothing.clone());
    assert_eq!(install(&directory, &announces).1, [], "3 may be back");
    announces.insert(reborn(3), nothing);
    assert_eq!(install(&directory, &announces).1, [member(2)], "nobody knows better any more");
}

/// The simulator's seed 1352: one side of a partition went on with node 3 alone, and the other
/// side's table is taken.
#[test]
fn without_a_quorum_the_state_of_another_branch_is_better_than_none() {
    let (directory, _) = three();
    let nothing = Announce { replicas: Vec::new(), ..announced(&[(1, 0)])[&member(1)].clone() };
    let mut announces = announced(&[(4, 7)]);
    announces.extend([1, 2].map(|node| (member(node), nothing.clone())));
    let install = |announces: &BTreeMap<Member, Announce>, rule| {
        let mut next = Directory::default();
        next.install(
            RingId::default(),
            &directory.entries(),
            announces,
            Gathering {
                rule,
                whole: false,
                component_order: NONE_VOID,
                level: 1,
                planted: NONE_PLANTED,
            },
        );
        next.check_invariants();
        next.get(GroupId::of("bank")).unwrap().synced().collect::<Vec<_>>()
    };
    assert_eq!(install(&announces, Quorum::Off), [], "3 may have more");
    announces.insert(member(3), nothing);
    assert_eq!(install(&announces, Quorum::Off), [member(4)]);
    assert_eq!(install(&announces, Quorum::Majority), [], "what was answered is never taken back");
}

#[test]
fn a_synced_replica_that_comes_or_goes_raises_the_floor() {
    let (mut directory, id) = three();
    directory.join(member(4), "bank", GroupOptions::default(), 1).unwrap();
    assert_eq!(directory.get(id).unwrap().floor, Place::default(), "4 has no state yet");
    let transfer = directory.get(id).unwrap().view;
    directory.synced(member(4), id, transfer);
    assert_eq!(directory.get(id).unwrap().floor, place(9));
    directory.requested(id, place(12));
    directory.leave(member(1), id);
    assert_eq!(directory.get(id).unwrap().floor, place(12));
}

/// The simulator's seed 6552: the only host died before anything was asked of the group.
#[test]
fn a_group_that_was_never_called_begins_with_whoever_is_there() {
    let mut directory = Directory::default();
    directory.join(member(1), "bank", GroupOptions::default(), 1).unwrap();
    let id = GroupId::of("bank");
    let nobody = announced(&[(4, 0)]).into_keys().map(|member| {
        let announce = Announce { replicas: Vec::new(), ..announced(&[(4, 0)])[&member].clone() };
        (member, announce)
    });
    let nobody: BTreeMap<Member, Announce> = nobody.collect();
    let (mut asleep, synced) = install(&directory, &nobody);
    assert_eq!(synced, []);
    let view = asleep.get(id).unwrap().view;
    assert!(!asleep.requested(id, place(3)), "nobody takes it");
    asleep.join(member(4), "bank", GroupOptions::default(), 1).unwrap();
    let group = asleep.get(id).unwrap();
    assert_eq!((group.primary(), group.asleep.len()), (Some(member(4)), 0));
    assert!(group.view > view, "views go on");

    // So does one that waited for the state when its donor died.
    directory.join(member(4), "bank", GroupOptions::default(), 1).unwrap();
    assert_eq!(install(&directory, &nobody).1, [member(4)]);
}

#[test]
fn other_options_are_refused() {
    let (mut directory, _) = three();
    let options = GroupOptions { ack: wire::ordered::AckLevel::All, ..GroupOptions::default() };
    let refused = directory.join(member(5), "bank", options, 1);
    assert_eq!(refused, Err(JoinRefused::Options(GroupOptions::default())));
}

#[test]
fn a_primary_moves_in_the_view_that_is_named_and_to_a_synced_replica_only() {
    let (mut directory, id) = three();
    directory.join(member(4), "bank", GroupOptions::default(), 1).unwrap();
    let view = directory.get(id).unwrap().view;
    let none = Planted::default();
    let ranks = |directory: &Directory| -> Vec<u32> {
        directory.get(id).unwrap().replicas.iter().map(|r| r.member.node.0).collect()
    };
    let old = ViewNumber(view.0 - 1);
    assert_eq!(directory.promote(member(3), id, old, none), Change::None, "of an old view");
    assert_eq!(directory.promote(member(4), id, view, none), Change::None, "without the state");
    assert_eq!(directory.promote(member(5), id, view, none), Change::None, "no replica");
    assert_eq!(directory.promote(member(1), id, view, none), Change::None, "it is there");
    assert_eq!(ranks(&directory), [1, 2, 3, 4]);
    assert_eq!(directory.promote(member(3), id, view, none), Change::View);
    assert_eq!(ranks(&directory), [3, 1, 2, 4], "who was primary is the next");
    assert_eq!(directory.get(id).unwrap().view.0, view.0 + 1);
    directory.check_invariants();
}

#[test]
fn backups_are_ranked_in_the_view_that_is_named_and_nobody_else_changes_place() {
    let (mut directory, id) = three();
    for node in [5, 4] {
        directory.join(member(node), "bank", GroupOptions::default(), 1).unwrap();
    }
    let view = directory.get(id).unwrap().view;
    directory.synced(member(4), id, view);
    let view = directory.get(id).unwrap().view;
    let none = Planted::default();
    let ranks = |directory: &Directory| -> Vec<u32> {
        directory.get(id).unwrap().replicas.iter().map(|r| r.member.node.0).collect()
    };
    assert_eq!(ranks(&directory), [1, 2, 3, 5, 4]);
    let rank = |directory: &mut Directory, view, order: &[u32]| {
        let order: Vec<NodeId> = order.iter().copied().map(NodeId).collect();
        directory.rank(id, view, &order, none)
    };
    let before = directory.clone();
    let old = ViewNumber(view.0 - 1);
    assert_eq!(rank(&mut directory, old, &[3]), Change::None, "of an old view");
    assert_eq!(rank(&mut directory, view, &[2, 3]), Change::None, "it is so");
    assert_eq!(rank(&mut directory, view, &[1, 5, 9]), Change::None, "none of these is one");
    assert_eq!(directory, before);
    assert_eq!(rank(&mut directory, view, &[4, 5, 1, 3]), Change::View);
    assert_eq!(
        ranks(&directory),
        [1, 4, 3, 5, 2],
        "5 has not got the state, and stays where it is"
    );
    assert_eq!(directory.get(id).unwrap().view.0, view.0 + 1);
    directory.check_invariants();
}

fn synced_of(directory: &Directory, id: GroupId) -> Vec<Member> {
    directory.get(id).unwrap().synced().collect()
}

#[test]
fn a_warm_passive_primary_stays_so_whoever_gets_the_state() {
    let (directory, id) = three_of(Style::WarmPassive);
    let mut other = Directory::default();
    other.install(
        RingId::default(),
        &directory.entries(),
        &announced(&[(1, 8), (2, 9), (3, 8)]),
        MAJORITY,
    );
    assert!(other.enthrone(id, place(1)));
    let view = other.get(id).unwrap().view;
    // 3 is given the state before 1, who is before it in rank.
    for node in [3, 1] {
        assert_eq!(other.synced(member(node), id, view), Change::View);
        assert!(!other.enthrone(id, place(7)), "2 is primary as before");
    }
    assert_eq!(synced_of(&other, id), [2, 3, 1].map(member));
    assert!(other.reigns(id, member(2), place(1)) && !other.reigns(id, member(2), place(7)));
    other.leave(member(2), id);
    assert!(other.enthrone(id, place(8)));
    assert!(other.reigns(id, member(3), place(8)) && !other.reigns(id, member(2), place(1)));
    let (semi_active, id) = three();
    let mut other = Directory::default();
    other.install(
        RingId::default(),
        &semi_active.entries(),
        &announced(&[(1, 8), (2, 9), (3, 9)]),
        MAJORITY,
    );
    other.synced(member(1), id, other.get(id).unwrap().view);
    assert_eq!(synced_of(&other, id), [1, 2, 3].map(member), "it gives way to the first in rank");
}

#[test]
fn a_change_of_style_that_its_primary_has_not_seen_is_void_when_it_has_taken_calls_since() {
    let (directory, id) = three_of(Style::SemiActive);
    let mut announces = announced(&[(1, 9), (2, 9), (3, 9)]);
    let mut other = Directory::default();
    other.install(RingId::default(), &directory.entries(), &announces, MAJORITY);
    assert_eq!(other.get(id).unwrap().options.style, Style::SemiActive);
    let view = other.get(id).unwrap().view;
    for node in [1, 3] {
        announces.get_mut(&member(node)).unwrap().ahead.push(id);
    }
    let mut other = Directory::default();
    assert_eq!(other.install(RingId::default(), &directory.entries(), &announces, MAJORITY), [id]);
    let group = other.get(id).unwrap();
    assert_eq!((group.options.style, group.primary()), (Style::WarmPassive, Some(member(1))));
    assert!(group.view > view, "clients hear of it");
    assert_eq!(synced_of(&other, id), [1, 2].map(member));
    announces.get_mut(&member(1)).unwrap().ahead.clear();
    let mut other = Directory::default();
    other.install(RingId::default(), &directory.entries(), &announces, MAJORITY);
    let style = other.get(id).unwrap().options.style;
    assert_eq!(style, Style::SemiActive, "who is ahead and not primary begins anew");
    assert_eq!(synced_of(&other, id), [1, 2].map(member));
}

#[test]
fn who_is_ahead_goes_on_as_primary_or_gets_the_state_anew() {
    let (directory, id) = three_of(Style::WarmPassive);
    let mut announces = announced(&[(1, 9), (2, 9), (3, 9)]);
    for node in [1, 3] {
        announces.get_mut(&member(node)).unwrap().ahead.push(id);
    }
    let mut other = Directory::default();
    assert_eq!(other.install(RingId::default(), &directory.entries(), &announces, MAJORITY), [id]);
    assert_eq!(synced_of(&other, id), [1, 2].map(member));
    other.check_invariants();
    announces.remove(&member(3));
    announces.get_mut(&member(1)).unwrap().replicas[0].1 = place(8);
    let mut without = Directory::default();
    without.install(RingId::default(), &directory.entries(), &announces, MAJORITY);
    assert_eq!(
        synced_of(&without, id),
        [member(2)],
        "1 is behind: what it is ahead of is not the history"
    );
}

/// The simulator's seed 3549 of the world of disks: a stateless group's only replica left, another
/// came.
#[test]
fn a_group_that_begins_anew_goes_on_with_its_views() {
    let id = GroupId::of("log");
    let join = |directory: &mut Directory, node| {
        directory.join(member(node), "log", GroupOptions::default(), 1).unwrap();
        directory.get(id).unwrap().view
    };
    let mut directory = Directory::default();
    assert_eq!(join(&mut directory, 1), ViewNumber(1));
    assert_eq!(join(&mut directory, 2), ViewNumber(2));
    directory.synced(member(2), id, ViewNumber(2));
    directory.leave(member(1), id);
    assert_eq!(directory.leave(member(2), id), Change::Removed);
    assert_eq!(join(&mut directory, 3), ViewNumber(5));
    assert_eq!(directory.leave(member(3), id), Change::Removed);

    // In another component all know what its table says.
    directory.install(RingId::default(), &[], &announced(&[]), MAJORITY);
    assert_eq!(join(&mut directory, 1), ViewNumber(1));
}
