//! Ballots that come when the vote that they are about is over.

use wire::ordered::{Ballot, Digest, Restyle, Style};

use super::*;

/// Nodes 1 and 2 have the state of an active group.
fn two_active() -> Room {
    let mut room = Room::active(Vec::new());
    let options = GroupOptions { style: Style::Active, ..GroupOptions::default() };
    room.stack.host(NOW, "log", options).expect("hosted");
    room.join_with(1, options);
    room.join_with(2, options);
    room.snapshot();
    let transfer = room.stack.directory.get(log()).expect("the group").view;
    room.deliver(2, Ordered::Synced(Synced { group: log(), transfer }));
    room
}

fn restyle(room: &mut Room, style: Style) {
    let view = room.stack.directory.get(log()).expect("the group").view;
    room.deliver(1, Ordered::Restyle(Restyle { group: log(), view, style }));
}

fn ballot(since: u64, opening: Option<u64>, first: u64, outcomes: &[u8]) -> Ordered {
    let digests = outcomes.iter().map(|outcome| Digest([*outcome; 16])).collect();
    Ordered::Ballot(Ballot { group: log(), since, opening, first, digests })
}

/// Seed 107622 of the world of clusters: an opening waited behind other messages while the group ceased to vote and voted again. What
/// it took for settled was taken for what all did, and nothing was settled any more.
#[test]
fn a_ballot_of_an_earlier_vote_counts_no_more() {
    let mut room = two_active();
    restyle(&mut room, Style::Voting);
    let earlier = room.sequence;
    restyle(&mut room, Style::Active);
    restyle(&mut room, Style::Voting);
    let since = room.sequence;
    for node in [1, 2] {
        room.deliver(node, ballot(earlier, Some(3), 4, &[]));
    }
    for node in [1, 2] {
        room.deliver(node, ballot(since, Some(8), 9, &[]));
    }
    for node in [1, 2] {
        room.deliver(node, ballot(since, None, 9, &[7]));
    }
    assert_eq!(
        room.stack.tallies[&log()].base(),
        9,
        "both have told the same of the call, and nobody waits for more"
    );
}

/// What a node orders names the vote that it is about.
#[test]
fn what_is_told_names_its_vote() {
    let mut room = two_active();
    restyle(&mut room, Style::Voting);
    let since = room.sequence;
    let ballots =
        room.stack.ordering.multicast.iter().filter_map(|payload| match Ordered::decode(payload) {
            Ok(Ordered::Ballot(ballot)) => Some((ballot.since, ballot.opening)),
            _ => None,
        });
    assert_eq!(ballots.collect::<Vec<_>>(), [(since, Some(0))]);
}
