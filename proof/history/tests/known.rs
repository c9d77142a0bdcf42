//! Histories of which it is known whether they are linearizable; the checker and its twin must say
//! so.

use steadfast_history::models::{Counter, Log, LogReply, Queue, Register, RegisterReply};
use steadfast_history::models::{CounterCall, LogCall, QueueCall, RegisterCall};
use steadfast_history::{End, Limits, Model, Operation, Told, check, twin};
use wire::Time;

use CounterCall::Add;
use LogCall::Append;
use QueueCall::{Pop, Push};
use RegisterCall::{Read, Swap, Write};
use RegisterReply::{Value, Written};

/// Client, from, to, call and reply.
fn told<C, R>(client: u32, from: u64, to: u64, call: C, reply: R) -> Operation<C, R> {
    let end = End::Answered { at: Time(to), reply };
    Operation { client, call, invoked: Time(from), end }
}

fn open<C, R>(client: u32, from: u64, call: C) -> Operation<C, R> {
    Operation { client, call, invoked: Time(from), end: End::Unknown }
}

fn failed<C, R>(client: u32, from: u64, call: C) -> Operation<C, R> {
    Operation { client, call, invoked: Time(from), end: End::Failed }
}

fn judge<M: Model>(model: &M, history: &[Told<M>]) -> bool {
    let report = check(model, history, Limits::default());
    assert!(report.undecided.is_empty());
    let right = report.is_linearizable();
    assert_eq!(right, twin::is_linearizable(model, history), "checker and twin disagree");
    right
}

fn right<M: Model>(model: &M, history: &[Told<M>]) {
    assert!(judge(model, history));
}

fn wrong<M: Model>(model: &M, history: &[Told<M>]) {
    assert!(!judge(model, history));
}

const KEY: u64 = 1;

fn write(value: u64) -> RegisterCall {
    Write(KEY, value)
}

fn swap(old: u64, new: u64) -> RegisterCall {
    Swap { key: KEY, old, new }
}

#[test]
fn nothing_is_right() {
    right(&Register, &[]);
}

#[test]
fn one_after_the_other() {
    let mut history = vec![
        told(1, 0, 1, write(3), Written),
        told(2, 2, 3, Read(KEY), Value(3)),
        told(1, 4, 5, swap(3, 4), Value(3)),
        told(2, 6, 7, swap(3, 5), Value(4)),
        told(2, 8, 9, Read(KEY), Value(4)),
    ];
    right(&Register, &history);
    history[4] = told(2, 8, 9, Read(KEY), Value(5));
    wrong(&Register, &history);
}

#[test]
fn a_stale_read() {
    let stale = |from| {
        [
            told(1, 0, 1, write(1), Written),
            told(1, 2, 5, write(2), Written),
            told(2, from, 9, Read(KEY), Value(1)),
        ]
    };
    wrong(&Register, &stale(6));
    right(&Register, &stale(4));
    right(&Register, &stale(5)); // At one time nobody knows who was first.
}

#[test]
fn two_reads_that_go_back() {
    let history = |second| {
        [
            told(1, 0, 100, write(1), Written),
            told(2, 10, 20, Read(KEY), Value(1)),
            told(3, second, 40, Read(KEY), Value(0)),
        ]
    };
    wrong(&Register, &history(30));
    right(&Register, &history(15));
}

#[test]
fn a_lost_update() {
    wrong(
        &Register,
        &[
            told(1, 0, 5, swap(0, 1), Value(0)),
            told(2, 0, 5, swap(0, 2), Value(0)),
            told(1, 6, 7, Read(KEY), Value(2)),
        ],
    );
    wrong(&Counter, &[told(1, 0, 5, Add(KEY, 1), 1), told(2, 0, 5, Add(KEY, 1), 1)]);
    wrong(&Register, &[told(1, 0, 1, write(1), Written), told(1, 2, 3, Read(KEY), Value(0))]);
}

#[test]
fn a_phantom_of_a_write_that_failed() {
    let history = |first| [first, told(2, 3, 4, Read(KEY), Value(7))];
    wrong(&Register, &history(failed(1, 0, write(7))));
    right(&Register, &history(open(1, 0, write(7))));
    wrong(&Register, &history(open(1, 5, write(7)))); // It cannot be seen before it is asked.
}

