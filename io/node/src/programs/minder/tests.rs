use wire::Random;

use super::*;

const fn ms(millis: u64) -> Time {
    Time(millis * 1_000_000)
}

fn outputs(minder: &mut Minder) -> Vec<Output> {
    std::iter::from_fn(|| minder.poll_output()).collect()
}

#[test]
fn who_ends_for_the_first_time_is_started_at_once_and_then_ever_later() {
    let mut minder = Minder::new(false);
    assert_eq!(outputs(&mut minder), [Output::Start]);
    let (mut now, mut waits) = (ms(1), Vec::new());
    for _ in 0..12 {
        minder.ended(now);
        let begun = now;
        if let Standing::BackingOff(until) = minder.standing() {
            now = until;
            minder.handle_timeout(now);
        }
        waits.push(now.since(begun).as_millis() as u64);
        assert_eq!(minder.standing(), Standing::Starting);
    }
    let expected = [0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000];
    assert_eq!(waits, expected);
    assert_eq!(minder.restarts(), 12);
    let told = outputs(&mut minder);
    let told: Vec<_> = told.iter().filter(|output| **output != Output::Start).collect();
    let wait = Duration::from_millis(800);
    assert_eq!(told, [&Output::CrashLoop { ends: 5, wait }], "it is told once");
}

#[test]
fn a_healthy_time_makes_good_for_all_that_was_before() {
    let mut minder = Minder::new(false);
    for _ in 0..CRASH_LOOP {
        minder.ended(ms(0));
        minder.handle_timeout(minder.next_timeout());
    }
    outputs(&mut minder);
    minder.attached(ms(20_000));
    assert_eq!(minder.next_timeout(), ms(30_000));
    minder.handle_timeout(ms(29_999));
    assert_eq!(outputs(&mut minder), []);
    minder.handle_timeout(ms(30_000));
    assert_eq!(outputs(&mut minder), [Output::Recovered]);
    minder.detached(ms(40_000));
    minder.ended(ms(40_001));
    assert_eq!(outputs(&mut minder), [Output::Start], "at once, as the first time");
}

#[test]
fn who_is_hung_is_told_to_end_at_once_and_started_again() {
    let mut minder = Minder::new(false);
    minder.attached(ms(0));
    outputs(&mut minder);
    minder.hung(ms(10));
    minder.detached(ms(11));
    assert_eq!(outputs(&mut minder), [Output::Signal(Signal::Term)], "it is not waited for");
    assert_eq!(minder.next_timeout(), ms(5_010));
    minder.handle_timeout(ms(5_010));
    assert_eq!(outputs(&mut minder), [Output::Signal(Signal::Kill)]);
    minder.ended(ms(5_020));
    assert_eq!(outputs(&mut minder), [Output::Start]);
}

#[test]
fn who_does_not_end_is_told_to_and_then_made_to() {
    let mut minder = Minder::new(false);
    minder.attached(ms(0));
    minder.stop(ms(10), true);
    outputs(&mut minder);
    let mut told = Vec::new();
    while told.len() < 3 {
        let due = minder.next_timeout();
        minder.handle_timeout(due);
        told.extend(outputs(&mut minder).into_iter().map(|output| (due, output)));
    }
    assert_eq!(
        told,
        [
            (ms(2_010), Output::Signal(Signal::Term)),
            (ms(7_010), Output::Signal(Signal::Kill)),
            (ms(12_010), Output::Signal(Signal::Kill)),
        ]
    );
    minder.ended(ms(12_020));
    assert_eq!(outputs(&mut minder), [Output::Over]);
    assert_eq!(minder.next_timeout(), Time::FAR);
}

#[test]
fn who_was_turned_away_has_to_end_before_it_is_started_again() {
    let mut minder = Minder::new(false);
    outputs(&mut minder);
    minder.detached(ms(5));
    assert_eq!(outputs(&mut minder), [], "it may end by itself");
    minder.ended(ms(6));
    assert_eq!(outputs(&mut minder), [Output::Start]);
}

#[test]
fn who_waits_for_its_start_is_stopped_at_once() {
    let mut minder = Minder::new(false);
    minder.ended(ms(0));
    minder.ended(ms(0));
    outputs(&mut minder);
    minder.stop(ms(1), true);
    assert_eq!(outputs(&mut minder), [Output::Over]);
}

