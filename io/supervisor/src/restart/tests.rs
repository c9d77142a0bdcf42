use wire::Random;

use super::*;

const fn ms(millis: u64) -> Time {
    Time(millis * 1_000_000)
}

fn outputs(policy: &mut RestartPolicy) -> Vec<Output> {
    std::iter::from_fn(|| policy.poll_output()).collect()
}

#[test]
fn who_ends_for_the_first_time_is_started_at_once_and_then_ever_later() {
    let mut policy = RestartPolicy::new(false);
    assert_eq!(outputs(&mut policy), [Output::Start]);
    let (mut now, mut waits) = (ms(1), Vec::new());
    for _ in 0..12 {
        policy.ended(now);
        let begun = now;
        if let Standing::BackingOff(until) = policy.standing() {
            now = until;
            policy.handle_timeout(now);
        }
        waits.push(now.since(begun).as_millis() as u64);
        assert_eq!(policy.standing(), Standing::Starting);
    }
    let expected = [0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000];
    assert_eq!(waits, expected);
    assert_eq!(policy.restarts(), 12);
    let told = outputs(&mut policy);
    let told: Vec<_> = told.iter().filter(|output| **output != Output::Start).collect();
    let wait = Duration::from_millis(800);
    assert_eq!(told, [&Output::CrashLoop { ends: 5, wait }], "it is told once");
}

#[test]
fn a_healthy_time_makes_good_for_all_that_was_before() {
    let mut policy = RestartPolicy::new(false);
    for _ in 0..CRASH_LOOP {
        policy.ended(ms(0));
        policy.handle_timeout(policy.next_timeout());
    }
    outputs(&mut policy);
    policy.attached(ms(20_000));
    assert_eq!(policy.next_timeout(), ms(30_000));
    policy.handle_timeout(ms(29_999));
    assert_eq!(outputs(&mut policy), []);
    policy.handle_timeout(ms(30_000));
    assert_eq!(outputs(&mut policy), [Output::Recovered]);
    policy.detached(ms(40_000));
    policy.ended(ms(40_001));
    assert_eq!(outputs(&mut policy), [Output::Start], "at once, as the first time");
}

#[test]
fn who_is_hung_is_told_to_end_at_once_and_started_again() {
    let mut policy = RestartPolicy::new(false);
    policy.attached(ms(0));
    outputs(&mut policy);
    policy.hung(ms(10));
    policy.detached(ms(11));
    assert_eq!(outputs(&mut policy), [Output::Signal(Signal::Term)], "it is not waited for");
    assert_eq!(policy.next_timeout(), ms(5_010));
    policy.handle_timeout(ms(5_010));
    assert_eq!(outputs(&mut policy), [Output::Signal(Signal::Kill)]);
    policy.ended(ms(5_020));
    assert_eq!(outputs(&mut policy), [Output::Start]);
}

#[test]
fn who_does_not_end_is_told_to_and_then_made_to() {
    let mut policy = RestartPolicy::new(false);
    policy.attached(ms(0));
    policy.stop(ms(10), true);
    outputs(&mut policy);
    let mut told = Vec::new();
    while told.len() < 3 {
        let due = policy.next_timeout();
        policy.handle_timeout(due);
        told.extend(outputs(&mut policy).into_iter().map(|output| (due, output)));
    }
    assert_eq!(
        told,
        [
            (ms(2_010), Output::Signal(Signal::Term)),
            (ms(7_010), Output::Signal(Signal::Kill)),
            (ms(12_010), Output::Signal(Signal::Kill)),
        ]
    );
    policy.ended(ms(12_020));
    assert_eq!(outputs(&mut policy), [Output::Over]);
    assert_eq!(policy.next_timeout(), Time::FAR);
}

#[test]
fn who_was_turned_away_has_to_end_before_it_is_started_again() {
    let mut policy = RestartPolicy::new(false);
    outputs(&mut policy);
    policy.detached(ms(5));
    assert_eq!(outputs(&mut policy), [], "it may end by itself");
    policy.ended(ms(6));
    assert_eq!(outputs(&mut policy), [Output::Start]);
}