#[test]
fn a_write_of_unknown_end_may_come_late_once_or_never() {
    let late = [
        open(1, 0, write(7)),
        told(2, 1, 2, write(8), Written),
        told(2, 3, 4, Read(KEY), Value(8)),
        told(2, 5, 6, Read(KEY), Value(7)),
    ];
    right(&Register, &late);
    right(&Register, &late[..3]);
    let mut twice = late.to_vec();
    twice.push(told(2, 7, 8, write(9), Written));
    right(&Register, &twice);
    twice.push(told(2, 9, 10, Read(KEY), Value(7)));
    wrong(&Register, &twice);
}

/// Many writes of unknown end, of which one is seen late: their sets are not all tried.
#[test]
fn many_unknown_ends_cost_little() {
    let mut history: Vec<_> = (1..=40).map(|value| open(value as u32, 0, write(value))).collect();
    for at in 1..=20 {
        history.push(told(90, 10 * at, 10 * at + 15, write(100 + at), Written));
        history.push(told(91, 10 * at + 1, 10 * at + 14, Read(KEY), Value(99 + at)));
    }
    history.remove(41); // Nobody wrote what the first would read.
    history.push(told(92, 500, 501, Read(KEY), Value(17)));
    let report = check(&Register, &history, Limits { steps: 50_000, ..Limits::default() });
    assert!(report.is_linearizable(), "{:?} {:?}", report.undecided, report.broken);
    history.push(told(92, 502, 503, Read(KEY), Value(41)));
    let report = check(&Register, &history, Limits { steps: 2_000_000, ..Limits::default() });
    assert!(report.broken.is_some(), "{:?}", report.undecided);
}

#[test]
fn a_write_of_what_is_there_already_is_no_read() {
    right(
        &Register,
        &[
            told(1, 0, 1, write(1), Written),
            told(2, 2, 20, write(1), Written),
            told(3, 3, 4, write(2), Written),
            told(3, 5, 6, Read(KEY), Value(1)),
        ],
    );
}

#[test]
fn a_retried_call_that_was_executed_twice() {
    // The first attempt's swap is in the register, its retry found that and said no.
    wrong(&Register, &[told(1, 0, 9, swap(0, 1), Value(1)), told(2, 10, 11, Read(KEY), Value(1))]);
    wrong(
        &Log,
        &[
            told(1, 0, 9, Append(KEY, 5), LogReply::Length(2)),
            told(2, 10, 11, LogCall::Read(KEY), LogReply::All(vec![5, 5])),
        ],
    );
    wrong(&Counter, &[told(1, 0, 9, Add(KEY, 1), 2)]);
}

#[test]
fn an_acknowledged_append_that_is_gone() {
    let history = [
        told(1, 0, 1, Append(KEY, 5), LogReply::Length(1)),
        open(3, 1, Append(KEY, 9)),
        told(2, 2, 3, Append(KEY, 6), LogReply::Length(1)),
    ];
    wrong(&Log, &history);
}

#[test]
fn an_append_of_unknown_end_fills_a_gap() {
    let history = |reply: Vec<u64>| {
        [
            open(1, 0, Append(KEY, 5)),
            told(2, 2, 3, Append(KEY, 6), LogReply::Length(2)),
            told(3, 4, 5, LogCall::Read(KEY), LogReply::All(reply)),
        ]
    };
    right(&Log, &history(vec![5, 6]));
    wrong(&Log, &history(vec![6, 5]));
    wrong(&Log, &history(vec![6]));
}

#[test]
fn queues_with_unknown_ends() {
    let history = |popped| {
        [
            told(1, 0, 1, Push(KEY, 1), None),
            open(2, 0, Push(KEY, 2)),
            told(1, 2, 3, Push(KEY, 3), None),
            open(3, 4, Pop(KEY)),
            told(1, 10, 11, Pop(KEY), popped),
        ]
    };
    right(&Queue, &history(Some(1))); // The lost pop did not happen, or comes later.
    right(&Queue, &history(Some(3))); // It took the 1, and the 2 came later or never.
    right(&Queue, &history(Some(2))); // It took the 1, and the 2 was before the 3.
    wrong(&Queue, &history(None));
    wrong(&Queue, &history(Some(4)));
}

