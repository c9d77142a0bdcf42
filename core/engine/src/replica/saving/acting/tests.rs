//! A replica whose service takes its time to tell its state.

use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::MAX_JOIN_BACKLOG;
use wire::ordered::{ReplicaState, Request, Style};
use wire::{ClientId, GroupId, MethodId, Time};

use super::*;
use crate::api::{Command, Executed, ServiceOutcome, Ticket};
use crate::bug::Planted;

fn request(number: u64) -> Request {
    Request {
        group: GroupId(1),
        method: MethodId(1),
        json: false,
        read: false,
        proven: 0,
        client: ClientId(1),
        number,
        unanswered: number,
        time: Time::ZERO,
        seed: 0,
        timeout_us: 1_000,
        priority: 0,
        identity: wire::ordered::Identity::Number,
        origin: None,
        body: Bytes::new(),
    }
}

fn begun() -> Replica {
    let mut replica = Replica::new(GroupId(1), Style::SemiActive, false, Planted::default());
    let me = wire::Member { node: wire::NodeId(1), incarnation: wire::Incarnation(1) };
    replica.led_by(me, &[me], &mut Vec::new());
    replica.begin(&mut Vec::new());
    replica
}

/// The tickets of the service's commands.
fn tickets(effects: &[Effect]) -> Vec<Ticket> {
    let ticket = |effect: &Effect| match effect {
        Effect::Run(Command::Execute { ticket, .. } | Command::Snapshot { ticket }) => {
            Some(*ticket)
        }
        _ => None,
    };
    effects.iter().filter_map(ticket).collect()
}

fn saved(effects: &[Effect]) -> Option<Result<(Form, Bytes), String>> {
    effects.iter().find_map(|effect| match effect {
        Effect::Saved(taken) => Some(taken.clone()),
        _ => None,
    })
}

fn state() -> Executed {
    Executed::Snapshot(Ok("state".into()))
}

#[test]
fn what_comes_while_the_state_is_taken_waits_and_is_not_in_it() {
    let (mut replica, mut effects) = (begun(), Vec::new());
    replica.deliver(Time::ZERO, request(1), false, &mut effects);
    replica.save(7, &mut effects);
    replica.deliver(Time::ZERO, request(2), false, &mut effects);
    let given = tickets(&effects);
    assert_eq!(given.len(), 2, "the second waits");
    effects.clear();
    let reply = Executed::Reply(ServiceOutcome::Ok("one".into()));
    replica.answered(given[0], reply, &mut effects);
    replica.answered(given[1], state(), &mut effects);
    let (form, bytes) = saved(&effects).expect("it is there").expect("it could be had");
    let whole = ReplicaState::decode(&bytes).expect("it can be read");
    assert_eq!((form, whole.head.executed, &whole.service[..]), (Form::State, 1, &b"state"[..]));
    assert_eq!(whole.head.sessions[0].replies.len(), 1);
    assert!(!replica.is_saving(7));
    assert_eq!(tickets(&effects).len(), 1, "the second is executed now");
    replica.check_invariants();
}

#[test]
fn a_save_that_is_given_up_is_told_to_nobody_and_another_is_not_taken_for_it() {
    let (mut replica, mut effects) = (begun(), Vec::new());
    replica.save(1, &mut effects);
    let first = tickets(&effects)[0];
    replica.give_save_up(1);
    replica.save(2, &mut effects);
    effects.clear();
    replica.answered(first, state(), &mut effects);
    assert!(saved(&effects).is_none(), "it is of the earlier place");
    let second = tickets(&effects)[0];
    effects.clear();
    replica.answered(second, state(), &mut effects);
    assert!(saved(&effects).is_some_and(|taken| taken.is_ok()));
}

#[test]
fn a_save_during_a_transfer_waits_for_its_turn_and_outlives_its_end() {
    let (mut replica, mut effects) = (begun(), Vec::new());
    let joiner = wire::Member { node: wire::NodeId(2), incarnation: wire::Incarnation(1) };
    replica.give_states(&[(ViewNumber(2), joiner)], &mut effects);
    replica.save(1, &mut effects);
    let transfer = tickets(&effects);
    replica.give_states(&[], &mut effects);
    effects.clear();
    replica.answered(transfer[0], state(), &mut effects);
    let save = tickets(&effects);
    assert_eq!((transfer.len(), save.len()), (1, 1), "one snapshot at a time");
    effects.clear();
    replica.answered(save[0], state(), &mut effects);
    assert!(saved(&effects).is_some_and(|taken| taken.is_ok()));
}

#[test]
fn a_state_that_cannot_be_had_is_told() {
    let (mut replica, mut effects) = (begun(), Vec::new());
    replica.save(1, &mut effects);
    let ticket = tickets(&effects)[0];
    effects.clear();
    replica.answered(ticket, Executed::Snapshot(Err("no".into())), &mut effects);
    assert_eq!(saved(&effects), Some(Err("no".into())));

    // So many requests wait that the snapshot is given up.
    replica.save(2, &mut effects);
    effects.clear();
    for number in 1..=MAX_JOIN_BACKLOG as u64 + 1 {
        replica.deliver(Time::ZERO, request(number), false, &mut effects);
    }
    assert!(saved(&effects).is_some_and(|taken| taken.is_err()));
    replica.check_invariants();

    // The replica leaves its group.
    let mut replica = begun();
    replica.save(3, &mut effects);
    replica.idle(&mut effects);
    assert!(!replica.is_saving(3));
}
