//! Replicas stay equal: the same calls give the same answers and the same states.

use std::time::{Duration, Instant};

use super::super::check::{Check, Trial};
use super::super::process::Surroundings;
use super::super::session::{How, Session, Start, told};
use super::super::verdict::{Flaw, same, same_state};

pub const CHECKS: &[Check] = &[
    Check {
        name: "same-answers",
        promise: "two programs answer the same calls in the same way",
        section: "Serving",
        run: same_answers,
    },
    Check {
        name: "same-states",
        promise: "two programs have the same state after the same calls",
        section: "Serving",
        run: same_states,
    },
];

/// Hash tables are seeded otherwise, and the local time and language are others.
const TWO: [Surroundings; 2] = [
    &[("PYTHONHASHSEED", "1"), ("TZ", "Pacific/Kiritimati"), ("LC_ALL", "C")],
    &[("PYTHONHASHSEED", "2"), ("TZ", "Pacific/Pago_Pago"), ("LC_ALL", "C.UTF-8")],
];

/// So much later the second program is asked: a clock of whole seconds shows it.
const LATER: Duration = Duration::from_millis(1_050);

fn two(trial: &Trial) -> Result<[Session; 2], Flaw> {
    let open = |surroundings| Session::open(Start { surroundings, ..trial.start() });
    Ok([open(TWO[0])?, open(TWO[1])?])
}

/// Lets the time pass that the second program must not see.
fn pass(since: Instant) {
    std::thread::sleep((since + LATER).saturating_duration_since(Instant::now()));
}

const AGAIN: &str = "in a second program, at another time and with other hash seeds";

fn same_answers(trial: &Trial) -> Result<(), Flaw> {
    let calls = trial.plan.calls()?;
    let [mut first, mut second] = two(trial)?;
    let began = Instant::now();
    let answers = first.execute_all(calls)?;
    pass(began);
    for (call, expected) in calls.iter().zip(answers) {
        let seen = second.execute(call, How::Ordered)?;
        same(&expected, &seen, told, &format!("{call} {AGAIN}"))?;
    }
    Ok(())
}

fn same_states(trial: &Trial) -> Result<(), Flaw> {
    let calls = trial.plan.calls()?;
    let [mut first, mut second] = two(trial)?;
    let began = Instant::now();
    let initial = first.snapshot()?;
    let mut states = Vec::new();
    for call in calls {
        first.execute(call, How::Ordered)?;
        states.push(first.snapshot()?);
    }
    pass(began);
    same_state(&initial, &second.snapshot()?, &format!("the initial state {AGAIN}"))?;
    for (call, expected) in calls.iter().zip(states) {
        second.execute(call, How::Ordered)?;
        let place = format!("the state after {call} {AGAIN}");
        same_state(&expected, &second.snapshot()?, &place)?;
    }
    Ok(())
}
