//! A service goes through versions of its state by `deploy`, while clients call it; then a version
//! that does not fit is refused. See docs/changing.md.
//!
//! Each client has an account, and knows its balance: a call that is lost, executed twice, or meets
//! another state is seen by its next answer.

mod services;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use harness::cluster::{Cluster, Plan};
use harness::process::Role;
use harness::wait::until;
use harness::{Experiment, Outcome, Run, bail, machine};
use manager::cluster_state::Deployment;
use serde_json::{Value, json};
use steadfast::status::DeploymentStatus;
use steadfast::{Client, ManagerKnobs, NodeId};

use services::{AccountsClient, Version};

const GROUP: &str = "accounts";

/// A version is everywhere within this.
const TIMEOUT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// A call that takes longer has failed.
const DEADLINE: Duration = Duration::from_secs(10);

/// A service changes its state's type from version to version, while clients call it.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Clients, each with an account of its own.
    #[arg(long, default_value_t = 8)]
    clients: u32,
    /// Calls a second of all clients together.
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// Seconds of calls between two versions.
    #[arg(long, default_value_t = 2.0)]
    pause: f64,
    /// The version that does not fit is to be refused within so many seconds.
    #[arg(long, default_value_t = 5.0)]
    refused_within: f64,
}

/// The calls of all clients.
#[derive(Default)]
struct Tally {
    over: AtomicBool,
    answered: AtomicU64,
    /// Microseconds of the longest call since this was taken last.
    longest: AtomicU64,
}

impl Experiment for Options {
    const NAME: &'static str = "versions";
    const SMOKE: &'static str = "--clients 2 --rate 200 --pause 0.2 --refused-within 20";

    fn run(&self, run: &Run) -> Outcome<()> {
        eprintln!("on {}; {} calls a second", machine::description(), self.rate);
        let cluster = Cluster::start(Plan {
            manager: Some(ManagerKnobs { on: true, ..ManagerKnobs::default() }),
            ..Plan::of(3, 0, &[])
        })?;
        // Nodes take a moment to tell of themselves.
        until(TIMEOUT, LOOK, || {
            Ok(deploy(&cluster, Version::First).map_err(|error| error.to_string()))
        })?;
        settled(&cluster)?;
        let client = cluster.connect()?;
        let tally = Tally::default();
        thread::scope(|scope| {
            let callers: Vec<_> = (0..self.clients)
                .map(|account| {
                    let (client, tally) = (&client, &tally);
                    // An error of an experiment stays in its thread; its text does not.
                    scope.spawn(move || {
                        self.call(client, account, tally).map_err(|error| error.to_string())
                    })
                })
                .collect();
            let ended = self.change(run, &cluster, &tally);
            tally.over.store(true, Ordering::Relaxed);
            let called = callers.into_iter().map(|it| it.join().expect("it does not panic"));
            called.collect::<Result<Vec<()>, String>>()?;
            ended
        })
    }

    /// A replica of a version.
    fn live(orders: Value) -> Outcome<()> {
        serde_json::from_value::<Version>(orders)?.serve()
    }
}

impl Options {
    fn change(&self, run: &Run, cluster: &Cluster, tally: &Tally) -> Outcome<()> {
        for version in Version::FITTING {
            thread::sleep(Duration::from_secs_f64(self.pause));
            tally.longest.store(0, Ordering::Relaxed);
            let began = Instant::now();
            deploy(cluster, version)?;
            settled(cluster)?;
            self.tell(run, version, began.elapsed(), tally, "everywhere");
        }
        thread::sleep(Duration::from_secs_f64(self.pause));
        tally.longest.store(0, Ordering::Relaxed);
        let began = Instant::now();
        deploy(cluster, Version::Misfit)?;
        let reason = until(TIMEOUT, LOOK, || {
            Ok(status(cluster)?
                .and_then(|it| it.undone)
                .map(|undone| serde_json::to_string(&undone).expect("it is plain data"))
                .ok_or_else(|| "the version that does not fit is not refused".to_owned()))
        })?;
        let took = began.elapsed();
        self.tell(run, Version::Misfit, took, tally, &format!("refused: {reason}"));
        if !reason.contains("owner") {
            bail!("the reason does not name the field `owner`: {reason}");
        }
        if took.as_secs_f64() > self.refused_within {
            bail!("it was refused after {took:?}, at most {} s are permitted", self.refused_within);
        }
        thread::sleep(Duration::from_secs_f64(self.pause));
        settled(cluster)?;
        Ok(())
    }

    fn tell(&self, run: &Run, version: Version, took: Duration, tally: &Tally, what: &str) {
        let answered = tally.answered.load(Ordering::Relaxed);
        let longest = tally.longest.load(Ordering::Relaxed) as f64 / 1e3;
        let took = took.as_secs_f64();
        run.tell(
            &json!({
                "peer": "steadfast", "measure": "versions", "version": version, "seconds": took,
                "longest_ms": longest, "answered": answered, "end": what,
            }),
            || {
                format!(
                    "{version:?}: {what} after {took:.2} s; longest call {longest:.1} ms; {answered} calls \
                     answered, none failed"
                )
            },
        );
    }

    /// Pays one cent at a time, and knows what must be there then.
    fn call(&self, client: &Client, account: u32, tally: &Tally) -> Outcome<()> {
        let accounts = AccountsClient::new(client, GROUP).within(DEADLINE);
        let period = Duration::from_secs_f64(f64::from(self.clients) / f64::from(self.rate));
        let (mut due, mut balance) = (Instant::now(), 0);
        while !tally.over.load(Ordering::Relaxed) {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            due += period;
            let began = Instant::now();
            let told = accounts.pay(account, 1)?;
            balance += 1;
            if told != balance {
                bail!("account {account} has {told} cents, {balance} were paid");
            }
            let took = began.elapsed().as_micros() as u64;
            tally.longest.fetch_max(took, Ordering::Relaxed);
            tally.answered.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn deploy(cluster: &Cluster, version: Version) -> Outcome<()> {
    let command = Role::own(Options::NAME, version)?.command()?;
    cluster.node(NodeId(1))?.deploy(&Deployment::new(GROUP, command, 3), false)?;
    Ok(())
}

fn status(cluster: &Cluster) -> Outcome<Option<DeploymentStatus>> {
    let told = cluster.node(NodeId(1))?.deployments()?;
    Ok(told.deployments.into_iter().find(|it| it.deployment.group == GROUP))
}

/// Waits until all replicas run the program that was deployed, and have the state.
fn settled(cluster: &Cluster) -> Outcome<()> {
    until(TIMEOUT, LOOK, || {
        Ok(match status(cluster)? {
            Some(it) if it.settled && it.upgrade.is_none() => Ok(()),
            Some(it) if it.undone.is_some() => bail!("it was undone: {:?}", it.undone),
            it => Err(format!("the group is not settled: {it:?}")),
        })
    })
}
