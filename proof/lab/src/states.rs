//! Large states on their way to a replica that returns, while the group is called.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use harness::cluster::{Cluster, Plan, wall};
use harness::echo::{ECHO, Echo, Handler};
use harness::figures::{Times, median_and_worst};
use harness::protect::Protect;
use harness::{Experiment, Outcome, Run, bail};
use node::{EventKind, Node};
use rustix::process::Signal;
use serde_json::json;
use steadfast::{
    BoxError, Call, Client, Context, HostOptions, Invocation, NodeId, Service, ServiceOutcome,
};

/// The groups are called so, with the mebibytes of their states behind it.
const PREFIX: &str = "large-";

/// Bytes of a call.
const SIZE: usize = 64;
const DEADLINE: Duration = Duration::from_secs(30);

/// Between two calls that are due.
const PERIOD: Duration = Duration::from_millis(1);

/// Large states on their way to a replica that returns, while the group is called.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Mebibytes of the states, each in a cluster of its own.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 256, 1_024])]
    mib: Vec<usize>,
    /// Returns of the replica.
    #[arg(long, default_value_t = 5)]
    returns: usize,
    /// Seconds of calls before each.
    #[arg(long, default_value_t = 5.0)]
    before: f64,
    /// The parts that are protected: by TLS the states are, too.
    #[arg(long, value_enum, default_value_t)]
    protect: Protect,
}

/// A service that echoes, with a state of so many bytes.
struct Large {
    state: Vec<u8>,
    echo: Echo,
}

impl Service for Large {
    fn call(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome {
        let place = self.state.len() / 2;
        self.state[place] = self.state[place].wrapping_add(1);
        self.echo.handle(context, call)
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(self.state.clone())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        self.state.clear();
        self.state.extend_from_slice(state);
        Ok(())
    }
}

/// One return of the replica.
struct Return {
    /// Seconds from the begin of the transfer until the service has the state.
    seconds: f64,
    before: Times,
    during: Times,
    /// How many states came by streams.
    streams: u64,
}

impl Experiment for Options {
    const NAME: &'static str = "states";
    const SMOKE: &'static str = "--mib 1 --returns 1 --before 0.1";

    fn run(&self, run: &Run) -> Outcome<()> {
        run.begin(&format!(
            "a group of 3, of which one returns while it is called with {SIZE} bytes, one each \
             millisecond; {} returns, {} s of calls before each; protected: {:?}",
            self.returns, self.before, self.protect
        ));
        let table = run.table(
            "mib:6, seconds:9.3, worst=worst_seconds:9.3, mb_per_s:9.0, streams:8, \
             p99.before=before_p99_ms:11.3, p99.during=during_p99_ms:11.3, \
             max.before=before_max_ms:11.2, max.during=during_max_ms:11.2, calls.during=calls:13",
        );
        for &mib in &self.mib {
            let group: &'static str = format!("{PREFIX}{mib}").leak();
            let plan = Plan { protect: self.protect, ..Plan::of(3, 3, &[group]) };
            let mut cluster = Cluster::start(plan)?;
            let mut returns = Vec::new();
            for _ in 0..self.returns {
                returns.push(self.returning(&mut cluster, group)?);
            }
            let times = returns.iter().map(|it| it.seconds).collect();
            let (seconds, worst) = median_and_worst(times).ok_or("no returns")?;
            let streams: u64 = returns.iter().map(|it| it.streams).sum();
            let (mut before, mut during) = (Times::default(), Times::default());
            for it in returns {
                before.extend(it.before);
                during.extend(it.during);
            }
            let (before, during) = (before.summary().ok_or("no calls")?, during.summary());
            let during = during.ok_or("no call fell into a transfer")?;
            table.row(&json!({
                "peer": "steadfast", "measure": "states", "mib": mib, "returns": self.returns,
                "seconds": seconds, "worst_seconds": worst, "streams": streams,
                "mb_per_s": (mib << 20) as f64 / 1e6 / seconds, "calls": during.n,
                "before_p99_ms": before.p99 / 1e3, "during_p99_ms": during.p99 / 1e3,
                "before_max_ms": before.max / 1e3, "during_max_ms": during.max / 1e3,
            }));
        }
        Ok(())
    }

