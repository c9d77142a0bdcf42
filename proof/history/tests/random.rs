//! Random histories: the checker agrees with its twin, accepts the histories of an atomic object,
//! and refuses almost all others.

use steadfast_history::atomic::{Load, history};
use steadfast_history::models::{Counter, CounterCall, Log, LogCall, LogReply, Queue, QueueCall};
use steadfast_history::models::{Register, RegisterCall, RegisterReply};
use steadfast_history::{End, Limits, Model, Operation, Told, check, twin};
use wire::{Random, Time};

fn register(random: &mut Random, keys: u64, values: u64) -> RegisterCall {
    let key = random.below(keys);
    match random.below(3) {
        0 => RegisterCall::Read(key),
        1 => RegisterCall::Write(key, 1 + random.below(values)),
        _ => RegisterCall::Swap { key, old: random.below(values), new: 1 + random.below(values) },
    }
}

fn log(random: &mut Random, keys: u64) -> LogCall {
    let key = random.below(keys);
    if random.one_in(2) { LogCall::Append(key, random.below(3)) } else { LogCall::Read(key) }
}

fn counter(random: &mut Random, keys: u64) -> CounterCall {
    let key = random.below(keys);
    if random.one_in(3) { CounterCall::Read(key) } else { CounterCall::Add(key, 1) }
}

fn queue(random: &mut Random, keys: u64) -> QueueCall {
    let key = random.below(keys);
    if random.one_in(2) { QueueCall::Push(key, random.below(3)) } else { QueueCall::Pop(key) }
}

/// Up to seven operations at any times with any ends: about as many right as wrong.
fn any<M: Model>(
    random: &mut Random,
    call: impl Fn(&mut Random) -> M::Call,
    reply: impl Fn(&mut Random, &M::Call) -> M::Reply,
) -> Vec<Told<M>> {
    (0..1 + random.below(7))
        .map(|_| {
            let (client, invoked, call) = (random.below(3) as u32, random.below(12), call(random));
            let end = match random.below(8) {
                0 => End::Failed,
                1 | 2 => End::Unknown,
                _ => {
                    let at = Time(invoked + random.below(8));
                    End::Answered { at, reply: reply(random, &call) }
                }
            };
            Operation { client, call, invoked: Time(invoked), end }
        })
        .collect()
}

/// Compares on so many random histories. Says how many of them were right.
fn compare<M: Model>(
    model: &M,
    cases: usize,
    call: impl Fn(&mut Random) -> M::Call,
    reply: impl Fn(&mut Random, &M::Call) -> M::Reply,
) -> usize {
    let mut random = Random::new(7);
    let mut right = 0;
    for case in 0..cases {
        let history = any::<M>(&mut random, &call, &reply);
        let report = check(model, &history, Limits::default());
        let expected = twin::is_linearizable(model, &history);
        assert_eq!(report.is_linearizable(), expected, "case {case}: {history:#?}");
        if let Some(broken) = report.broken {
            assert!(broken.operations.contains(&broken.blocked), "{broken}");
            assert!(broken.operations.iter().all(|part| history.contains(part)), "{broken}");
            if let [start] = &broken.starts[..] {
                let part = twin::is_linearizable_from(model, start, &broken.operations);
                assert!(!part, "case {case}, not wrong by itself: {broken}\n{history:#?}");
            }
        }
        right += usize::from(expected);
    }
    right
}

#[test]
fn the_checker_says_what_its_twin_says() {
    let cases = 5_000;
    let of_register = |random: &mut Random, call: &RegisterCall| match call {
        RegisterCall::Write(..) => RegisterReply::Written,
        _ => RegisterReply::Value(random.below(3)),
    };
    let right = [
        compare(&Register, cases, |random| register(random, 1, 2), of_register),
        compare(&Counter, cases, |random| counter(random, 1), |random, _| 1 + random.below(3)),
        compare(
            &Log,
            cases,
            |random| log(random, 1),
            |random, call| match call {
                LogCall::Append(..) => LogReply::Length(1 + random.below(2)),
                LogCall::Read(_) => {
                    LogReply::All((0..random.below(3)).map(|_| random.below(3)).collect())
                }
            },
        ),
        compare(
            &Queue,
            cases,
            |random| queue(random, 1),
            |random, call| match call {
                QueueCall::Push(..) => None,
                QueueCall::Pop(_) => Some(random.below(3)).filter(|entry| *entry > 0),
            },
        ),
    ];
    // Neither all right nor all wrong, or nothing would be compared.
    assert!(right.iter().all(|right| (cases / 20..cases * 19 / 20).contains(right)), "{right:?}");
}

