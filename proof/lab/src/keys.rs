//! One key is used again and again: for the same call, for other arguments and for another method,
//! while nodes and gateways are killed, and after a pause.
//!
//! The same call must always have the first result, all others must be refused and not be executed.

use std::thread;
use std::time::{Duration, Instant};

use harness::cluster::{Cluster, Plan, wall};
use harness::grpc::{self, At, GROUP, Server, Serves, Stub, WorkClient};
use harness::{Experiment, Outcome, Run, bail, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};
use steadfast::Node;
use tokio::runtime::Runtime;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Status};
use wire::Random;

/// One attempt takes no longer.
const DEADLINE: Duration = Duration::from_secs(5);

/// A use of the key must have its end within this, whatever is killed.
const LONG: Duration = Duration::from_secs(60);

/// During the pause the group has other calls so often: its time goes on by calls.
const BEAT: Duration = Duration::from_secs(10);

/// The call that the key names.
const MINE: &str = "mine";

/// One key is used for the same call and for others, across kills and a pause.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Uses of the key.
    #[arg(long, default_value_t = 1_000)]
    uses: usize,
    /// Kills: of nodes, and after each of a gateway.
    #[arg(long, default_value_t = 10)]
    kills: usize,
    /// The pause in the middle, in seconds.
    #[arg(long, default_value_t = 0)]
    pause: u64,
}

/// How uses of the key ended.
#[derive(Default)]
struct Ends {
    same: usize,
    refused: usize,
    again: usize,
}

struct Trial {
    cluster: Cluster,
    gateways: Vec<(Server, Stub<Channel>)>,
    native: WorkClient,
    runtime: Runtime,
    session: MetadataValue<Ascii>,
    first: Option<String>,
    others: u64,
    ends: Ends,
}

impl Experiment for Options {
    const NAME: &'static str = "keys";
    const SMOKE: &'static str = "--uses 30 --kills 1";

    fn run(&self, run: &Run) -> Outcome<()> {
        let mut trial = Trial::start()?;
        let (until_kill, until_pause) = ((self.uses / (self.kills + 1)).max(1), self.uses / 2);
        for use_of_key in 0..self.uses {
            trial.use_key(use_of_key)?;
            if use_of_key % until_kill == until_kill - 1 {
                trial.strike(use_of_key / until_kill)?;
            }
            if use_of_key == until_pause {
                trial.pause(Duration::from_secs(self.pause))?;
            }
        }
        let (swaps, made) = (trial.native.swaps()?, 1 + trial.others);
        ensure!(
            swaps == made,
            "{made} calls were made, and {swaps} were executed: the key was executed twice, or for \
             another call"
        );
        let Ends { same, refused, again } = trial.ends;
        let line = json!({
            "peer": "steadfast", "measure": "keys", "uses": self.uses, "kills": self.kills,
            "pause_s": self.pause, "same": same, "refused": refused, "attempts_again": again,
        });
        run.tell(&line, || {
            format!(
                "a key was used {} times, across {} kills of nodes and as many of gateways, and a pause of {} s: \
                 {same} times its own call had the first result, {refused} times another was refused; executed once",
                self.uses, self.kills, self.pause
            )
        });
        Ok(())
    }

    fn host(node: &Node, group: &str) -> Outcome<bool> {
        grpc::host(node, group)
    }

    fn live(orders: Value) -> Outcome<()> {
        grpc::live(orders)
    }
}

impl Trial {
    fn start() -> Outcome<Trial> {
        let mut cluster = Cluster::start(Plan::of(3, 3, &[GROUP]))?;
        cluster.wait_until_whole()?;
        let native = WorkClient::new(&cluster.connect()?, GROUP).within(LONG);
        let runtime = grpc::runtime(1)?;
        let session = format!("{:x}", Random::new(wall()).next_u64()).parse()?;
        let (gateways, ends) = (Vec::new(), Ends::default());
        let mut trial =
            Trial { cluster, gateways, native, runtime, session, first: None, others: 0, ends };
        for _ in 0..2 {
            let gateway = trial.gateway()?;
            trial.gateways.push(gateway);
        }
        Ok(trial)
    }

    /// A gateway beside the nodes.
    fn gateway(&self) -> Outcome<(Server, Stub<Channel>)> {
        let serves = Serves::Gateway { nodes: self.cluster.clients(), of: None };
        let server = Server::start(Options::NAME, At::free()?, &serves)?;
        let endpoint = server.at.endpoint()?;
        let channel = self.runtime.block_on(async { endpoint.connect_lazy() });
        Ok((server, Stub::new(channel, DEADLINE)))
    }

    /// The key is used once: every third time for its call, else for others.
    fn use_key(&mut self, use_of_key: usize) -> Outcome<()> {
        let begun = Instant::now();
        let what = use_of_key % 3;
        while begun.elapsed() < LONG {
            let key = (self.session.clone(), 1);
            let count = self.gateways.len();
            let (_, stub) = &mut self.gateways[(use_of_key / 3 + self.ends.again) % count];
            let end = self.runtime.block_on(async {
                match what {
                    0 => stub.swap_as(key, MINE.into()).await,
                    1 => stub.swap_as(key, format!("other {use_of_key}")).await,
                    _ => stub.put_as(key, MINE.into()).await,
                }
            });
            if self.is_over(what == 0, end)? {
                return Ok(());
            }
            self.ends.again += 1;
        }
        bail!("use {use_of_key} of the key had no end within {LONG:?}")
    }

    /// Judges the end of an attempt. False: it is made again.
    fn is_over(&mut self, is_same: bool, end: Result<String, Status>) -> Outcome<bool> {
        match end {
            Ok(result) if is_same => {
                let first = self.first.get_or_insert_with(|| result.clone());
                ensure!(*first == result, "first it was {first}, and now it is {result}");
                self.ends.same += 1;
                Ok(true)
            }
            Ok(result) => bail!("another call with the key was answered: {result}"),
            Err(status) if status.code() == Code::Aborted && !is_same => {
                let executed = status.metadata().get("steadfast-executed");
                let executed = executed.and_then(|it| it.to_str().ok()).unwrap_or("untold");
                ensure!(executed == "no", "another call was executed: {executed}: {status}");
                self.ends.refused += 1;
                Ok(true)
            }
            Err(status) => {
                let passing = [Code::Unavailable, Code::DeadlineExceeded, Code::ResourceExhausted];
                ensure!(passing.contains(&status.code()), "it ended by {status}");
                Ok(false)
            }
        }
    }

    /// The primary's node is killed, and comes back; so does a gateway.
    fn strike(&mut self, time: usize) -> Outcome<()> {
        let primary = self.cluster.view(GROUP).primary.ok_or("the group has no primary")?;
        self.cluster.signal(primary, Signal::KILL)?;
        // In the midst of it.
        self.use_key(3 * time)?;
        self.use_key(3 * time + 1)?;
        self.cluster.start_node(primary)?;
        self.cluster.wait_until_whole()?;
        let at = time % self.gateways.len();
        self.gateways.remove(at);
        let gateway = self.gateway()?;
        self.gateways.push(gateway);
        Ok(())
    }

    /// Time passes, also for the group.
    fn pause(&mut self, pause: Duration) -> Outcome<()> {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            thread::sleep(BEAT.min(until - Instant::now()));
            self.native.swap("beat".into())?;
            self.others += 1;
        }
        Ok(())
    }
}