    fn host(node: &Node, group: &str) -> Outcome<bool> {
        let Some(mib) = group.strip_prefix(PREFIX) else { return Ok(false) };
        let bytes = mib.parse::<usize>()? << 20;
        // Touched: a page of zeros that nobody has written takes no memory, and no time.
        let make = move || Large { state: vec![7; bytes], echo: Echo };
        node.host(group, HostOptions::default(), make)?;
        Ok(true)
    }
}

impl Options {
    /// The last replica is killed and returns, while the first is called.
    fn returning(&self, cluster: &mut Cluster, group: &'static str) -> Outcome<Return> {
        cluster.wait_until_well()?;
        let primary = cluster.view(group).primary.ok_or("the group has no primary")?;
        let away = (1..=3).map(NodeId).find(|id| *id != primary).ok_or("three nodes")?;
        cluster.signal(away, Signal::KILL)?;
        cluster.wait_for_ring_without(Some(away))?;
        let client = cluster.connect()?;
        let over = AtomicBool::new(false);
        let (sender, calls) = channel();
        let tell = |it| sender.send(it).is_ok();
        thread::scope(|scope| {
            let caller = scope.spawn(|| call(&client, group, &over, tell));
            let ended = self.measure(cluster, away, &calls);
            over.store(true, Ordering::Relaxed);
            let called = caller.join().map_err(|_| "the caller has panicked")?;
            let ended = ended?;
            Ok(called.map(|()| ended)?)
        })
    }

    fn measure(
        &self,
        cluster: &mut Cluster,
        away: NodeId,
        calls: &Receiver<(u64, Duration)>,
    ) -> Outcome<Return> {
        let until = wall() + (self.before * 1e9) as u64;
        let mut made = Vec::new();
        while made.last().is_none_or(|(due, _)| *due < until) {
            made.push(calls.recv_timeout(DEADLINE)?);
        }
        cluster.take_events();
        let restarted = wall();
        cluster.start_node(away)?;
        cluster.wait_until_well()?;
        let events = cluster.take_events();
        let last = |wanted: fn(&EventKind) -> bool| {
            events.iter().filter(|event| wanted(&event.kind)).map(|event| event.time).next_back()
        };
        let begun = last(|kind| matches!(kind, EventKind::TransferStarted { .. }));
        let ended = last(|kind| matches!(kind, EventKind::Transferred { .. }));
        let (Some(begun), Some(ended)) = (begun, ended) else { bail!("no state was transferred") };
        let (mut before, mut during) = (Times::default(), Times::default());
        made.extend(calls.try_iter());
        for (due, took) in made {
            if due + took.as_nanos() as u64 >= begun && due <= ended {
                during.push(took);
            } else if due < restarted {
                before.push(took);
            }
        }
        let streams = cluster.node(away)?.status()?.counters.states_fetched;
        let seconds = ended.saturating_sub(begun) as f64 / 1e9;
        Ok(Return { seconds, before, during, streams })
    }
}

/// Calls on time, and tells when each was due and how long it took from then on.
fn call(
    client: &Client,
    group: &str,
    over: &AtomicBool,
    tell: impl Fn((u64, Duration)) -> bool,
) -> Result<(), String> {
    let body = Bytes::from_static(&[7; SIZE]);
    let (mut due, mut clock) = (Instant::now(), wall());
    while !over.load(Ordering::Relaxed) {
        let echo = Invocation::new(group, ECHO).body(body.clone()).within(DEADLINE);
        client.call(echo).map_err(|error| error.to_string())?;
        if !tell((clock, due.elapsed())) {
            break;
        }
        due += PERIOD;
        clock += PERIOD.as_nanos() as u64;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}
