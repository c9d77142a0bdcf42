//! A client that calls on time, and notes how long each call took.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use steadfast::{Client, Invocation};

use super::scene::Server;
use super::server::{TAKE, order};

/// Far beyond what a call takes.
const DEADLINE: Duration = Duration::from_secs(8);

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// When it began, in seconds of the experiment.
    pub at: f64,
    /// Milliseconds to its reply.
    pub took: f64,
}

/// Everything that a client has seen.
#[derive(Clone, Default)]
pub struct Seen {
    pub made: Vec<Made>,
    /// Errors, and when they came.
    pub failed: Vec<(f64, String)>,
}

/// Calls on time until the experiment's end.
pub struct Customer {
    seen: Arc<Mutex<Seen>>,
    thread: JoinHandle<()>,
}

impl Customer {
    /// Calls this server, from `begin` on, as its scene says.
    pub fn start(
        client: Client,
        server: &'static Server,
        processor: u32,
        (begin, length): (Instant, Duration),
    ) -> Customer {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let noted = seen.clone();
        let body = order(server.work(processor), server.nice());
        let calls = move || {
            let mut due = begin + length.mul_f64(server.from);
            while due < begin + length {
                thread::sleep(due.saturating_duration_since(Instant::now()));
                let started = Instant::now();
                let reply = client.call(
                    Invocation::new(server.group, TAKE).body(Bytes::clone(&body)).within(DEADLINE),
                );
                let at = started.duration_since(begin).as_secs_f64();
                let took = started.elapsed().as_secs_f64() * 1e3;
                let mut seen = noted.lock().unwrap_or_else(PoisonError::into_inner);
                match reply {
                    Ok(_) => seen.made.push(Made { at, took }),
                    Err(error) => seen.failed.push((at, error.to_string())),
                }
                drop(seen);
                due += server.period();
                // Calls that could not begin in time are left out: catching up would be another
                // load.
                while due < Instant::now() {
                    due += server.period();
                }
            }
        };
        Customer { seen, thread: thread::spawn(calls) }
    }

    /// The calls and errors of a client, once it has ended.
    pub fn finish(self) -> Seen {
        // If the thread has panicked, its calls so far count.
        let _ = self.thread.join();
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
