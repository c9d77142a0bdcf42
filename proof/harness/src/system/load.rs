//! Calls at a steady rate, whether or not the former ones are answered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use steadfast::{AsyncClient, Invocation, RetryBudget};
use tokio::runtime::{Builder, Runtime};

use super::{ECHO, System, TIMEOUT};
use crate::Outcome;
use crate::sites::Site;
use crate::wait::until_so;

/// A call waits no longer.
const DEADLINE: Duration = Duration::from_secs(10);

/// How often it is looked whether calls are answered.
const LOOK: Duration = Duration::from_millis(10);

/// The end of a call.
#[derive(Clone, Debug)]
pub struct Reply {
    /// When it was made.
    pub asked: Instant,
    /// When it ended.
    pub ended: Instant,
    /// Why it has no result, if so.
    pub failed: Option<String>,
}

/// Calls from one cell to the echo of another, until it is dropped.
pub struct Load {
    log: Arc<Mutex<Vec<Reply>>>,
    over: Arc<AtomicBool>,
    ticks: Option<JoinHandle<()>>,
    /// Dropped last: calls are under way there.
    _runtime: Runtime,
}

impl Load {
    /// A call every `period`.
    pub fn start(system: &System, from: Site, to: Site, period: Duration) -> Outcome<Load> {
        let (nodes, tls) = (system.clients(from), system.tls(from));
        let name = format!("{}:{ECHO}", system.path(to));
        system.at_callers(from, || {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            // Faults strike each second here: without it, retries would be spent after some.
            let budget = RetryBudget::default().per_thousand(1_000);
            let builder = AsyncClient::builder().tls(tls).retry_budget(budget);
            let connecting = builder.connect_async(nodes);
            let client = runtime.block_on(connecting)?;
            let (log, over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
            let (noted, ends, handle) = (log.clone(), over.clone(), runtime.handle().clone());
            let ticks = thread::Builder::new().name("load".into()).spawn(move || {
                let mut due = Instant::now();
                while !ends.load(Ordering::Relaxed) {
                    handle.spawn(call(client.clone(), name.clone(), noted.clone()));
                    due += period;
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                }
            })?;
            Ok(Load { log, over, ticks: Some(ticks), _runtime: runtime })
        })
    }

    fn with<T>(&self, look: impl FnOnce(&[Reply]) -> T) -> T {
        look(&self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until `count` calls that were made after a moment are answered.
    pub fn wait_for(&self, after: Instant, count: usize) -> Outcome<()> {
        let missing = format!("no {count} calls of those since then are answered in {TIMEOUT:?}");
        let is_good = |reply: &&Reply| reply.failed.is_none() && reply.asked >= after;
        until_so(TIMEOUT, LOOK, &missing, || {
            Ok(self.with(|log| log.iter().rev().filter(is_good).take(count).count() == count))
        })
    }

    /// The longest time without a good reply, of those that ended after a moment.
    pub fn gap(&self, after: Instant) -> Duration {
        self.with(|log| {
            let good = log.iter().filter(|reply| reply.failed.is_none());
            let ends = good.map(|reply| reply.ended).collect::<Vec<_>>();
            let pairs = ends.windows(2).filter(|pair| pair[1] >= after);
            pairs.map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
        })
    }

    /// Good replies so far are forgotten, but for the last one.
    pub fn forget(&self) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let last = log.iter().rposition(|reply| reply.failed.is_none());
        let mut place = 0;
        log.retain(|reply| {
            place += 1;
            reply.failed.is_some() || Some(place - 1) == last
        });
    }

    /// The errors of calls that failed.
    pub fn failed(&self) -> Vec<String> {
        self.with(|log| log.iter().filter_map(|reply| reply.failed.clone()).collect())
    }
}

async fn call(client: AsyncClient, name: String, log: Arc<Mutex<Vec<Reply>>>) {
    let asked = Instant::now();
    let body = Bytes::from_static(&[7; 64]);
    let called = client.call(Invocation::new(&name, "echo").body(body).within(DEADLINE)).await;
    let failed = called.err().map(|error| error.to_string());
    let reply = Reply { asked, ended: Instant::now(), failed };
    log.lock().unwrap_or_else(PoisonError::into_inner).push(reply);
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(ticks) = self.ticks.take() {
            // A panic there has been printed already.
            let _ = ticks.join();
        }
    }
}
