//! Clients of one cell that call groups of others all the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use steadfast::{Client, Invocation};

use super::super::super::Failure;
use super::report::{Count, Waits, ms};
use super::system::System;

/// Clients of each group.
const CLIENTS: u32 = 4;

/// A call waits so long for its answer.
const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
struct Tally {
    count: Count,
    waits: Vec<Duration>,
}

/// The clients of all groups.
pub(super) struct Traffic {
    over: Arc<AtomicBool>,
    tallies: Vec<Arc<Mutex<Tally>>>,
    clients: Vec<JoinHandle<()>>,
}

impl Traffic {
    /// Clients of this cell call the counters of those.
    pub(super) fn begin(
        system: &System,
        from: &str,
        to: [&str; 2],
        rate: u32,
    ) -> Result<Traffic, Failure> {
        let (over, mut clients) = (Arc::new(AtomicBool::new(false)), Vec::new());
        let pause = Duration::from_secs(1) * CLIENTS * 2 / rate;
        let mut tallies = Vec::new();
        for cell in to {
            let group = format!("{cell}:counter");
            let count = Count { group: group.clone(), ..Count::default() };
            let tally = Arc::new(Mutex::new(Tally { count, waits: Vec::new() }));
            for _ in 0..CLIENTS {
                let client = system.client(from)?;
                let (group, tally, over) = (group.clone(), tally.clone(), over.clone());
                clients.push(std::thread::spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        let next = Instant::now() + pause;
                        call(&client, &group, &tally);
                        std::thread::sleep(next.saturating_duration_since(Instant::now()));
                    }
                }));
            }
            tallies.push(tally);
        }
        Ok(Traffic { over, tallies, clients })
    }

    /// The waits since they were forgotten last.
    pub(super) fn waits(&self) -> Vec<Waits> {
        let of = |tally: &Arc<Mutex<Tally>>| {
            let tally = lock(tally);
            let mut waits = tally.waits.clone();
            waits.sort_unstable();
            let at = |place: usize| waits.get(place).map_or(f64::NAN, |wait| ms(*wait));
            Waits {
                group: tally.count.group.clone(),
                median_ms: at(waits.len() / 2),
                longest_ms: at(waits.len().saturating_sub(1)),
            }
        };
        self.tallies.iter().map(of).collect()
    }

    pub(super) fn forget_waits(&self) {
        self.tallies.iter().for_each(|tally| lock(tally).waits.clear());
    }

    /// Ends all calls: how they ended.
    pub(super) fn end(mut self) -> Vec<Count> {
        self.over.store(true, Ordering::Relaxed);
        // A client that has panicked has told why.
        self.clients.drain(..).for_each(|client| drop(client.join()));
        self.tallies.iter().map(|tally| lock(tally).count.clone()).collect()
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn call(client: &Client, group: &str, tally: &Mutex<Tally>) {
    let began = Instant::now();
    let call = Invocation::new(group, "add").json().body("[1]").within(DEADLINE);
    let result = client.call(call);
    let mut tally = lock(tally);
    match result {
        Ok(_) => {
            tally.count.answered += 1;
            tally.waits.push(began.elapsed());
        }
        Err(error) if error.was_executed() == Some(false) => tally.count.refused += 1,
        Err(_) => tally.count.unknown += 1,
    }
}

fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