const LOAD: Load = Load { clients: 8, operations: 300, unknown: 40, failed: 20 };

fn accepted<M: Model>(
    model: &M,
    load: Load,
    call: impl Fn(&mut Random, u32) -> M::Call,
) -> Vec<Vec<Told<M>>> {
    (0..60)
        .map(|seed| {
            let all = history(model, &load, &mut Random::new(seed), &call);
            let report = check(model, &all, Limits::default());
            assert!(report.undecided.is_empty(), "{:?}", report.undecided);
            assert!(report.broken.is_none(), "{}", report.broken.unwrap());
            all
        })
        .collect()
}

/// Changes one answer of each history. Says how many are refused, of how many.
fn refused<M: Model>(
    model: &M,
    histories: Vec<Vec<Told<M>>>,
    spoil: impl Fn(&mut Random, &mut M::Reply) -> bool,
) -> (usize, usize) {
    let mut random = Random::new(3);
    let (mut caught, mut spoilt) = (0, 0);
    for mut all in histories {
        let victim = (0..10_000).find(|_| {
            let place = random.below(all.len() as u64) as usize;
            match &mut all[place].end {
                End::Answered { reply, .. } => spoil(&mut random, reply),
                _ => false,
            }
        });
        if victim.is_some() {
            spoilt += 1;
            caught += usize::from(check(model, &all, Limits::default()).broken.is_some());
        }
    }
    (caught, spoilt)
}

#[test]
fn what_an_atomic_object_shows_is_accepted_and_a_changed_answer_is_not() {
    let registers = accepted(&Register, LOAD, |random, _| register(random, 4, 1_000_000));
    let counters = accepted(&Counter, LOAD, |random, _| counter(random, 4));
    let logs = accepted(&Log, LOAD, |random, _| log(random, 4));
    let queues = accepted(&Queue, LOAD, |random, _| queue(random, 4));
    let found = [
        refused(&Register, registers, |random, reply| {
            let RegisterReply::Value(value) = reply else { return false };
            *value ^= 1 << random.below(20);
            true
        }),
        refused(&Counter, counters, |_, reply| {
            *reply += 1;
            true
        }),
        refused(&Log, logs, |_, reply| match reply {
            LogReply::Length(length) => {
                *length += 1;
                true
            }
            LogReply::All(all) => all.pop().is_some(),
        }),
        refused(&Queue, queues, |_, reply| {
            let Some(entry) = reply else { return false };
            *entry += 3;
            true
        }),
    ];
    // A counter one too high beside concurrent calls, or a log that is read a moment too early, can
    // be right by chance.
    assert_eq!(found[0], (60, 60), "{found:?}");
    assert_eq!(found[3], (60, 60), "{found:?}");
    assert!(found[1].0 >= 40 && found[2].0 >= 40, "{found:?}");
    assert!(found.iter().all(|(_, spoilt)| *spoilt == 60), "{found:?}");
}

#[test]
fn a_call_that_is_said_to_have_failed_and_is_seen_is_refused() {
    let histories = accepted(&Counter, LOAD, |random, _| counter(random, 1));
    let mut caught = 0;
    for mut all in histories {
        let adds = |operation: &&mut Told<Counter>| {
            operation.answer().is_some() && matches!(operation.call, CounterCall::Add(..))
        };
        all.iter_mut().find(adds).expect("somebody adds").end = End::Failed;
        caught += usize::from(check(&Counter, &all, Limits::default()).broken.is_some());
    }
    // One of unknown end can stand in for it, now and then.
    assert!(caught >= 50, "{caught} of 60");
}