#[test]
fn who_is_started_on_demand_stands_by_until_then_and_afterwards() {
    let mut minder = Minder::new(true);
    assert_eq!(outputs(&mut minder), [Output::Stand]);
    assert_eq!(minder.next_timeout(), Time::FAR);
    minder.wanted();
    assert_eq!(outputs(&mut minder), [Output::Start]);
    minder.attached(ms(5));
    minder.released(ms(10));
    assert_eq!(outputs(&mut minder), [], "it may end by itself");
    minder.ended(ms(11));
    assert_eq!((outputs(&mut minder), minder.ends()), (vec![], 0), "that is no failure");
    minder.wanted();
    assert_eq!(outputs(&mut minder), [Output::Start]);
    minder.stop(ms(20), false);
    assert_eq!(outputs(&mut minder), [Output::Signal(Signal::Term)]);
    minder.ended(ms(21));
    assert_eq!(outputs(&mut minder), [Output::Over]);
}

#[test]
fn who_fails_when_it_is_needed_stands_by_anew_after_ever_longer_waits() {
    let mut minder = Minder::new(true);
    outputs(&mut minder);
    for (end, wait) in [0, 100, 200, 400].into_iter().enumerate() {
        let now = ms(10_000 * (end as u64 + 1));
        minder.wanted();
        assert_eq!(outputs(&mut minder), [Output::Start]);
        minder.ended(now);
        if wait > 0 {
            assert_eq!(
                (minder.next_timeout(), outputs(&mut minder)),
                (now + Duration::from_millis(wait), vec![])
            );
            minder.wanted();
            assert_eq!(outputs(&mut minder), [], "its replica is not hosted");
            minder.handle_timeout(minder.next_timeout());
        }
        assert_eq!(outputs(&mut minder), [Output::Stand], "another may have taken over");
    }
}

#[test]
fn who_is_needed_again_before_it_has_ended_is_started_when_it_has() {
    let mut minder = Minder::new(true);
    minder.wanted();
    minder.attached(ms(1));
    minder.released(ms(2));
    minder.wanted();
    outputs(&mut minder);
    minder.ended(ms(3));
    assert_eq!(outputs(&mut minder), [Output::Start]);
}

/// What must hold whatever happens, in whatever order: checked over drawn histories.
#[derive(Default)]
struct Checker {
    /// Processes that run.
    running: u32,
    stopped: bool,
    over: bool,
    /// Ends of processes since one was attached for long enough.
    ends: u32,
    ended_at: Option<Time>,
}

impl Checker {
    fn check(&mut self, now: Time, output: Output) {
        assert!(!self.over, "{output:?} of a program that is forgotten");
        match output {
            Output::Stand => panic!("it runs from the start"),
            Output::Start => {
                assert!(!self.stopped, "a stopped program is started");
                assert_eq!(self.running, 0, "two processes of one program");
                if let Some(ended) = self.ended_at {
                    assert!(now.since(ended) >= wait(self.ends), "too early: end {}", self.ends);
                }
                self.running = 1;
            }
            Output::Signal(_) => assert_eq!(self.running, 1, "a signal to nobody"),
            Output::CrashLoop { ends, .. } => assert_eq!(ends, self.ends),
            Output::Recovered => assert_eq!(self.running, 1),
            Output::Over => {
                assert!(self.stopped && self.running == 0, "forgotten while it runs");
                self.over = true;
            }
        }
    }
}

fn history(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let (mut minder, mut checker) = (Minder::new(false), Checker::default());
    let (mut now, mut attached_at) = (ms(1), None);
    while let Some(output) = minder.poll_output() {
        checker.check(now, output);
    }
    for _ in 0..200 {
        let due = minder.next_timeout();
        let step = Duration::from_millis(random.below(12_000));
        now = if random.below(3) == 0 && due != Time::FAR { due.max(now) } else { now + step };
        match random.below(12) {
            0..=3 if checker.running == 1 => {
                if attached_at.take().is_some_and(|at: Time| now >= at + HEALTHY) {
                    checker.ends = 0;
                }
                checker.running = 0;
                checker.ends += 1;
                checker.ended_at = Some(now);
                minder.ended(now);
            }
            4..=6 if minder.standing() == Standing::Starting && checker.running == 1 => {
                attached_at = Some(now);
                minder.attached(now);
            }
            7 => {
                if attached_at.take().is_some_and(|at| now >= at + HEALTHY) {
                    checker.ends = 0;
                }
                minder.detached(now);
            }
            8 if random.below(20) == 0 => {
                checker.stopped = true;
                minder.stop(now, random.below(2) == 0);
            }
            _ => {}
        }
        if minder.next_timeout() <= now {
            minder.handle_timeout(now);
        }
        while let Some(output) = minder.poll_output() {
            checker.check(now, output);
        }
        assert!(minder.next_timeout() > now, "what is due is done");
    }
    minder.restarts()
}

#[test]
fn no_history_starts_two_processes_or_one_too_early_or_after_a_stop() {
    let restarts: u64 = (0..2_000).map(history).sum();
    assert!(restarts > 10_000, "the histories have something to check: {restarts}");
}
