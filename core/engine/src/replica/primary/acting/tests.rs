//! A primary and its backup, with the order and both services in the test's hands.

use super::*;
use alloc::vec;
use wire::ordered::{Died, Style};
use wire::{GroupId, Incarnation, Member, MethodId, NodeId, RingId, ViewNumber};

use crate::api::{Executed, Ticket};
use crate::bug::Planted;
use crate::replica::tests::asking;

const CLIENT: ClientId = ClientId(7);

fn place(sequence: u64) -> Place {
    Place { epoch: 1, ring: RingId::default(), sequence }
}

fn request(number: u64) -> Request {
    Request {
        group: GroupId(1),
        method: MethodId(1),
        json: false,
        read: false,
        client: CLIENT,
        number,
        unanswered: 1,
        time: Time(number),
        seed: 0,
        proven: 0,
        timeout_us: 1_000,
        priority: 0,
        identity: wire::ordered::Identity::Number,
        origin: None,
        body: Bytes::new(),
    }
}

fn outcome(number: u64) -> ServiceOutcome {
    ServiceOutcome::Ok(Bytes::copy_from_slice(&number.to_le_bytes()))
}

/// A replica with what it asks for.
struct Seat {
    replica: Replica,
    effects: Vec<Effect>,
}

impl Seat {
    fn live() -> Seat {
        let mut seat = Seat {
            replica: Replica::new(GroupId(1), Style::WarmPassive, false, Planted::default()),
            effects: Vec::new(),
        };
        seat.act(|replica, effects| replica.begin(effects));
        let me = Member { node: NodeId(1), incarnation: Incarnation(1) };
        seat.act(|replica, effects| replica.led_by(me, &[me], effects));
        seat
    }

    fn primary() -> Seat {
        let mut seat = Seat::live();
        seat.act(|replica, effects| replica.reign(Some(place(1)), effects));
        seat
    }

    fn act(&mut self, act: impl FnOnce(&mut Replica, &mut Vec<Effect>)) {
        act(&mut self.replica, &mut self.effects);
        self.replica.check_invariants();
    }

    fn calls(&mut self, numbers: core::ops::RangeInclusive<u64>) {
        for number in numbers {
            self.act(|replica, effects| replica.arrive(Time::ZERO, request(number), effects));
        }
    }

    /// The service does all that it was told. How many requests it executed.
    fn serve(&mut self) -> usize {
        let mut executed = 0;
        loop {
            let run = |effect: &Effect| matches!(effect, Effect::Run(_));
            let Some(next) = self.effects.iter().position(run) else { return executed };
            let Effect::Run(command) = self.effects.remove(next) else { unreachable!() };
            let (ticket, done): (Ticket, Executed) = match command {
                Command::Execute { ticket, number, .. } => {
                    executed += 1;
                    (ticket, Executed::Reply(outcome(number)))
                }
                Command::Change { ticket } => {
                    (ticket, Executed::Change(Ok(vec![0; UPDATE_CHUNK].into())))
                }
                Command::Apply { ticket, .. } => (ticket, Executed::Applied(Ok(()))),
                Command::Snapshot { ticket } => (ticket, Executed::Snapshot(Ok(Bytes::new()))),
                other => panic!("{other:?}"),
            };
            self.act(|replica, effects| replica.answered(ticket, done, effects));
        }
    }

    /// The ordered chunks.
    fn ordered(&mut self) -> Vec<PrimaryChunk> {
        let chunk = |effect: &Effect| match effect {
            Effect::Order(Ordered::PrimaryChunk(chunk)) => Some(chunk.clone()),
            _ => None,
        };
        let chunks = self.effects.iter().filter_map(chunk).collect();
        self.effects.retain(|effect| !matches!(effect, Effect::Order(_)));
        chunks
    }

    /// The calls that are answered, each after it was given its place.
    fn answered(&mut self) -> Vec<u64> {
        let mut placed = Vec::new();
        let mut numbers = Vec::new();
        self.effects.retain(|effect| match effect {
            Effect::Placed { number, .. } => {
                placed.push(*number);
                false
            }
            Effect::Answer { number, outcome: told, .. } => {
                assert_eq!((*told).clone(), outcome(*number));
                assert_eq!(placed.pop(), Some(*number));
                numbers.push(*number);
                false
            }
            _ => true,
        });
        numbers
    }

    fn hear(&mut self, chunk: &PrimaryChunk, own: bool) {
        self.act(|replica, effects| replica.update_chunk(chunk, own, effects));
    }

    fn has(&self, is: impl Fn(&Effect) -> bool) -> bool {
        self.effects.iter().any(is)
    }
}

/// Delivers the update that the primary has ordered, piece by piece. How many pieces.
fn deliver(primary: &mut Seat, backup: &mut Seat) -> usize {
    for pieces in 1.. {
        let chunks = primary.ordered();
        let [chunk] = &chunks[..] else { panic!("one piece is under way at a time: {chunks:?}") };
        primary.hear(chunk, true);
        backup.hear(chunk, false);
        if chunk.last {
            return pieces;
        }
    }
    unreachable!("an update ends")
}

