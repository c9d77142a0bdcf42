//! A replica alone: transfers that come to nothing.

use super::*;
use alloc::vec;
use wire::{Incarnation, Member, MethodId, NodeId};

fn replica() -> Replica {
    Replica::new(GroupId(1), Style::SemiActive, false, Planted::default())
}

fn request(number: u64) -> Request {
    Request {
        group: GroupId(1),
        method: MethodId(1),
        json: false,
        read: false,
        client: ClientId(1),
        number,
        unanswered: number,
        time: Time::ZERO,
        seed: 0,
        body: Bytes::new(),
    }
}

fn tickets(effects: &[Effect]) -> Vec<Ticket> {
    let ticket = |effect: &Effect| match effect {
        Effect::Run(
            Command::Execute { ticket, .. }
            | Command::Snapshot { ticket }
            | Command::Restore { ticket, .. },
        ) => Some(*ticket),
        _ => None,
    };
    effects.iter().filter_map(ticket).collect()
}

/// A replica that gives its state to another under this name.
fn donor(transfer: ViewNumber) -> (Replica, Ticket) {
    let (mut replica, mut effects) = (replica(), Vec::new());
    replica.begin(&mut effects);
    let joiner = Member { node: NodeId(2), incarnation: Incarnation(1) };
    replica.give_states(&[(transfer, joiner)], &mut effects);
    (replica, tickets(&effects)[0])
}

#[test]
fn a_donor_that_gives_a_transfer_up_loses_no_request() {
    let (mut replica, snapshot) = donor(ViewNumber(2));
    let mut effects = Vec::new();
    let all = MAX_JOIN_BACKLOG as u64 + 1;
    for number in 1..=all {
        replica.deliver(request(number), false, &mut effects);
    }
    assert_eq!(tickets(&effects).len() as u64, all);
    replica.check_invariants();
    effects.clear();
    let late = Executed::Snapshot(Ok(Bytes::new()));
    replica.answered(snapshot, late, &mut effects);
    assert!(effects.is_empty(), "the snapshot is of no use any more: {effects:?}");
}

#[test]
fn a_joiner_that_gives_up_keeps_nothing() {
    let (mut replica, mut effects) = (replica(), Vec::new());
    replica.await_state(ViewNumber(2), &mut effects);
    for number in 1..=MAX_JOIN_BACKLOG as u64 + 1 {
        replica.deliver(request(number), false, &mut effects);
    }
    assert!(matches!(effects[..], [Effect::Overflow]), "{effects:?}");
    replica.check_invariants();
}

#[test]
fn a_snapshot_that_nobody_waits_for_any_more_is_not_sent() {
    let (mut replica, snapshot) = donor(ViewNumber(2));
    let mut effects = vec![];
    replica.give_states(&[], &mut effects);
    replica.answered(snapshot, Executed::Snapshot(Ok(Bytes::new())), &mut effects);
    assert!(effects.is_empty(), "{effects:?}");
    replica.deliver(request(1), false, &mut effects);
    assert_eq!(tickets(&effects).len(), 1, "it goes on");
}
