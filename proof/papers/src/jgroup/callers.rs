//! The clients: processes with some threads each. Every thread is a client that calls as fast as it
//! is answered, and records its calls.

use std::io::{Read, Write, stdin, stdout};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use steadfast::events::ClientEvent;
use steadfast::{BoxError, Call, Client, Context, Invocation, NodeId, Service, ServiceOutcome};

use super::way::Way;
use harness::Outcome;
use harness::cluster::wall;
use harness::echo::ECHO;
use harness::process::{Process, Role};

/// The experiment's name.
pub const EXPERIMENT: &str = "jgroup";

/// The group's name: stateless, and its replicas name their nodes.
pub const GROUP: &str = "stateless-named";

/// Bytes of a request and of its reply, as in the paper.
pub const SIZE: usize = 1_000;

/// Processes with clients, as many as the paper had machines for them.
pub const PROCESSES: usize = 7;

/// Far longer than any fail-over.
const DEADLINE: Duration = Duration::from_secs(5);

/// The line that a process of clients writes when each of them has been answered. When its input
/// ends, it writes a [`Seen`] of each in JSON.
const CALLING: &str = "calling";

/// Gives back what it gets, with its node's number in front.
pub struct Named(pub NodeId);

impl Service for Named {
    fn call(&mut self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        let mut body = call.body.to_vec();
        if let Some(first) = body.first_chunk_mut() {
            *first = self.0.0.to_le_bytes();
        }
        ServiceOutcome::Ok(body.into())
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _: &[u8]) -> Result<(), BoxError> {
        Ok(())
    }
}

/// An answered call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// When it began, in microseconds of the run.
    pub at: u64,
    /// Microseconds to its reply.
    pub took: u64,
    /// The node that answered.
    pub by: NodeId,
}

/// The calls of one client. Times are microseconds of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    pub made: Vec<Made>,
    /// When a call left this address for another.
    pub moved: Vec<(u64, SocketAddr)>,
    /// When it knew which view.
    pub views: Vec<(u64, u64)>,
    pub failed: Vec<String>,
}

/// The orders of a process of clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    count: usize,
    way: Way,
    /// The period of a periodic refresh.
    period: Duration,
    /// The run's beginning, by the wall clock.
    began: u64,
    nodes: Vec<SocketAddr>,
}

/// The life of a process of clients: until the end of its input.
pub fn live(orders: &Orders) -> Outcome<()> {
    let policy = orders.way.policy(orders.period);
    let stop = AtomicBool::new(false);
    let clients = (0..orders.count).map(|_| {
        let client = Client::builder().policy(policy).connect(&orders.nodes)?;
        client
            .call(Invocation::new(GROUP, ECHO).body(Bytes::from(vec![0; SIZE])).within(DEADLINE))?;
        Ok(client)
    });
    let clients: Vec<Client> = clients.collect::<Outcome<_>>()?;
    writeln!(stdout(), "{CALLING}")?;
    let seen: Vec<Seen> = thread::scope(|scope| {
        let stopped = &stop;
        let calls = |client| scope.spawn(move || call(client, orders.began, stopped));
        let threads: Vec<_> = clients.iter().map(calls).collect();
        // The input has ended, whether this reads bytes or an error.
        let _ = stdin().read(&mut [0]);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|it| it.join().expect("a client does not panic")).collect()
    });
    let mut out = stdout().lock();
    serde_json::to_writer(&mut out, &seen)?;
    Ok(out.flush()?)
}

/// One client: a call after the other.
fn call(client: &Client, began: u64, stop: &AtomicBool) -> Seen {
    let body = Bytes::from(vec![0; SIZE]);
    let mut seen = Seen::default();
    while !stop.load(Ordering::Relaxed) {
        let (at, start) = (wall().saturating_sub(began) / 1_000, Instant::now());
        let reply = client.call(Invocation::new(GROUP, ECHO).body(body.clone()).within(DEADLINE));
        let took = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        match reply.as_ref().map(|reply| reply.first_chunk()) {
            Ok(Some(by)) => seen.made.push(Made { at, took, by: NodeId(u32::from_le_bytes(*by)) }),
            Ok(None) => seen.failed.push("a reply without a name".into()),
            Err(error) => seen.failed.push(error.to_string()),
        }
    }
    for (time, event) in client.take_events() {
        let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).saturating_sub(began) / 1_000;
        match event {
            ClientEvent::FailedOver { from, .. } => seen.moved.push((at, from)),
            ClientEvent::View { view, .. } => seen.views.push((at, view.0)),
            _ => {}
        }
    }
    seen
}

/// All processes of clients of a run.
pub struct Crowd(Vec<Process>);

impl Crowd {
    /// Starts so many clients, and waits until each was answered once.
    pub fn start(
        nodes: &[SocketAddr],
        way: Way,
        clients: usize,
        period: Duration,
        began: u64,
    ) -> Outcome<Crowd> {
        let mut crowd = Crowd(Vec::new());
        for place in 0..PROCESSES.min(clients) {
            let count = (clients + PROCESSES - 1 - place) / PROCESSES;
            let orders = Orders { count, way, period, began, nodes: nodes.into() };
            crowd.0.push(Process::start(&Role::own(EXPERIMENT, orders)?)?);
        }
        for process in &mut crowd.0 {
            if process.line()?.trim() != CALLING {
                return Err("clients could not begin".into());
            }
        }
        Ok(crowd)
    }

    /// The calls of all clients, once they have ended.
    pub fn finish(mut self) -> Outcome<Vec<Seen>> {
        let mut all = Vec::new();
        self.0.iter_mut().for_each(Process::end_input);
        for mut process in self.0 {
            let output = process.take_output().ok_or("nobody else reads what it says")?;
            all.extend(serde_json::from_reader::<_, Vec<Seen>>(output)?);
            process.wait()?;
        }
        Ok(all)
    }
}
