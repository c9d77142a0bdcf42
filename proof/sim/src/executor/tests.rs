//! Executions of the programs of a world, and the component in which each counts.

use super::*;
use engine::Checkpoints;
use wire::ordered::GroupOptions;
use wire::{NodeId, Time};

fn plan() -> GroupPlan {
    GroupPlan {
        name: "caller".into(),
        hosts: vec![0, 1],
        options: GroupOptions::default(),
        tells: false,
        checkpoints: Checkpoints::default(),
        padding: 0,
        lies: None,
        callee: Some(("callee".into(), false)),
        styles: Vec::new(),
        program: false,
        poisonous: false,
    }
}

fn request(number: u64) -> Command {
    Command::Execute {
        ticket: Ticket(number),
        method: if number == 1 { RELAY } else { APPEND },
        json: false,
        read: false,
        body: arguments(5, b"body"),
        now: Time(1),
        seed: 1,
        client: ClientId(1),
        number,
        lane: Lane::Normal,
    }
}

/// The component of what is executed next, and the history's hash behind it.
fn executes(executor: &mut Executor) -> (RingId, u64) {
    executor.begin(Duration::from_micros(1), &mut Draw::new(1));
    match executor.end().map(|done| done.effect) {
        Some(Effect::Executed { component, .. }) => (component, executor.log.digest),
        _ => panic!("a call is executed"),
    }
}

/// Seed 58432: its replica came anew while a handler waited for a call, and its group had
/// become warm passive meanwhile.
#[test]
fn a_service_that_begins_anew_has_the_style_that_it_was_told_while_a_handler_waited() {
    let ring = RingId::default();
    let mut executor = Executor::new(&plan(), Passive { random: 0, tells: false }, 0);
    let style = Command::Style(Style::WarmPassive);
    for command in [request(1), request(2), style, Command::Reset] {
        executor.push(command, ring);
    }
    executor.begin(Duration::from_micros(1), &mut Draw::new(1));
    assert!(matches!(executor.end().map(|done| done.effect), Some(Effect::Asks(..))));
    assert!(!executor.resume(Ticket(1), &Err(NestedError::Void), ring));
    while executor.begin(Duration::from_micros(1), &mut Draw::new(1)).is_some() {
        let done = executor.end().expect("it was begun");
        assert!(done.answer.is_none(), "what was given before has no effect");
    }
    assert!(executor.is_passive(), "its replica does not tell it again");
}

/// Seed 35616: without a quorum two sides go on from one place with the same requests, and a
/// call that was under way there ends differently on each.
#[test]
fn what_is_executed_with_an_end_of_another_component_belongs_to_that() {
    let ring = |sequence| RingId { sequence, representative: NodeId(1) };
    let [ours, theirs] = [(2, "ours"), (3, "theirs")].map(|(component, reply)| {
        let mut executor = Executor::new(&plan(), Passive { random: 0, tells: false }, 0);
        executor.push(request(1), ring(1));
        executor.push(request(2), ring(1));
        executor.begin(Duration::from_micros(1), &mut Draw::new(1));
        let asks = executor.end().map(|done| done.effect);
        assert!(matches!(asks, Some(Effect::Asks(_, None))));
        assert!(executor.resume(Ticket(1), &Ok(reply.into()), ring(component)));
        [executes(&mut executor), executes(&mut executor)]
    });
    assert_eq!(ours.map(|(component, _)| component), [ring(2); 2]);
    assert_eq!(theirs.map(|(component, _)| component), [ring(3); 2]);
    assert!((0..2).all(|place| ours[place].1 != theirs[place].1), "they are two histories");
}
