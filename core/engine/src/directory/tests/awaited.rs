//! Replicas that are gone from the table and come again.

use super::*;

/// Seed 81912 of the world of clusters: the second of two replicas was taken out of a voting group
/// because it took too little for settled, and the first left before it was back. The group ended,
/// and began anew with nothing of what had been answered.
#[test]
fn the_last_that_has_the_state_stays_until_who_was_taken_out_is_back() {
    let (mut directory, id) = three_of(Style::Voting);
    assert_eq!(directory.leave(member(3), id), Change::View);
    assert_eq!(directory.expel(member(2), id), Change::View);
    assert_eq!(directory.leave(member(1), id), Change::None, "2 comes again");
    let options = directory.get(id).unwrap().options;
    assert_eq!(directory.join(member(2), "bank", options, 1), Ok(Change::View));
    directory.check_invariants();
    assert_eq!(directory.leave(member(1), id), Change::None, "2 waits for the state");
    let transfer = directory.get(id).unwrap().view;
    assert_eq!(directory.synced(member(2), id, transfer), Change::View);
    assert_eq!(directory.leave(member(1), id), Change::View);
    assert_eq!(directory.leave(member(2), id), Change::Removed, "nobody else is to come");
}

#[test]
fn who_says_that_it_does_not_come_again_is_not_awaited() {
    let (mut directory, id) = three();
    assert_eq!(directory.come_anew(member(3), id), Change::View);
    assert_eq!(directory.come_anew(member(3), id), Change::None, "it is gone already");
    assert_eq!(directory.come_anew(member(2), id), Change::View);
    assert_eq!(directory.come_anew(member(1), id), Change::None, "it alone has the state");
    assert_eq!(directory.leave(member(3), id), Change::View);
    assert_eq!(directory.leave(member(1), id), Change::None, "2 comes again");
    assert_eq!(directory.leave(member(2), id), Change::View);
    assert_eq!(directory.leave(member(1), id), Change::Removed);
}

#[test]
fn a_new_component_awaits_whose_lives_are_in_it() {
    let (mut directory, id) = three();
    directory.come_anew(member(2), id);
    directory.come_anew(member(3), id);
    let entries = directory.entries();
    directory.install(RingId::default(), &entries, &announced(&[(1, 9), (3, 9)]), MAJORITY);
    assert_eq!(directory.get(id).unwrap().awaited, [member(3)]);
    assert_eq!(directory.leave(member(1), id), Change::None);
    directory.install(RingId::default(), &entries, &announced(&[(1, 9)]), MAJORITY);
    assert_eq!(directory.get(id).unwrap().awaited, []);
    assert_eq!(directory.leave(member(1), id), Change::Removed);
    // The state of one of them goes on: it is there.
    directory.install(RingId::default(), &entries, &announced(&[(2, 9), (3, 8)]), MAJORITY);
    directory.check_invariants();
    assert_eq!(synced_of(&directory, id), [member(2)]);
    assert_eq!(directory.get(id).unwrap().awaited, [member(3)]);
}
