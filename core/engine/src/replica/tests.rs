//! A replica alone: transfers that come to nothing, and votes that deviate.

use super::*;
use crate::api::{NestedCall, NestedError};
use crate::tally::Verdict;
use alloc::{format, vec};
use wire::limits::MAX_WAITING;
use wire::ordered::{
    Change, End, KeptReply, NestedEnd, Ordered, Place, Poisoned, PrimaryChunk, Progress, Told,
    Update, UpdateEntry, UpdateHead,
};
use wire::{ClientId, Duration, Incarnation, Member, MethodId, NodeId};

/// A replica that leads its group.
fn replica() -> Replica {
    let mut replica = Replica::new(GroupId(1), Style::SemiActive, false, Planted::default());
    let me = Member { node: NodeId(1), incarnation: Incarnation(1) };
    replica.led_by(me, &[me], &mut Vec::new());
    replica
}

/// A client's question for this call.
pub(super) fn asking(client: ClientId, number: u64) -> wire::client::Request {
    let Request { group, method, json, priority, body, .. } = request(number);
    wire::client::Request {
        group,
        client,
        number,
        unanswered: 1,
        view: ViewNumber(1),
        method,
        timeout_us: 1_000,
        json,
        beside: false,
        has_key: false,
        access: wire::client::Access::Change,
        priority,
        body,
    }
}

pub(super) fn request(number: u64) -> Request {
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
        proven: 0,
        timeout_us: 1_000,
        priority: 0,
        identity: wire::ordered::Identity::Number,
        origin: None,
        body: Bytes::new(),
    }
}

