//! A voting replica alone, whose handlers call.

use alloc::boxed::Box;
use alloc::vec;

use bytes::Bytes;
use wire::ordered::{Digest, Origin, Request, Style};
use wire::{ClientId, Duration, GroupId, Incarnation, Member, MethodId, NodeId, Time, ViewNumber};

use super::*;
use crate::api::{Command, Executed, NestedCall, NestedError, ServiceOutcome, Ticket};
use crate::bug::Planted;

/// A replica and what it has asked for.
struct Room {
    replica: Replica,
    effects: Vec<Effect>,
    tickets: Vec<Ticket>,
}

impl Room {
    fn of(style: Style) -> Room {
        let mut replica = Replica::new(GroupId(1), style, false, Planted::default());
        let mut effects = Vec::new();
        replica.begin(&mut effects);
        replica.ballot_delivered(true);
        let me = Member { node: NodeId(1), incarnation: Incarnation(1) };
        replica.led_by(me, &[me], &mut effects);
        Room { replica, effects, tickets: Vec::new() }
    }

    /// Does something, and keeps what that leads to.
    fn act(&mut self, act: impl FnOnce(&mut Replica, &mut Vec<Effect>)) {
        act(&mut self.replica, &mut self.effects);
        let given = self.effects.iter().filter_map(|effect| match effect {
            Effect::Run(Command::Execute { ticket, .. }) => Some(*ticket),
            _ => None,
        });
        let new: Vec<Ticket> = given.filter(|ticket| !self.tickets.contains(ticket)).collect();
        self.tickets.extend(new);
        self.replica.check_invariants();
    }

    fn deliver(&mut self, number: u64) {
        self.deliver_as(number, 0, None);
    }

    fn deliver_as(&mut self, number: u64, priority: u8, origin: Option<Box<Origin>>) {
        let request = Request {
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
            timeout_us: 1_000_000,
            identity: wire::ordered::Identity::Number,
            priority,
            origin,
            body: Bytes::new(),
        };
        self.act(|replica, effects| replica.deliver(Time::ZERO, request, false, effects));
    }

    /// The handler of the `n`th request asks another group.
    fn ask(&mut self, n: usize, text: &'static str) {
        let call = NestedCall {
            ticket: self.tickets[n - 1],
            callee: "other".into(),
            method: MethodId(1),
            json: false,
            body: Bytes::from_static(text.as_bytes()),
            timeout: Duration::from_secs(1),
        };
        self.act(|replica, effects| replica.call(Time::ZERO, call, effects));
    }

    /// The call that its handler made has ended.
    fn end(&mut self, number: u64) {
        let ask = self.asks().pop().expect("it asks");
        let end = wire::ordered::NestedEnd { number, ..ask.end(wire::ordered::End::Deadline) };
        self.act(|replica, effects| replica.nested_end(end, 9, effects));
    }

    fn answer(&mut self, n: usize) {
        let (ticket, outcome) = (self.tickets[n - 1], ServiceOutcome::Ok("done".into()));
        let executed = Executed::Reply(outcome);
        self.act(|replica, effects| replica.answered(ticket, executed, effects));
    }

    fn asks(&self) -> Vec<Ask> {
        let ask = |effect: &Effect| match effect {
            Effect::Ask(ask) => Some((**ask).clone()),
            _ => None,
        };
        self.effects.iter().filter_map(ask).collect()
    }

    /// Whether what it asks last may be ordered.
    fn call_quorum(&self) -> Option<CallQuorum> {
        self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Ask(ask) => Some(ask.call_quorum),
            Effect::CallQuorum(_, call_quorum) => Some(*call_quorum),
            _ => None,
        })
    }

    /// Its votes from its first ballot on: the positions and the digests.
    fn told(&mut self) -> Vec<(u64, Digest)> {
        let mut told = vec![];
        loop {
            self.replica.ballot_delivered(true);
            let Some(slip) = self.replica.take_ballot() else { return told };
            told.extend((slip.first..).zip(slip.digests));
        }
    }

    fn restyle(&mut self, style: Style, alone: bool) {
        self.act(|replica, effects| replica.restyle(style, alone, effects));
    }

    fn is_void(&self) -> bool {
        let void = |effect: &Effect| {
            matches!(effect, Effect::Resume { outcome: Err(NestedError::Void), .. })
        };
        self.effects.iter().any(void)
    }
}

#[test]
fn what_a_handler_asks_is_as_critical_as_what_it_executes() {
    for style in [Style::SemiActive, Style::Active, Style::Voting, Style::WarmPassive] {
        let mut room = Room::of(style);
        room.deliver_as(1, 7, None);
        room.ask(1, "a client's");
        let origin = Origin { client: ClientId(3), path: vec![GroupId(9)] };
        let mut deeper = Room::of(style);
        deeper.deliver_as(1, 200, Some(Box::new(origin)));
        deeper.ask(1, "a group's");
        let said = [room, deeper].map(|room| room.asks()[0].request.priority);
        assert_eq!(said, [7, 200], "{style:?}");
    }
}

