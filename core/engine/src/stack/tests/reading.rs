//! Conditions for a read to be executed, and to be answered.

use super::*;
use alloc::boxed::Box;

const STALE: Access = Access::Stale { max_age_ms: 100 };

/// Nodes 1 and 2 host the group, both with the state; 3 is a bystander.
fn room() -> Room {
    let mut room = Room::paired();
    room.hold_all();
    room.outputs();
    room
}

impl Room {
    fn confirmed(&mut self, round: u64, upto: u64) {
        let ring = self.ring;
        self.happens(ordering::Output::Confirmed { ring, round, upto });
    }

    /// The next component, of the same members with their states.
    fn go_on(&mut self, sequence: u64) {
        let replicas = self.stack.replicas.replicas_with_state(&self.stack.base);
        let groups = self.stack.base.directory.entries();
        self.configure(sequence);
        for node in 1..=3 {
            let replicas = if node < 3 { replicas.clone() } else { Vec::new() };
            self.deliver(
                node,
                Ordered::Announce(Box::new(Announce { replicas, ..self.nothing() })),
            );
        }
        self.install(groups);
    }

    /// The reads that the service gets.
    fn readings(&mut self) -> Vec<Ticket> {
        let ticket = |output| match output {
            Output::Run { command: Command::Execute { ticket, read: true, .. }, .. } => {
                Some(ticket)
            }
            _ => None,
        };
        self.outputs().into_iter().filter_map(ticket).collect()
    }
}

#[test]
fn a_read_waits_for_a_majority_and_for_all_that_it_knows_of() {
    let mut room = room();
    room.call_with(1, Access::Read);
    assert_eq!(room.stack.base.outbox.ordering.rounds, 1);
    assert_eq!(room.readings(), [], "nobody has said that this node is still in the component");
    let ahead = room.sequence + 1;
    room.confirmed(1, ahead);
    assert_eq!(room.readings(), [], "somebody has more, and it may have been answered");
    room.request(2, 9);
    let given = room.outputs().into_iter().filter_map(|output| match output {
        Output::Run { command: Command::Execute { ticket, read, .. }, .. } => Some((ticket, read)),
        _ => None,
    });
    let [(write, false), (read, true)] = given.collect::<Vec<_>>()[..] else {
        panic!("the request is executed, and then the read");
    };
    room.executed(write, "written");
    room.executed(read, "seen");
    assert_eq!(room.replies(), [], "what it saw may still be lost");
    room.hold_all();
    assert_eq!(room.replies(), [Outcome::Ok(Bytes::from_static(b"seen"))]);
}

#[test]
fn reads_that_come_while_a_question_is_under_way_wait_for_theirs() {
    let mut room = room();
    room.call_with(1, Access::Read);
    room.call_with(2, Access::Read);
    room.confirmed(1, 0);
    assert_eq!(room.readings().len(), 1, "the second asked later");
    room.confirmed(2, 0);
    assert_eq!(room.readings().len(), 1);
}

#[test]
fn a_read_begins_anew_in_the_next_component() {
    let mut room = room();
    room.call_with(1, Access::Read);
    let old = room.ring;
    room.go_on(2);
    assert_eq!(room.stack.base.outbox.ordering.rounds, 2);
    room.happens(ordering::Output::Confirmed { ring: old, round: 9, upto: 0 });
    assert_eq!(room.readings(), [], "that says nothing of the present");
    room.confirmed(2, 0);
    let tickets = room.readings();
    room.executed(tickets[0], "seen");
    assert_eq!(room.replies(), [], "the component may never become effective");
    room.hold_all();
    assert_eq!(room.replies().len(), 1);
}

#[test]
fn a_stale_read_is_answered_at_once_while_that_is_recent_and_also_between_components() {
    let mut room = room();
    room.call_with(1, STALE);
    assert_eq!(room.readings().len(), 1, "all announced when the component began");
    assert_eq!(room.stack.base.outbox.ordering.rounds, 0);
    let ms = wire::Duration::from_millis;
    let frame = |number, access| {
        let request = Request {
            group: log(),
            client: CLIENT,
            number,
            unanswered: 1,
            view: ViewNumber(u64::MAX),
            method: MethodId(1),
            timeout_us: 1_000_000,
            priority: 0,
            json: false,
            beside: false,
            has_key: false,
            access,
            body: Bytes::new(),
        };
        Frame::Request(request)
    };
    room.stack.handle_frame(NOW + ms(100), NOW, CALLER, frame(2, STALE));
    assert_eq!(room.readings().len(), 1);
    room.configure(3);
    room.stack.handle_frame(NOW + ms(100), NOW, CALLER, frame(3, STALE));
    assert_eq!(room.readings().len(), 1, "all that is here was held");
    room.stack.handle_frame(NOW + ms(101), NOW, CALLER, frame(4, STALE));
    room.stack.handle_frame(NOW + ms(100), NOW, CALLER, frame(5, Access::Read));
    assert_eq!(room.readings(), [], "too old, and never without asking");
}

#[test]
fn between_components_nothing_is_shown_that_may_be_lost() {
    let mut room = room();
    room.call_with(1, STALE);
    room.confirmed(1, 0);
    room.request(2, 9);
    room.outputs();
    room.configure(3);
    room.call_with(2, STALE);
    assert_eq!(room.readings(), [], "nobody is known to hold the request of node 2");
}

#[test]
fn a_read_of_a_group_whose_answers_wait_for_nobody_is_ordered() {
    let options = GroupOptions { ack: AckLevel::One, ..GroupOptions::default() };
    let mut room = Room::new();
    room.stack.host(NOW, "log", options).expect("hosted");
    room.configure(1);
    room.announce();
    room.install(Vec::new());
    room.join_with(1, options);
    room.hold_all();
    assert!(room.stack.replicas.executes(&room.stack.base, log()));
    room.call_with(1, Access::Read);
    assert_eq!(room.stack.base.outbox.ordering.rounds, 0);
    assert_eq!(room.readings(), [], "not before its place in the order");
}
