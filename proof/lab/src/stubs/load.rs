//! Calls that begin when they are due, however many are under way, and how they end.
//!
//! Each call brings its own number, and takes away that of the call before it in the group's order.
//! So a call that is executed twice has its number taken away twice, and the number of one whose
//! effect is lost is never taken away.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use harness::figures::Times;
use harness::grpc::Stub;
use harness::wait::until_so;
use harness::{Outcome, ensure};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};
use tonic::Status;
use tonic::body::Body;
use tonic::client::GrpcService;

/// Calls under way: as many as a client queues at least. Beyond, calls wait to be made.
const MOST: u32 = 1_000;

/// The wait for calls: far longer than they take on a machine that is busy.
const TIMEOUT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

/// The calls so far, and how they have ended.
#[derive(Default)]
pub struct Tally {
    /// Calls that were begun.
    pub made: u64,
    /// The times of those that were answered.
    pub times: Times,
    /// How many of the others failed, and how.
    pub failed: BTreeMap<String, u64>,
    /// The numbers that calls have taken away. No call has the number 0.
    taken: Vec<u64>,
    last: Option<Instant>,
    longest: Duration,
}

/// Calls that go on until they are told to end.
pub struct Load {
    tally: Arc<Mutex<Tally>>,
    over: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

/// A moment of a load.
pub struct Mark {
    failed: u64,
}

async fn call_on_time<T>(
    hz: u32,
    size: usize,
    stub: Stub<T>,
    tally: Arc<Mutex<Tally>>,
    over: Arc<AtomicBool>,
) where
    T: GrpcService<Body, ResponseBody = Body, Future: Send> + Clone + Send + 'static,
{
    let room = Arc::new(Semaphore::new(MOST as usize));
    let mut ticks = interval(Duration::from_secs(1) / hz);
    // Calls that the machine has delayed are not made up for: that would be another load.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !over.load(Ordering::Acquire) {
        ticks.tick().await;
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let number = lock(&tally).begin();
        let (mut stub, tally) = (stub.clone(), tally.clone());
        tokio::spawn(async move {
            let start = Instant::now();
            let ended = stub.swap(format!("{number:0size$}")).await;
            lock(&tally).note(start, ended);
            drop(place);
        });
    }
    // When all places are free, all calls have ended.
    let _ = room.acquire_many(MOST).await;
}

fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Load {
    /// Begins to call by this stub, `hz` times a second, with texts of `size` bytes.
    pub fn start<T>(runtime: &Runtime, hz: u32, size: usize, stub: Stub<T>) -> Load
    where
        T: GrpcService<Body, ResponseBody = Body, Future: Send> + Clone + Send + 'static,
    {
        let (tally, over) = (Arc::<Mutex<Tally>>::default(), Arc::<AtomicBool>::default());
        let calls = call_on_time(hz, size, stub, tally.clone(), over.clone());
        Load { tally, over, task: runtime.spawn(calls) }
    }

    /// Waits until so many more calls were begun.
    pub fn wait_for_calls(&self, more: u64) -> Outcome<()> {
        self.wait("calls were made", more, |tally| tally.made)
    }

    /// Waits until so many more calls were answered.
    pub fn wait_for_answers(&self, more: u64) -> Outcome<()> {
        self.wait("calls were answered", more, |tally| tally.taken.len() as u64)
    }

    fn wait(&self, what: &str, more: u64, count: fn(&Tally) -> u64) -> Outcome<()> {
        let wanted = count(&lock(&self.tally)) + more;
        let timeout = TIMEOUT + LOOK * u32::try_from(more).unwrap_or(u32::MAX);
        let missing = format!("fewer than {more} {what} in {timeout:?}");
        until_so(timeout, LOOK, &missing, || Ok(count(&lock(&self.tally)) >= wanted))
    }

    /// This moment.
    pub fn mark(&self) -> Mark {
        let mut tally = lock(&self.tally);
        tally.longest = Duration::ZERO;
        Mark { failed: tally.failed_calls() }
    }

    /// The calls that have failed since the last mark, and the longest time between two answers.
    pub fn since(&self, mark: &Mark) -> Value {
        let tally = lock(&self.tally);
        let gap_ms = tally.longest.as_secs_f64() * 1e3;
        json!({"failed": tally.failed_calls() - mark.failed, "gap_ms": gap_ms})
    }

    /// Ends it, and waits for the calls that are under way.
    pub fn finish(self, runtime: &Runtime) -> Outcome<Tally> {
        self.over.store(true, Ordering::Release);
        runtime.block_on(self.task)?;
        Ok(std::mem::take(&mut *lock(&self.tally)))
    }
}