fn joiner() -> Member {
    Member { node: NodeId(2), incarnation: wire::Incarnation(1) }
}

#[test]
fn what_is_executed_while_an_update_is_under_way_gathers_for_the_next() {
    let (mut primary, mut backup) = (Seat::primary(), Seat::live());
    primary.calls(1..=1);
    assert_eq!(primary.serve(), 1);
    primary.calls(2..=5);
    assert_eq!(primary.serve(), 4);
    assert_eq!(primary.answered(), [], "nothing of it is in the order");
    assert_eq!(deliver(&mut primary, &mut backup), 2, "a whole chunk, and what is left");
    assert_eq!(primary.answered(), [1]);
    primary.serve();
    assert!(primary.replica.is_ahead());
    deliver(&mut primary, &mut backup);
    assert_eq!(primary.answered(), [2, 3, 4, 5]);
    assert!(!primary.replica.is_ahead() && primary.ordered().is_empty());
    assert_eq!(backup.serve(), 0);
    assert_eq!(backup.answered(), [1, 2, 3, 4, 5]);
    assert_eq!((backup.replica.executed(), primary.replica.executed()), (Some(5), Some(5)));
    assert_eq!(backup.replica.known(&asking(CLIENT, 3)), Some(Some(outcome(3))));
}

#[test]
fn a_primary_that_stays_so_orders_its_update_again_from_the_beginning() {
    let (mut primary, mut backup) = (Seat::primary(), Seat::live());
    primary.calls(1..=1);
    primary.serve();
    let lost = primary.ordered();
    primary.hear(&lost[0], true);
    assert_eq!(primary.ordered()[0].index, 1);
    primary.act(|replica, effects| replica.reign(None, effects));
    primary.calls(2..=2);
    assert_eq!(primary.serve(), 0, "nothing is executed between components");
    primary.act(|replica, effects| replica.reign(Some(place(2)), effects));
    assert_eq!(deliver(&mut primary, &mut backup), 2);
    assert_eq!((primary.answered(), backup.answered()), (vec![1], vec![1]));
}

#[test]
fn a_retry_is_answered_from_the_order_only() {
    let (mut primary, mut backup) = (Seat::primary(), Seat::live());
    primary.calls(1..=1);
    primary.serve();
    primary.calls(1..=1);
    assert_eq!((primary.serve(), primary.answered()), (0, vec![]), "its update is under way");
    deliver(&mut primary, &mut backup);
    assert_eq!(primary.answered(), [1]);
    primary.calls(1..=1);
    assert_eq!((primary.serve(), primary.answered()), (0, vec![1]));
}

#[test]
fn a_state_is_given_as_of_a_place_between_two_updates() {
    let (mut primary, mut backup) = (Seat::primary(), Seat::live());
    primary.calls(1..=1);
    primary.serve();
    let wanted = [(ViewNumber(2), joiner())];
    primary.act(|replica, effects| replica.give_states(&wanted, effects));
    primary.calls(2..=2);
    assert_eq!(primary.serve(), 0, "it waits until what it executed is ordered");
    deliver(&mut primary, &mut backup);
    let snapshot = |effect: &Effect| matches!(effect, Effect::Run(Command::Snapshot { .. }));
    assert!(primary.has(snapshot));
    assert_eq!(primary.serve(), 1, "then it goes on");
    assert!(primary.has(|effect| matches!(effect, Effect::Order(Ordered::StateChunk(_)))));
}

/// A joiner that hears two updates, and is then given the state as of the first. `torn`: it came
/// when a piece of the second was over.
fn joined(torn: bool) -> Seat {
    let (mut primary, mut witness) = (Seat::primary(), Seat::live());
    primary.calls(1..=1);
    primary.serve();
    let mut seat = Seat::live();
    seat.act(|replica, effects| replica.await_state(ViewNumber(2), Style::WarmPassive, effects));
    let first = primary.ordered().remove(0);
    primary.hear(&first, true);
    deliver(&mut primary, &mut witness); // the joiner came in the middle of it
    primary.calls(2..=2);
    primary.serve();
    for index in 0..2 {
        let chunk = primary.ordered().remove(0);
        primary.hear(&chunk, true);
        if index > 0 || !torn {
            seat.hear(&chunk, false);
        }
    }
    let head = wire::ordered::StateHead { executed: 1, updates: 1, ..Default::default() };
    let state = wire::ordered::ReplicaState { head, service: Bytes::new() }.encode();
    let (group, transfer, index, last) = (GroupId(1), ViewNumber(2), 0, true);
    let chunk = wire::ordered::StateChunk { group, transfer, index, last, bytes: state.whole() };
    seat.effects.clear();
    seat.act(|replica, effects| replica.state_chunk(Time::ZERO, chunk, effects));
    let Some(Effect::Run(Command::Restore { ticket, .. })) = seat.effects.pop() else {
        panic!("{:?}", seat.effects)
    };
    seat.act(|replica, effects| replica.answered(ticket, Executed::Restored(Ok(())), effects));
    seat
}