#[test]
fn who_waits_for_its_start_is_stopped_at_once() {
    let mut policy = RestartPolicy::new(false);
    policy.ended(ms(0));
    policy.ended(ms(0));
    outputs(&mut policy);
    policy.stop(ms(1), true);
    assert_eq!(outputs(&mut policy), [Output::Over]);
}

#[test]
fn who_is_started_on_demand_stands_by_until_then_and_afterwards() {
    let mut policy = RestartPolicy::new(true);
    assert_eq!(outputs(&mut policy), [Output::Stand]);
    assert_eq!(policy.next_timeout(), Time::FAR);
    policy.wanted();
    assert_eq!(outputs(&mut policy), [Output::Start]);
    policy.attached(ms(5));
    policy.released(ms(10));
    assert_eq!(outputs(&mut policy), [], "it may end by itself");
    policy.ended(ms(11));
    assert_eq!((outputs(&mut policy), policy.ends()), (vec![], 0), "that is no failure");
    policy.wanted();
    assert_eq!(outputs(&mut policy), [Output::Start]);
    policy.stop(ms(20), false);
    assert_eq!(outputs(&mut policy), [Output::Signal(Signal::Term)]);
    policy.ended(ms(21));
    assert_eq!(outputs(&mut policy), [Output::Over]);
}

#[test]
fn who_fails_when_it_is_needed_stands_by_anew_after_ever_longer_waits() {
    let mut policy = RestartPolicy::new(true);
    outputs(&mut policy);
    for (end, wait) in [0, 100, 200, 400].into_iter().enumerate() {
        let now = ms(10_000 * (end as u64 + 1));
        policy.wanted();
        assert_eq!(outputs(&mut policy), [Output::Start]);
        policy.ended(now);
        if wait > 0 {
            assert_eq!(
                (policy.next_timeout(), outputs(&mut policy)),
                (now + Duration::from_millis(wait), vec![])
            );
            policy.wanted();
            assert_eq!(outputs(&mut policy), [], "its replica is not hosted");
            policy.handle_timeout(policy.next_timeout());
        }
        assert_eq!(outputs(&mut policy), [Output::Stand], "another may have taken over");
    }
}

#[test]
fn who_is_needed_again_before_it_has_ended_is_started_when_it_has() {
    let mut policy = RestartPolicy::new(true);
    policy.wanted();
    policy.attached(ms(1));
    policy.released(ms(2));
    policy.wanted();
    outputs(&mut policy);
    policy.ended(ms(3));
    assert_eq!(outputs(&mut policy), [Output::Start]);
}

/// The rules that must hold in any order of events: checked over drawn histories.
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
    let (mut policy, mut checker) = (RestartPolicy::new(false), Checker::default());
    let (mut now, mut attached_at) = (ms(1), None);
    while let Some(output) = policy.poll_output() {
        checker.check(now, output);
    }
    for _ in 0..200 {
        let due = policy.next_timeout();
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
                policy.ended(now);
            }
            4..=6 if policy.standing() == Standing::Starting && checker.running == 1 => {
                attached_at = Some(now);
                policy.attached(now);
            }
            7 => {
                if attached_at.take().is_some_and(|at| now >= at + HEALTHY) {
                    checker.ends = 0;
                }
                policy.detached(now);
            }
            8 if random.below(20) == 0 => {
                checker.stopped = true;
                policy.stop(now, random.below(2) == 0);
            }
            _ => {}
        }
        if policy.next_timeout() <= now {
            policy.handle_timeout(now);
        }
        while let Some(output) = policy.poll_output() {
            checker.check(now, output);
        }
        assert!(policy.next_timeout() > now, "what is due is done");
    }
    policy.restarts()
}

#[test]
fn no_history_starts_two_processes_or_one_too_early_or_after_a_stop() {
    let restarts: u64 = (0..2_000).map(history).sum();
    assert!(restarts > 10_000, "the histories have something to check: {restarts}");
}