/// A request each before and after the place where the group begins to vote. Whether the handler of
/// the first asks before that place or after it is a matter of how far a replica is.
#[test]
fn what_is_asked_for_calls_from_before_the_vote_has_no_position() {
    let [ahead, behind] = [true, false].map(|is_ahead| {
        let mut room = Room::of(Style::Active);
        room.deliver(1);
        if is_ahead {
            room.ask(1, "first");
        }
        room.restyle(Style::Voting, false);
        if !is_ahead {
            room.ask(1, "first");
        }
        assert_eq!(room.call_quorum(), Some(CallQuorum::Given), "as in any active group");
        room.deliver(2);
        room.end(1);
        room.answer(1);
        room.ask(2, "second");
        assert_eq!(room.call_quorum(), Some(CallQuorum::Awaited));
        room.end(2);
        room.answer(2);
        room.told()
    });
    assert_eq!(ahead, behind);
    let positions: Vec<u64> = ahead.into_iter().map(|(position, _)| position).collect();
    assert_eq!(positions, [2, 3], "an ask and an outcome, behind the call from before");
}

/// A voting replica whose handler has asked, and waits; a state is wanted of it behind that.
fn waiting_donor() -> Room {
    let mut room = Room::of(Style::Voting);
    room.deliver(1);
    let joiner = Member { node: NodeId(2), incarnation: Incarnation(1) };
    room.act(|replica, effects| replica.give_states(&[(ViewNumber(2), joiner)], effects));
    room.ask(1, "this");
    assert_eq!(room.call_quorum(), Some(CallQuorum::Awaited));
    room
}

/// The simulator's seed 2067: a change of style waited for the state to be taken, which waited for
/// the handler, which waited for votes that nobody told any more.
#[test]
fn a_change_of_style_that_waits_behind_a_handler_does_not_leave_it_waiting_for_votes() {
    let mut room = waiting_donor();
    room.restyle(Style::Active, false);
    assert_eq!(room.call_quorum(), Some(CallQuorum::Given));

    // Also where the handler asks after that.
    let mut room = Room::of(Style::Voting);
    room.deliver(1);
    let joiner = Member { node: NodeId(2), incarnation: Incarnation(1) };
    room.act(|replica, effects| replica.give_states(&[(ViewNumber(2), joiner)], effects));
    room.restyle(Style::Active, false);
    room.ask(1, "this");
    assert_eq!(room.call_quorum(), Some(CallQuorum::Given));
}

#[test]
fn who_asks_something_else_has_no_mandate_and_goes_unless_it_is_alone() {
    let other = Verdict::Agreed(Digest([7; 16]));
    let mut room = waiting_donor();
    room.act(|replica, effects| replica.settled(1, other, effects));
    assert_eq!(room.call_quorum(), Some(CallQuorum::Awaited), "a majority asks something else");
    room.restyle(Style::Active, false);
    assert!(room.is_void(), "it is known to be wrong, and leaves");

    let mut room = waiting_donor();
    room.act(|replica, effects| replica.settled(1, other, effects));
    room.restyle(Style::Active, true);
    assert!(!room.is_void());
    assert_eq!(room.call_quorum(), Some(CallQuorum::Given), "nobody else could say what is right");

    let mut room = waiting_donor();
    room.act(|replica, effects| replica.settled(1, other, effects));
    room.act(|replica, effects| replica.open_votes(true, effects));
    assert_eq!(room.call_quorum(), Some(CallQuorum::Given), "nor in a component where it is alone");
}

/// It is not so far yet when the others have settled what is asked.
#[test]
fn who_is_behind_is_held_to_what_was_settled_when_it_asks() {
    let mut room = Room::of(Style::Voting);
    room.deliver(1);
    room.ask(1, "this");
    let (_, right) = room.told()[0];
    for (verdict, call_quorum) in [
        (Verdict::Agreed(right), CallQuorum::Given),
        (Verdict::Agreed(Digest([7; 16])), CallQuorum::Awaited),
        (Verdict::Split(3), CallQuorum::Refused),
    ] {
        let mut room = Room::of(Style::Voting);
        room.deliver(1);
        room.act(|replica, effects| replica.settled(1, verdict, effects));
        room.ask(1, "this");
        assert_eq!(room.call_quorum(), Some(call_quorum));
    }
    // The votes ended meanwhile, and what was settled binds all the same.
    let mut room = Room::of(Style::Voting);
    room.deliver(1);
    let other = Verdict::Agreed(Digest([7; 16]));
    room.act(|replica, effects| replica.settled(1, other, effects));
    room.restyle(Style::Active, false);
    room.ask(1, "this");
    assert!(room.effects.iter().any(|effect| matches!(effect, Effect::Unfit)));
}

/// Another name, callee, argument or a smaller timeout makes another call.
#[test]
fn the_digest_of_an_ask_has_all_in_it_that_has_an_effect() {
    let asked = |number: u64, text| {
        let mut room = Room::of(Style::Voting);
        room.deliver(number);
        room.ask(1, text);
        room.asks().pop().expect("it asks")
    };
    let ask = asked(1, "this");
    let same = digest_of_ask(&ask);
    assert_eq!(digest_of_ask(&asked(1, "this")), same);
    let changed = |change: fn(&mut Ask)| {
        let mut ask = ask.clone();
        change(&mut ask);
        digest_of_ask(&ask)
    };
    let others = [
        digest_of_ask(&asked(2, "this")),
        digest_of_ask(&asked(1, "that")),
        changed(|ask| ask.timeout = Duration::from_millis(1)),
        changed(|ask| ask.request.group = GroupId(9)),
        changed(|ask| ask.request.method = MethodId(9)),
        changed(|ask| ask.request.json = true),
        changed(|ask| ask.request.client = ClientId(9)),
    ];
    assert!(others.iter().all(|other| *other != same), "{others:?}");
}