#[test]
fn keys_are_independent_and_the_broken_one_is_named() {
    let history = [
        told(1, 0, 1, Write(1, 5), Written),
        told(1, 2, 3, Write(2, 6), Written),
        told(1, 4, 5, Read(1), Value(5)),
        told(1, 6, 7, Read(2), Value(5)),
        told(1, 8, 9, Read(3), Value(0)),
    ];
    let report = check(&Register, &history, Limits::default());
    assert_eq!((report.keys, report.operations), (3, 5));
    assert_eq!(report.broken.expect("it is wrong").key, 2);
    assert!(check(&Register, &history[..3], Limits::default()).is_linearizable());
}

#[test]
fn a_limit_is_an_answer_of_its_own() {
    // Twenty writes at a time, and a read of what nobody wrote: all their sets have to be tried.
    let mut history: Vec<_> =
        (1..=20).map(|value| told(value as u32, 0, 100, write(value), Written)).collect();
    history.push(told(99, 0, 100, Read(KEY), Value(1_000)));
    for limits in [
        Limits { steps: 10_000, ..Limits::default() },
        Limits { configurations: 1_000, ..Limits::default() },
    ] {
        let report = check(&Register, &history, limits);
        assert!(!report.is_linearizable() && report.broken.is_none());
        assert_eq!(report.undecided.len(), 1);
        assert_eq!((report.undecided[0].key, report.undecided[0].operations), (KEY, 21));
    }
}

/// A long right history with a stale read in it.
fn long_and_stale() -> Vec<Told<Register>> {
    let mut history = Vec::new();
    for value in 1..=50 {
        let at = value * 10;
        history.push(told(1, at, at + 3, write(value), Written));
        history.push(told(2, at + 1, at + 8, Read(KEY), Value(value)));
        history.push(told(3, at + 4, at + 6, Read(KEY), Value(value)));
    }
    history.push(told(4, 405, 409, Read(KEY), Value(39)));
    history
}

#[test]
fn a_counterexample_is_small_and_says_what_was_there_before() {
    let history = long_and_stale();
    let broken = check(&Register, &history, Limits::default()).broken.expect("it is stale");
    assert_eq!(broken.blocked, history[150]);
    assert!(broken.operations.len() <= 2, "{broken}");
    let text = broken.to_string();
    assert!(text.contains("c4's `read → 39`"), "{text}");
    assert!(text.contains("write 40"), "{text}");
    // The part shown is wrong by itself, from each start that is reported.
    for start in &broken.starts {
        let mut part = vec![told(9, 0, 0, write(*start), Written)];
        part.extend(broken.operations.iter().cloned());
        wrong(&Register, &part);
    }
}

#[test]
fn of_a_long_state_the_end_is_told() {
    let mut history: Vec<_> = (1..=200)
        .map(|at| told(1, 2 * at, 2 * at + 1, Append(KEY, 1_000 + at), LogReply::Length(at)))
        .collect();
    history.push(told(2, 500, 501, Append(KEY, 7), LogReply::Length(200)));
    let broken = check(&Log, &history, Limits::default()).broken.expect("it is 201");
    let text = broken.to_string();
    let told = text.lines().nth(1).expect("what it holds");
    assert!(told.contains("it holds ..") && told.contains("1199, 1200]"), "{text}");
    assert!(told.len() < 400, "{text}");
}

#[test]
fn a_picture_has_a_lane_for_each_client() {
    let history = [
        told(1, 0, 10, write(1), Written),
        open(2, 5, write(2)),
        told(3, 20, 30, Read(KEY), Value(0)),
    ];
    let broken = check(&Register, &history, Limits::default()).broken.expect("it is stale");
    let text = broken.to_string();
    let picture: Vec<&str> = text.lines().filter(|line| line.starts_with("  c")).collect();
    assert_eq!(
        picture,
        ["  c1    ├write 1┤", "  c2      ├write 2╌╌╌╌╌╌╌╌╌?", "  c3              ├read → 0╡✗"],
        "{text}"
    );
}