pub(super) fn tickets(effects: &[Effect]) -> Vec<Ticket> {
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
        replica.deliver(Time::ZERO, request(number), false, &mut effects);
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
    replica.await_state(ViewNumber(2), Style::SemiActive, &mut effects);
    for number in 1..=MAX_JOIN_BACKLOG as u64 + 1 {
        replica.deliver(Time::ZERO, request(number), false, &mut effects);
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
    replica.deliver(Time::ZERO, request(1), false, &mut effects);
    assert_eq!(tickets(&effects).len(), 1, "it goes on");
}

/// Seeds 3731 and 3255 of the world of styles: between the verdict and the place at which all knew
/// that it deviated, the entry was asked again.
#[test]
fn who_deviates_answers_no_retry_and_gives_its_state_to_nobody() {
    for executes_late in [false, true] {
        let planted = Planted::default();
        let mut replica = Replica::new(GroupId(1), Style::Voting, false, planted);
        let mut effects = Vec::new();
        let me = Member { node: NodeId(1), incarnation: Incarnation(1) };
        replica.led_by(me, &[me], &mut effects);
        replica.begin(&mut effects);
        replica.ballot_delivered(true);
        replica.deliver(Time::ZERO, request(1), false, &mut effects);
        let ticket = tickets(&effects)[0];
        let right = ServiceOutcome::Ok("right".into());
        let verdict = Verdict::Agreed(voting::digest(&right));
        let wrong = Executed::Reply(ServiceOutcome::Ok("wrong".into()));
        if executes_late {
            replica.settled(1, verdict, &mut effects);
            replica.answered(ticket, wrong, &mut effects);
        } else {
            replica.answered(ticket, wrong, &mut effects);
            replica.settled(1, verdict, &mut effects);
        }
        replica.deliver(Time::ZERO, request(1), false, &mut effects);
        assert_eq!(replica.known(&asking(ClientId(1), 1)), Some(None));
        let joiner = Member { node: NodeId(2), incarnation: Incarnation(1) };
        replica.give_states(&[(ViewNumber(2), joiner)], &mut effects);
        let snapshot = *tickets(&effects).last().expect("it is asked for its state");
        replica.answered(snapshot, Executed::Snapshot(Ok(Bytes::new())), &mut effects);
        let speaks = |effect: &Effect| {
            matches!(effect, Effect::Answer { .. } | Effect::Order(Ordered::StateChunk(_)))
        };
        assert!(!effects.iter().any(speaks), "{effects:?}");
        // In a new component what it told is void: it goes, and comes back with the state of
        // another.
        effects.clear();
        replica.open_votes(false, &mut effects);
        assert!(matches!(effects[0], Effect::Overflow), "{effects:?}");
        assert!(!replica.has_state());
    }
}

/// Seed 173 of the world of decay: a replica that was taken out heard how the others settled a call
/// that it did not have. All others were lost, it went on alone, and its own call of that position
/// differed: it waited for ever.
#[test]
fn who_is_out_of_the_group_hears_no_verdicts() {
    for is_out in [false, true] {
        let mut replica = Replica::new(GroupId(1), Style::Voting, false, Planted::default());
        let mut effects = Vec::new();
        replica.begin(&mut effects);
        replica.ballot_delivered(true);
        if is_out {
            replica.close_votes();
        }
        let of_others = voting::digest(&ServiceOutcome::Ok("theirs".into()));
        replica.settled(1, Verdict::Agreed(of_others), &mut effects);
        effects.clear();
        replica.open_votes(true, &mut effects);
        let Effect::Vote(slip) = &effects[0] else { panic!("{effects:?}") };
        assert_eq!(slip.opening, Some(u64::from(!is_out)));
    }
}

/// Where the group is by the order votes already, anew, and this replica is to be given what was
/// ordered before: what it said now would be of another vote.
#[test]
fn who_is_behind_a_change_of_style_says_nothing_of_votes_before_it_is_there() {
    let (mut replica, mut effects) = (replica(), Vec::new());
    replica.begin(&mut effects);
    replica.restyle(Style::Voting, false, &mut effects);
    let said = |effects: &[Effect]| {
        effects.iter().filter(|effect| matches!(effect, Effect::Vote(_))).count()
    };
    assert_eq!(said(&effects), 1, "it opens");
    replica.ballot_delivered(true);
    let joiner = Member { node: NodeId(2), incarnation: Incarnation(1) };
    replica.give_states(&[(ViewNumber(2), joiner)], &mut effects);
    let snapshot = *tickets(&effects).last().expect("it is asked for its state");
    effects.clear();
    replica.restyle(Style::Active, false, &mut effects);
    replica.restyle(Style::Voting, false, &mut effects);
    replica.deliver(Time::ZERO, request(1), false, &mut effects);
    replica.open_votes(false, &mut effects);
    assert!(replica.take_ballot().is_none());
    assert_eq!(said(&effects), 0);
    replica.answered(snapshot, Executed::Snapshot(Ok(Bytes::new())), &mut effects);
    assert_eq!(said(&effects), 1, "of the vote that is");
}

#[test]
fn calls_are_refused_while_a_log_is_executed_before_a_replica_has_to_come_anew() {
    let mut replica = Replica::new(GroupId(1), Style::ColdPassive, false, Planted::default());
    let mut effects = Vec::new();
    replica.begin(&mut effects);
    replica.deliver(Time::ZERO, request(1), false, &mut effects);
    replica.restyle(Style::SemiActive, false, &mut effects);
    let full = MAX_WAITING as u64 + 1;
    for number in 2..=full {
        assert!(!replica.is_log_full(), "{number}");
        replica.deliver(Time::ZERO, request(number), false, &mut effects);
    }
    assert!(replica.is_log_full());
    // There is room for three times as many that were on their way by then.
    for number in full + 1..=MAX_JOIN_BACKLOG as u64 {
        replica.deliver(Time::ZERO, request(number), false, &mut effects);
    }
    assert!(replica.has_state());
    replica.check_invariants();
}

/// The first update of a warm passive group's primary, with this call.
fn first_update(number: u64, clock: Time) -> PrimaryChunk {
    let reply = KeptReply::Ok(Vec::new());
    let entry = UpdateEntry { client: ClientId(1), number, unanswered: number, asked: 0, reply };
    let head = UpdateHead { clock, entries: vec![entry], poisoned: Vec::new(), keys: Vec::new() };
    let change = Change::Whole(Bytes::from_static(b"state")).encode();
    let bytes = Update { head, change }.encode();
    let (what, since) = (Told::Update, Place::default());
    PrimaryChunk { group: GroupId(1), what, since, number: 1, index: 0, last: true, bytes }
}

#[test]
fn a_backup_that_is_slow_counts_what_it_was_told_when_votes_begin() {
    let (mut replica, mut effects) = (replica(), Vec::new());
    replica.begin(&mut effects);
    replica.restyle(Style::WarmPassive, false, &mut effects);
    replica.update_chunk(&first_update(1, Time(9)), false, &mut effects);
    replica.restyle(Style::Voting, false, &mut effects);
    let commands = effects.iter().filter_map(|effect| match effect {
        Effect::Run(command) => Some(command.clone()),
        _ => None,
    });
    let commands: Vec<Command> = commands.collect();
    let [Command::Style(Style::WarmPassive), Command::Apply { .. }, Command::Style(Style::Voting)] =
        &commands[..]
    else {
        panic!("{commands:?}");
    };
    assert_eq!((replica.history.executed, replica.position()), (0, 1));
    replica.check_invariants();
}

/// Seed 60356 of the world of versions: a client asked a backup again for an answer that had been
/// lost, and waited until its next attempt, which went to the primary.
#[test]
fn a_backup_answers_again_what_it_knows() {
    let (mut replica, mut effects) = (replica(), Vec::new());
    replica.begin(&mut effects);
    replica.restyle(Style::WarmPassive, false, &mut effects);
    let answers = |replica: &Replica, number| {
        let mut effects = Vec::new();
        replica.answer_known(&request(number), &mut effects);
        effects.iter().filter(|effect| matches!(effect, Effect::Answer { .. })).count()
    };
    assert_eq!(answers(&replica, 1), 0);
    replica.update_chunk(&first_update(1, Time(9)), false, &mut effects);
    assert_eq!((answers(&replica, 1), answers(&replica, 2)), (1, 0));
}

#[test]
fn what_a_primary_heard_and_did_not_execute_leaves_ordered_time_as_it_is() {
    let (mut replica, mut effects) = (replica(), Vec::new());
    replica.begin(&mut effects);
    replica.restyle(Style::WarmPassive, false, &mut effects);
    replica.update_chunk(&first_update(1, Time(9)), false, &mut effects);
    replica.reign(Some(Place::default()), &mut effects);
    // A retry, and a call that is too far ahead.
    for (number, unanswered) in [(1, 1), (1 << 40, 2)] {
        let late = Request { time: Time(99), unanswered, ..request(number) };
        replica.arrive(Time::ZERO, late, &mut effects);
    }
    assert!(!replica.is_ahead());
    assert_eq!(replica.common_clock(), Time(9));
    replica.restyle(Style::Active, false, &mut effects);
    assert_eq!((replica.history.clock, replica.common_clock()), (Time(9), Time(9)));
}

/// How the first call of the handler of this call ended.
fn an_end(number: u64, reply: &[u8]) -> NestedEnd {
    let asked = wire::ordered::asked(GroupId::of("other"), MethodId(1), false, b"");
    let (callee, caller, client) = (GroupId::of("other"), GroupId(1), ClientId(1));
    let end = wire::ordered::End::Reply(KeptReply::Ok(reply.to_vec()));
    NestedEnd { callee, caller, client, number, call: 1, asked, end }
}

/// A replica that is back from its disk, and whose first handler calls another group; what that
/// leads to.
fn recalled(log: &[Ordered]) -> (Replica, Vec<Effect>) {
    let mut replica = Replica::new(GroupId(1), Style::SemiActive, true, Planted::default());
    let mut effects = Vec::new();
    let all = Ordered::Progress(Progress { group: GroupId(1), executed: 9, trial: None });
    let log = log.iter().chain([&all]).map(Ordered::encode).collect();
    replica.recall_from_disk(Time::ZERO, (Style::SemiActive, None), log, &mut effects);
    let call = a_call(tickets(&effects)[0]);
    effects.clear();
    replica.call(Time::ZERO, call, &mut effects);
    (replica, effects)
}

/// A handler's call.
fn a_call(ticket: Ticket) -> NestedCall {
    let (callee, method, body) = ("other".into(), MethodId(1), Bytes::new());
    NestedCall { ticket, callee, method, json: false, body, timeout: Duration::from_secs(1) }
}

fn resumed(effects: &[Effect]) -> Option<&[u8]> {
    effects.iter().find_map(|effect| match effect {
        Effect::Resume { outcome: Ok(bytes), .. } => Some(&bytes[..]),
        _ => None,
    })
}

/// The simulator's seed 1969 of the world of disks: a donor of two transfers was given a request
/// between the two, and its call, which had been repeated, ended twice meanwhile.
#[test]
fn of_two_ends_the_first_counts_also_where_a_state_is_taken() {
    let (mut replica, snapshot) = donor(ViewNumber(2));
    let mut effects = Vec::new();
    replica.deliver(Time::ZERO, request(1), false, &mut effects);
    let joiner = |node| Member { node: NodeId(node), incarnation: Incarnation(1) };
    let wanted = [(ViewNumber(2), joiner(2)), (ViewNumber(3), joiner(3))];
    replica.give_states(&wanted, &mut effects);
    replica.nested_end(an_end(1, b"first"), 3, &mut effects);
    replica.answered(snapshot, Executed::Snapshot(Ok(Bytes::new())), &mut effects);
    let ticket = tickets(&effects)[0];
    replica.nested_end(an_end(1, b"again"), 4, &mut effects);
    effects.clear();
    replica.call(Time::ZERO, a_call(ticket), &mut effects);
    assert_eq!(resumed(&effects), Some(&b"first"[..]), "{effects:?}");
    replica.check_invariants();
}

/// The simulator's seed 1685 of the world of disks: a read was given behind a handler that waited
/// for its call, and was answered when all was stored that had been ordered by then.
#[test]
fn what_is_executed_behind_a_call_waits_for_its_end_too() {
    let (mut replica, mut effects) = (replica(), Vec::new());
    replica.begin(&mut effects);
    replica.deliver(Time::ZERO, request(1), false, &mut effects);
    replica.deliver(Time::ZERO, request(2), false, &mut effects);
    let look = Request { client: ClientId(2), read: true, ..request(1) };
    replica.read(look, None, &mut effects);
    let given = tickets(&effects);
    replica.call(Time::ZERO, a_call(given[0]), &mut effects);
    replica.nested_end(an_end(1, b"reply"), 9, &mut effects);
    effects.clear();
    for ticket in given {
        let done = Executed::Reply(ServiceOutcome::Ok(Bytes::new()));
        replica.answered(ticket, done, &mut effects);
    }
    let waits = |effect: &&Effect| matches!(effect, Effect::Settled { sequence: 9, .. });
    assert_eq!(effects.iter().filter(waits).count(), 3, "{effects:?}");
}

/// The simulator's seed 148 of the world of poison: the refusal was answered when its request was
/// held and not its verdict, which a restart then lost.
#[test]
fn a_poisoned_call_is_answered_when_its_verdict_is_held_in_every_style() {
    for style in [Style::SemiActive, Style::Active, Style::Voting] {
        let mut replica = Replica::new(GroupId(1), style, false, Planted::default());
        let mut effects = Vec::new();
        let [me, leader] =
            [1, 2].map(|node| Member { node: NodeId(node), incarnation: Incarnation(1) });
        replica.led_by(me, &[leader, me], &mut effects);
        replica.begin(&mut effects);
        replica.deliver(Time::ZERO, request(1), false, &mut effects);
        effects.clear();
        let poisoned = Poisoned { group: GroupId(1), number: 1, nodes: vec![NodeId(2); 2] };
        replica.condemn(poisoned, false, 9, &mut effects);
        let waits = |effect: &Effect| matches!(effect, Effect::Settled { sequence: 9, .. });
        assert!(effects.iter().any(waits), "{style:?}: {effects:?}");
    }
}

#[test]
fn a_replica_that_is_back_tells_its_handlers_what_they_were_told_before() {
    let requests = (1..=2 * RECALLED_AT_ONCE as u64).map(|n| Ordered::Request(request(n)));
    let mut log: Vec<Ordered> = requests.collect();
    // It was overtaken by more requests than a service is given at once, and has ended twice.
    log.extend([b"first", b"again"].map(|reply| Ordered::NestedEnd(an_end(1, reply))));
    let (replica, effects) = recalled(&log);
    assert_eq!(resumed(&effects), Some(&b"first"[..]), "{effects:?}");
    assert!(matches!(replica.mode, Mode::Recalling { .. }));
    replica.check_invariants();
}

#[test]
fn a_call_whose_end_is_not_in_the_log_is_made_again() {
    let all = 2 * RECALLED_AT_ONCE as u64;
    let requests = (1..=all).map(|n| Ordered::Request(request(n)));
    let (mut replica, mut effects) = recalled(&requests.collect::<Vec<_>>());
    assert!(matches!(effects[..], [Effect::Ask(_)]), "{effects:?}");
    effects.clear();
    // An end of another call, which the service does not have yet: it waits behind the log.
    replica.nested_end(an_end(all, b"other"), 2, &mut effects);
    assert!(effects.is_empty(), "{effects:?}");
    replica.nested_end(an_end(1, b"now"), 1, &mut effects);
    assert_eq!(resumed(&effects), Some(&b"now"[..]));
    replica.check_invariants();
}

/// The calls that were answered, and those that were refused.
fn answers(effects: &[Effect]) -> (Vec<u64>, Vec<u64>) {
    let (mut served, mut busy) = (vec![], vec![]);
    for effect in effects {
        match effect {
            Effect::Answer { number, outcome: ServiceOutcome::Ok(_), .. } => served.push(*number),
            Effect::Answer { number, .. } => busy.push(*number),
            _ => {}
        }
    }
    (served, busy)
}

#[test]
fn an_alarm_has_room_where_normal_calls_have_none_and_is_answered_before_them() {
    let mut replica = Replica::new(GroupId(1), Style::Stateless, false, Planted::default());
    let mut effects = vec![];
    replica.begin(&mut effects);
    let normal = MAX_SERVING as u64 * 3 / 4;
    for number in 1..=normal + 1 {
        replica.serve(Time::ZERO, request(number), &mut effects);
    }
    assert_eq!(answers(&effects), (vec![], vec![normal + 1]), "normal calls fill three quarters");
    let given = tickets(&effects);
    effects.clear();
    let alarm = Request { priority: 200, ..request(normal + 2) };
    replica.serve(Time::ZERO, alarm, &mut effects);
    let alarm = tickets(&effects)[0];
    effects.clear();
    let ok = || Executed::Reply(ServiceOutcome::Ok(Bytes::new()));
    for ticket in [alarm, given[0], given[1]] {
        replica.answered(ticket, ok(), &mut effects);
    }
    assert_eq!(answers(&effects), (vec![normal + 2, 1, 2], vec![]));
    replica.check_invariants();
}

#[test]
fn handlers_of_two_lanes_wait_for_other_groups_at_the_same_time() {
    let mut replica = Replica::new(GroupId(1), Style::Stateless, false, Planted::default());
    let mut effects = vec![];
    replica.begin(&mut effects);
    let asks = |effects: &[Effect]| {
        let ask = |effect: &Effect| match effect {
            Effect::Ask(ask) => Some(ask.end(End::Deadline)),
            _ => None,
        };
        effects.iter().find_map(ask).expect("it asks")
    };
    let mut ends = vec![];
    for (number, priority) in [(1, 0), (2, 200)] {
        effects.clear();
        replica.serve(Time::ZERO, Request { priority, ..request(number) }, &mut effects);
        let ticket = tickets(&effects)[0];
        let call = NestedCall {
            ticket,
            callee: format!("callee {number}"),
            method: MethodId(1),
            json: false,
            body: Bytes::new(),
            timeout: Duration::from_millis(1),
        };
        replica.call(Time::ZERO, call, &mut effects);
        ends.push((ticket, asks(&effects)));
    }
    replica.check_invariants();
    for (ticket, end) in ends.into_iter().rev() {
        effects.clear();
        replica.nested_end(end, 1, &mut effects);
        let goes_on = |effect: &Effect| matches!(effect, Effect::Resume { ticket: on, outcome: Err(NestedError::Deadline) } if *on == ticket);
        assert!(effects.iter().any(goes_on), "{ticket:?} of {effects:?}");
    }
}
