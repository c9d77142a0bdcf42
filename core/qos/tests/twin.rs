//! The admission tests against a twin that plays the schedule, tick by tick, and tries every way to
//! share the processors out.

use std::time::Duration;

use steadfast_qos::{Policy, Task, global};
use wire::{Random, Share};

/// All periods divide this: then the schedule repeats.
const HYPERPERIOD: u64 = 120;
const PERIODS: [u64; 12] = [4, 5, 6, 8, 10, 12, 15, 20, 24, 30, 40, 60];

/// A task in ticks.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    cost: u64,
    period: u64,
    deadline: u64,
}

impl Ticks {
    fn task(self) -> Task {
        let time = |ticks: u64| Duration::from_micros(ticks);
        Task { cost: time(self.cost), period: time(self.period), deadline: time(self.deadline) }
    }
}

/// Random tasks of about this use together, in hundredths of a processor.
fn random_tasks(random: &mut Random, count: u64, percent: u64) -> Vec<Ticks> {
    (0..count)
        .map(|_| {
            let period = PERIODS[random.below(PERIODS.len() as u64) as usize];
            let mean = period * percent / count / 100;
            let cost = (1 + random.below((2 * mean).max(1))).min(period);
            let slack = random.below((period - cost) / 2 + 1);
            Ticks { cost, period, deadline: period - slack }
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Rate,
    Deadline,
}

/// Plays a schedule in which task i begins at `offsets[i]`, and tells whether all are in time.
fn play(tasks: &[Ticks], offsets: &[u64], processors: usize, order: Order) -> bool {
    // For each task: the rest of its release, and when that is due.
    let mut jobs = vec![(0, 0); tasks.len()];
    for now in 0..3 * HYPERPERIOD {
        for ((task, offset), (left, due)) in tasks.iter().zip(offsets).zip(&mut jobs) {
            if *left > 0 && *due <= now {
                return false;
            }
            if now >= *offset && (now - offset) % task.period == 0 {
                (*left, *due) = (task.cost, now + task.deadline);
            }
        }
        let mut ready: Vec<usize> = (0..tasks.len()).filter(|task| jobs[*task].0 > 0).collect();
        ready.sort_by_key(|task| match order {
            // In one period the task with the shortest deadline is unlucky and goes last.
            Order::Rate => (tasks[*task].period, HYPERPERIOD - tasks[*task].deadline),
            Order::Deadline => (jobs[*task].1, 0),
        });
        ready.iter().take(processors).for_each(|task| jobs[*task].0 -= 1);
    }
    true
}

/// For each subset of the tasks: one processor serves all of it in time. They begin at once, which
/// is the worst (Liu and Layland, theorem 1).
fn subsets_in_time(tasks: &[Ticks], order: Order) -> Vec<bool> {
    (0..1_usize << tasks.len())
        .map(|subset| {
            let chosen: Vec<Ticks> = (0..tasks.len())
                .filter(|task| subset >> task & 1 == 1)
                .map(|task| tasks[task])
                .collect();
            play(&chosen, &vec![0; chosen.len()], 1, order)
        })
        .collect()
}

/// Some way to give each task a processor leaves all in time.
fn fits(in_time: &[bool], left: usize, processors: usize) -> bool {
    if processors == 1 || left == 0 {
        return in_time[left];
    }
    let mut subset = left;
    loop {
        if in_time[subset] && fits(in_time, left & !subset, processors - 1) {
            return true;
        }
        if subset == 0 {
            return false;
        }
        subset = (subset - 1) & left;
    }
}

/// No set is admitted of which a task is late; hardly any is refused that would fit.
fn the_twin_agrees(policy: Policy, order: Order, sets: u64, seed: u64) {
    let mut random = Random::new(seed);
    let (mut admitted, mut refused, mut missed) = (0, 0, 0);
    for _ in 0..sets {
        let processors = 1 + random.below(3);
        let percent = processors * (60 + random.below(50));
        let count = processors + 1 + random.below(4);
        let tasks = random_tasks(&mut random, count, percent);
        let asked: Vec<Task> = tasks.iter().map(|task| task.task()).collect();
        let places = policy.fit(&asked, Share::ZERO, Share(processors * Share::ONE.0));
        let in_time = subsets_in_time(&tasks, order);
        match places {
            Some(places) => {
                for processor in 0..processors as usize {
                    let subset = places.iter().enumerate().filter(|(_, at)| **at == processor);
                    let subset = subset.fold(0, |subset, (task, _)| subset | 1 << task);
                    assert!(in_time[subset], "{tasks:?} on {places:?}: processor {processor}");
                }
                admitted += 1;
            }
            None if fits(&in_time, (1 << tasks.len()) - 1, processors as usize) => {
                // Shares are rounded up: a use of exactly one may be a millionth too much.
                let used: u64 = tasks.iter().map(|it| it.cost * HYPERPERIOD / it.period).sum();
                let exact = processors == 1 && used < HYPERPERIOD;
                assert!(!exact, "for one processor the test is exact: {tasks:?}");
                missed += 1;
            }
            None => refused += 1,
        }
    }
    println!("{policy:?}: {admitted} admitted, {refused} refused, {missed} of them would fit");
    assert!(admitted > sets / 5 && refused > sets / 5, "these draws prove little");
    assert!(missed * 100 <= (admitted + missed) * 5, "{missed} would fit, {admitted} admitted");
}

#[test]
fn by_response_time_none_is_late_and_hardly_any_refused() {
    the_twin_agrees(Policy::ResponseTime, Order::Rate, 5_000, 1);
}

#[test]
fn by_processor_demand_none_is_late_and_hardly_any_refused() {
    the_twin_agrees(Policy::EarliestDeadline, Order::Deadline, 5_000, 2);
}

/// Theorem 1 does not hold for many processors, so tasks begin at several times.
#[test]
fn the_global_bound_admits_none_that_is_late() {
    let mut random = Random::new(3);
    let (mut admitted, mut late) = (0, 0);
    for _ in 0..3_000 {
        let processors = 2 + random.below(2);
        let percent = processors * (30 + random.below(70));
        let count = processors + 1 + random.below(4);
        let tasks = random_tasks(&mut random, count, percent);
        let asked: Vec<Task> = tasks.iter().map(|task| task.task()).collect();
        let is_admitted = global::admits(&asked, processors as u32, Share::ZERO);
        for _ in 0..4 {
            let offsets: Vec<u64> = tasks.iter().map(|task| random.below(task.period)).collect();
            let in_time = play(&tasks, &offsets, processors as usize, Order::Deadline);
            assert!(in_time || !is_admitted, "{tasks:?} at {offsets:?}");
            late += u64::from(!in_time);
        }
        admitted += u64::from(is_admitted);
    }
    assert!(admitted > 300 && late > 300, "{admitted} admitted, {late} late");
}

/// Two processors are not one that is twice as fast: no thread runs on both.
#[test]
fn a_task_of_more_than_its_period_fits_on_no_host() {
    let task = Task::new(Duration::from_millis(13), Duration::from_millis(10));
    for policy in
        [Policy::RateMonotonic, Policy::Hyperbolic, Policy::ResponseTime, Policy::EarliestDeadline]
    {
        for processors in [1, 2, 64] {
            assert!(
                !policy.admits(&[task], Share::ZERO, Share(processors * Share::ONE.0)),
                "{policy:?}"
            );
        }
    }
    assert!(!global::admits(&[task], 64, Share::ZERO));
}

/// Three tasks of 60 % need three processors, though their use is less than two.
#[test]
fn tasks_are_not_cut_in_two() {
    let task = Task::new(Duration::from_millis(6), Duration::from_millis(10));
    let admits = |processors| {
        Policy::ResponseTime.admits(&[task; 3], Share::ZERO, Share(processors * Share::ONE.0))
    };
    assert!(!admits(2));
    assert!(admits(3));
}

/// The server of ordinary tasks takes 5 % of each processor: two of 95 % are too much then.
#[test]
fn what_is_taken_of_each_processor_counts() {
    let of =
        |percent: u64| Task::new(Duration::from_micros(percent * 100), Duration::from_millis(10));
    assert!(global::admits(&[of(95), of(5)], 2, Share::ZERO));
    assert!(global::admits(&[of(50), of(40)], 2, Share::percent(5)));
    assert!(!global::admits(&[of(95), of(5)], 2, Share::percent(5)));
}