#[test]
fn a_joiner_takes_the_updates_that_its_state_has_not() {
    let mut seat = joined(false);
    assert!(seat.has(|effect| matches!(effect, Effect::Order(Ordered::Synced(_)))));
    seat.serve();
    assert_eq!(seat.answered(), [2]);
    assert_eq!(seat.replica.executed(), Some(2));
}

#[test]
fn a_joiner_that_missed_a_piece_of_an_update_comes_anew() {
    let seat = joined(true);
    assert!(seat.has(|effect| matches!(effect, Effect::Overflow)));
    assert!(!seat.replica.has_state());
}

#[test]
fn a_backup_whose_service_cannot_take_an_update_comes_anew() {
    let (mut primary, mut backup) = (Seat::primary(), Seat::live());
    primary.calls(1..=1);
    primary.serve();
    deliver(&mut primary, &mut backup);
    let apply = backup.effects.iter().find_map(|effect| match effect {
        Effect::Run(Command::Apply { ticket, .. }) => Some(*ticket),
        _ => None,
    });
    let failed = Executed::Applied(Err("no".into()));
    backup.act(|replica, effects| replica.answered(apply.unwrap(), failed, effects));
    assert!(backup.has(|effect| matches!(effect, Effect::Overflow)));
    assert!(!backup.replica.has_state());
}

#[test]
fn a_primary_that_cannot_say_what_it_changed_says_so_and_answers_nothing() {
    let mut primary = Seat::primary();
    primary.calls(1..=1);
    let tickets: Vec<Ticket> = primary
        .effects
        .drain(..)
        .filter_map(|effect| match effect {
            Effect::Run(Command::Execute { ticket, .. } | Command::Change { ticket }) => {
                Some(ticket)
            }
            _ => None,
        })
        .collect();
    let done = [Executed::Reply(outcome(1)), Executed::Change(Err("no".into()))];
    for (ticket, done) in tickets.into_iter().zip(done) {
        primary.act(|replica, effects| replica.answered(ticket, done, effects));
    }
    assert!(primary.has(|effect| matches!(effect, Effect::Unfit)));
    assert_eq!(primary.answered(), []);
    assert!(primary.replica.is_ahead());
    // Nobody else has the state: it stays, and the next call has it try again.
    primary.calls(2..=2);
    assert_eq!(primary.serve(), 1);
    deliver(&mut primary, &mut Seat::live());
    assert_eq!(primary.answered(), [1, 2]);
}

#[test]
fn no_more_is_executed_than_one_update_can_tell_of() {
    let (mut primary, mut backup) = (Seat::primary(), Seat::live());
    let limit = MAX_UPDATE_CALLS as u64;
    for client in 0..limit + 10 {
        let request = Request { client: ClientId(client), ..request(1) };
        primary.act(|replica, effects| replica.arrive(Time::ZERO, request, effects));
    }
    assert_eq!(primary.serve(), MAX_UPDATE_CALLS);
    deliver(&mut primary, &mut backup);
    assert_eq!(primary.serve(), 1, "as many as the first update has told of");
}

/// A program tells several answers at once: what it died of is one of those that it has not told.
#[test]
fn what_a_service_may_have_died_of_is_executed_alone_and_nobody_executes_what_two_died_of() {
    let member = |id| Member { node: NodeId(id), incarnation: Incarnation(1) };
    let died = |ahead: &[u64]| {
        let ahead = ahead.iter().map(|number| (CLIENT, *number)).collect();
        Died { executed: 0, given: 0, ahead }
    };
    let mut primary = Seat::primary();
    primary.act(|replica, effects| replica.member_died(member(2), died(&[1, 2, 3]), effects));
    primary.calls(1..=4);
    assert_eq!(primary.replica.reach(crate::api::Begun::Any).ahead, [(CLIENT, 1)]);
    let run = |effect: &Effect| matches!(effect, Effect::Run(Command::Execute { .. }));
    assert_eq!(primary.effects.iter().filter(|effect| run(effect)).count(), 1);
    assert_eq!(primary.serve(), 4);

    let mut primary = Seat::primary();
    for node in [2, 3] {
        primary.act(|replica, effects| replica.member_died(member(node), died(&[2]), effects));
    }
    primary.calls(1..=3);
    assert_eq!(primary.serve(), 2);
    let poisoned = |effect: &Effect| {
        matches!(effect, Effect::Answer { number: 2, outcome, .. }
            if matches!(outcome, ServiceOutcome::Refused(Refusal::Poisoned, _)))
    };
    let mut chunks = primary.ordered();
    while let Some(chunk) = chunks.pop() {
        primary.hear(&chunk, true);
        assert_eq!(primary.serve(), 0);
        chunks.extend(primary.ordered());
    }
    assert!(primary.effects.iter().any(poisoned), "{:?}", primary.effects);
    let listed: Vec<_> = primary.replica.poisons().iter().map(|it| (it.number, it.call)).collect();
    assert_eq!(listed, [(2, 2)]);
}
