//! Ballots that arrive after the end of their vote.

use wire::ordered::{Ballot, Digest, Restyle, Style};

use super::*;
use crate::replica::digest;

/// Nodes 1 and 2 have the state of an active group.
fn two_active() -> Room {
    let mut room = Room::active(Vec::new());
    let options = GroupOptions { style: Style::Active, ..GroupOptions::default() };
    room.stack.host(NOW, "log", options).expect("hosted");
    room.join_with(1, options);
    room.join_with(2, options);
    room.snapshot();
    let transfer = room.stack.base.directory.get(log()).expect("the group").transfer();
    room.deliver(2, Ordered::Synced(Synced { group: log(), transfer }));
    room
}

fn restyle(room: &mut Room, style: Style) {
    let view = room.stack.base.directory.get(log()).expect("the group").view;
    room.deliver(1, Ordered::Restyle(Restyle { group: log(), view, style }));
}

fn ballot(since: u64, opening: Option<u64>, first: u64, outcomes: &[u8]) -> Ordered {
    let digests = outcomes.iter().map(|outcome| Digest([*outcome; 16])).collect();
    Ordered::Ballot(Ballot {
        group: log(),
        since,
        opening,
        first,
        proven: 0,
        begun: false,
        digests,
    })
}

/// Seed 107622 of the world of clusters: an opening waited behind other messages while the group
/// ceased to vote and voted again. Its settled position was taken for everybody's, and nothing was
/// settled any more.
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
        room.stack.replicas.votes.base(log()).expect("it votes"),
        9,
        "both have told the same of the call, and nobody waits for more"
    );
}

/// A node's ballot names its vote.
#[test]
fn what_is_told_names_its_vote() {
    let mut room = two_active();
    restyle(&mut room, Style::Voting);
    let since = room.sequence;
    let ballots =
        room.stack.base.outbox.ordering.multicast.iter().filter_map(
            |payload| match Ordered::decode(payload) {
                Ok(Ordered::Ballot(ballot)) => Some((ballot.since, ballot.opening)),
                _ => None,
            },
        );
    assert_eq!(ballots.collect::<Vec<_>>(), [(since, Some(0))]);
}

/// Simulator seed 557714: this replica never learned that calls were settled before it had the
/// state, if the next call preceded its opening in the order. A client that asked this replica for
/// one waited for ever.
#[test]
fn who_joins_learns_all_that_was_settled_meanwhile() {
    let mut room = Room::active(Vec::new());
    let options = GroupOptions { style: Style::Voting, ..GroupOptions::default() };
    room.stack.host(NOW, "log", options).expect("hosted");
    room.join_with(2, options);
    room.join_with(1, options);
    let same = ServiceOutcome::Ok(Bytes::from_static(b"same"));
    let told = |first| {
        let digests = [digest(&same)].to_vec();
        Ordered::Ballot(Ballot {
            group: log(),
            since: 0,
            opening: None,
            first,
            proven: 2,
            begun: false,
            digests,
        })
    };
    room.deliver(2, ballot(0, Some(0), 1, &[]));
    room.request(2, 1);
    room.request(2, 2);
    room.deliver(2, told(1));
    let transfer = room.transfer();
    for ticket in room.executions() {
        room.executed(ticket, "same");
    }
    room.deliver(2, told(2));
    room.deliver(1, ballot(0, Some(0), 1, &[]));
    room.deliver(1, Ordered::Synced(Synced { group: log(), transfer }));
    room.hold_all();
    for number in [1, 2] {
        room.call(number);
        assert_eq!(room.replies(), [Outcome::Ok(Bytes::from_static(b"same"))], "{number}");
    }
}
