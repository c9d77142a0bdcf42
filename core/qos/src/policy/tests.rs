use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use wire::Random;

use super::*;

const POLICIES: [Policy; 4] =
    [Policy::RateMonotonic, Policy::Hyperbolic, Policy::ResponseTime, Policy::EarliestDeadline];

fn task(cost: u64, period: u64) -> Task {
    Task::new(Duration::from_millis(cost), Duration::from_millis(period))
}

fn admits(policy: Policy, tasks: &[Task]) -> bool {
    policy.overload(tasks, Share::ZERO, Share::ONE) == Share::ZERO
}

#[test]
fn one_task_may_have_the_whole_processor() {
    for policy in POLICIES {
        assert!(admits(policy, &[task(10, 10)]), "{policy:?}");
        assert!(!admits(policy, &[task(11, 10)]), "{policy:?}");
    }
}

/// n(2^(1/n) - 1) is 82.84 % of a processor for two tasks and 77.97 % for three.
#[test]
fn the_bound_of_liu_and_layland_is_met_to_a_hundredth_of_a_percent() {
    let of = |shares: &[u64]| -> Vec<Task> {
        shares
            .iter()
            .map(|share| Task::new(Duration::from_nanos(*share), Duration::from_nanos(10_000)))
            .collect()
    };
    assert!(admits(Policy::RateMonotonic, &of(&[4_142, 4_142])));
    assert!(!admits(Policy::RateMonotonic, &of(&[4_143, 4_143])));
    assert!(admits(Policy::RateMonotonic, &of(&[2_599, 2_599, 2_599])));
    assert!(!admits(Policy::RateMonotonic, &of(&[2_600, 2_600, 2_600])));
}

/// Unequal shares: 1.5 * 1.33 < 2, but 0.83 is above the bound for two tasks.
#[test]
fn the_hyperbolic_bound_passes_what_the_linear_one_does_not() {
    let tasks = [task(50, 100), task(33, 100)];
    assert!(admits(Policy::Hyperbolic, &tasks));
    assert!(!admits(Policy::RateMonotonic, &tasks));
}

/// Harmonic periods are in time up to the whole processor.
#[test]
fn response_times_pass_what_the_hyperbolic_bound_does_not() {
    let tasks = [task(1, 2), task(1, 4), task(2, 8)];
    assert!(admits(Policy::ResponseTime, &tasks));
    assert!(!admits(Policy::Hyperbolic, &tasks));
}

/// The second task is in time by 20 of 20 ms; with a deadline of 19 it is not.
#[test]
fn a_deadline_may_be_shorter_than_the_period() {
    let mut tasks = [task(5, 10), task(10, 20)];
    assert!(admits(Policy::ResponseTime, &tasks));
    tasks[1].deadline = Duration::from_millis(19);
    assert!(!admits(Policy::ResponseTime, &tasks));
}

/// The three primaries that are on one processor after the failures of `flare.txt`, section 4.3: 40
/// % at 10 Hz and 50 % at 5 Hz pass no test but the exact ones.
#[test]
fn the_overload_of_the_paper_is_one() {
    let shiva = [task(40, 100), task(100, 200)];
    assert!(!admits(Policy::RateMonotonic, &shiva));
    assert!(!admits(Policy::Hyperbolic, &shiva));
    assert!(admits(Policy::ResponseTime, &shiva));
    assert!(admits(Policy::RateMonotonic, &shiva[..1]));
}

#[test]
fn half_a_processor_bears_half_as_much() {
    for policy in POLICIES {
        assert!(policy.admits(&[task(5, 10)], Share::ZERO, Share::percent(50)), "{policy:?}");
        assert!(!policy.admits(&[task(6, 10)], Share::ZERO, Share::percent(50)), "{policy:?}");
        assert!(!policy.admits(&[task(1, 10)], Share::ZERO, Share::ZERO), "{policy:?}");
        assert!(!policy.admits(&[task(3, 10)], Share::percent(80), Share::ONE), "{policy:?}");
    }
}

/// Plays the schedule of a processor in which all tasks begin at once, nanosecond by nanosecond,
/// and tells whether all are in time: that beginning is the worst (Liu and Layland, theorem 1).
fn plays_in_time(tasks: &[Task]) -> bool {
    let mut by_rate = tasks.to_vec();
    by_rate.sort_by_key(|task| (task.period, task.deadline, task.cost));
    let end = by_rate.iter().map(|task| task.period.as_nanos()).max().unwrap_or(0);
    let mut left: Vec<u128> = vec![0; by_rate.len()];
    for now in 0..=end {
        for (task, left) in by_rate.iter().zip(&mut left) {
            if now % task.period.as_nanos() == 0 {
                if *left > 0 {
                    return false;
                }
                *left = task.cost.as_nanos();
            }
        }
        if let Some(first) = left.iter_mut().find(|left| **left > 0) {
            *first -= 1;
        }
    }
    true
}

/// The exact test agrees with the schedule as it is played, and no other test for priorities by
/// rate passes what is late.
#[test]
fn tests_agree_with_the_schedule_as_it_is_played() {
    let mut random = Random::new(7);
    let (mut passed, mut late) = (0, 0);
    for _ in 0..3_000 {
        let tasks: Vec<Task> = (0..1 + random.below(4))
            .map(|_| {
                let period = 4 + random.below(40);
                let cost = 1 + random.below(period / 2);
                Task::new(Duration::from_nanos(cost), Duration::from_nanos(period))
            })
            .collect();
        let in_time = plays_in_time(&tasks);
        assert_eq!(admits(Policy::ResponseTime, &tasks), in_time, "{tasks:?}");
        for policy in [Policy::RateMonotonic, Policy::Hyperbolic] {
            assert!(in_time || !admits(policy, &tasks), "{policy:?} {tasks:?}");
        }
        // Tasks that are in time by fixed priorities are so by deadlines, and the hyperbolic bound
        // admits all that the linear one does.
        assert!(!in_time || admits(Policy::EarliestDeadline, &tasks), "{tasks:?}");
        assert!(
            !admits(Policy::RateMonotonic, &tasks) || admits(Policy::Hyperbolic, &tasks),
            "{tasks:?}"
        );
        if in_time { passed += 1 } else { late += 1 }
    }
    assert!(passed > 300 && late > 300, "{passed} in time, {late} late: these draws prove little");
}

/// A search relies upon this.
#[test]
fn more_to_do_is_never_less_excess() {
    let mut random = Random::new(8);
    for _ in 0..2_000 {
        let mut tasks = Vec::new();
        let mut excess = POLICIES.map(|_| Share::ZERO);
        for _ in 0..5 {
            let period = 4 + random.below(40);
            tasks.push(Task::new(
                Duration::from_nanos(1 + random.below(period)),
                Duration::from_nanos(period),
            ));
            let more = POLICIES.map(|policy| policy.excess(&tasks, Share::ZERO, Share::ONE));
            for (before, after) in excess.iter().zip(more) {
                assert!(*before <= after, "{tasks:?}");
            }
            excess = more;
        }
    }
}