impl Tally {
    /// Begins a call, and returns its number.
    fn begin(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    fn note(&mut self, start: Instant, ended: Result<String, Status>) {
        let number = ended.and_then(|text| match text.as_str() {
            // The first call finds nothing.
            "" => Ok(0),
            text => text.parse().map_err(|_| Status::data_loss("another text than any was")),
        });
        match number {
            Ok(number) => {
                let now = Instant::now();
                self.longest = self.last.map_or(self.longest, |last| self.longest.max(now - last));
                self.last = Some(now);
                self.times.push(now - start);
                self.taken.push(number);
            }
            Err(status) => {
                *self.failed.entry(format!("{:?}", status.code())).or_default() += 1;
            }
        }
    }

    /// All calls that failed.
    pub fn failed_calls(&self) -> u64 {
        self.failed.values().sum()
    }

    /// How many failed how, behind a colon. Empty if none did.
    pub fn reasons(&self) -> String {
        let each = self.failed.iter().map(|(how, count)| format!("{count} {how}"));
        let all = each.collect::<Vec<_>>().join(", ");
        if all.is_empty() { all } else { format!(": {all}") }
    }

    /// Checks that all calls were answered, and executed exactly once. The group has executed
    /// `executed` calls, and `kept` is the number that it had in the end.
    pub fn lost_nothing(&self, executed: u64, kept: u64) -> Outcome<()> {
        let Tally { made, failed, .. } = self;
        ensure!(
            failed.is_empty(),
            "of {made} calls over our channel {} failed{}",
            self.failed_calls(),
            self.reasons()
        );
        let mut left: BTreeMap<u64, i64> = (0..=*made).map(|number| (number, 1)).collect();
        for number in self.taken.iter().chain([&kept]) {
            *left.entry(*number).or_default() -= 1;
        }
        let numbers = |wanted: fn(i64) -> bool| {
            let some = left.iter().filter(|(_, left)| wanted(**left)).map(|(number, _)| *number);
            some.take(10).collect::<Vec<_>>()
        };
        let (lost, twice) = (numbers(|left| left > 0), numbers(|left| left < 0));
        ensure!(
            lost.is_empty() && twice.is_empty() && executed == *made,
            "{made} calls were made and answered, and {executed} were executed; lost: {lost:?}, \
             twice: {twice:?} (at most ten numbers of calls each)"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tally of calls that have taken away these numbers.
    fn tally(taken: &[u64]) -> Tally {
        Tally { made: taken.len() as u64, taken: taken.to_vec(), ..Tally::default() }
    }

    fn wrong(tally: &Tally, executed: u64, kept: u64) -> String {
        tally.lost_nothing(executed, kept).expect_err("something is wrong").to_string()
    }

    #[test]
    fn calls_in_any_order_are_executed_once() {
        tally(&[0, 1, 2]).lost_nothing(3, 3).expect("in order");
        tally(&[3, 0, 2]).lost_nothing(3, 1).expect("the second, the third, the first");
    }

    #[test]
    fn a_call_executed_twice_is_found() {
        // 2 was executed, then 1, and 2 again.
        let found = wrong(&tally(&[0, 2, 2]), 4, 3);
        assert!(found.contains("twice: [2]"), "{found}");
    }

    #[test]
    fn a_lost_effect_is_found_though_the_count_is_right() {
        let found = wrong(&tally(&[0, 1, 1]), 3, 3);
        assert!(found.contains("lost: [2], twice: [1]"), "{found}");
    }

    #[test]
    fn a_count_that_is_not_that_of_the_calls_is_found() {
        assert!(wrong(&tally(&[0, 1]), 3, 2).contains("2 calls were made and answered, and 3"));
    }

    #[test]
    fn a_failed_call_is_told_with_its_reason() {
        let mut tally = tally(&[0, 1]);
        tally.made += 1;
        tally.note(Instant::now(), Err(Status::deadline_exceeded("late")));
        let found = wrong(&tally, 2, 2);
        assert_eq!(found, "of 3 calls over our channel 1 failed: 1 DeadlineExceeded");
    }

    #[test]
    fn the_first_call_finds_nothing_and_a_strange_text_fails() {
        let mut tally = Tally::default();
        tally.note(Instant::now(), Ok(String::new()));
        tally.note(Instant::now(), Ok("0007".into()));
        tally.note(Instant::now(), Ok("x".into()));
        assert_eq!(tally.taken, [0, 7]);
        assert_eq!(tally.reasons(), ": 1 DataLoss");
    }
}
