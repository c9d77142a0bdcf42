//! Stubs of tonic over our channel lose nothing while the primary's node is killed; beside them the
//! same stubs over tonic's own `balance_list`, whose servers are killed in the same rhythm.
//!
//! The rhythm is counted in calls, so that a busy machine changes no part of it but its length.

use std::time::Duration;

use harness::cluster::{Cluster, Plan};
use harness::grpc::{self, At, GROUP, Server, Serves, Stub, WorkClient};
use harness::{Experiment, Outcome, Run};
use rustix::process::Signal;
use serde_json::{Value, json};
use steadfast::{AsyncClient, Node};
use tokio::runtime::Runtime;
use tonic::transport::Channel;

mod load;

use load::{Load, Tally};

/// Threads of the runtime that makes the calls.
const WORKERS: usize = 2;

/// Servers of tonic alone: as many as the group has replicas.
const SERVERS: usize = 3;

/// Stubs over our channel while the primary's node is killed, beside tonic's `balance_list`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Calls a second by each of both, each begun when it is due.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    hz: u32,
    /// How often the primary's node is killed, and with it one of tonic's servers.
    #[arg(long, default_value_t = 5)]
    kills: usize,
    /// Calls for which they are away before they are started again.
    #[arg(long, default_value_t = 2000)]
    away: u64,
    /// Calls that are answered before the next kill.
    #[arg(long, default_value_t = 1000)]
    between: u64,
    /// A call's deadline, in milliseconds.
    #[arg(long, default_value_t = 500)]
    deadline_ms: u64,
    /// Bytes of a call's text.
    #[arg(long, default_value_t = 1024)]
    size: usize,
}

/// Everything that is called, and what calls it.
struct Stage {
    cluster: Cluster,
    servers: Vec<Option<Server>>,
    ours: Load,
    theirs: Load,
}

impl Experiment for Options {
    const NAME: &'static str = "stubs";
    // A deadline that no machine is too busy for: whether calls are lost is asked, not how quickly.
    const SMOKE: &'static str =
        "--hz 200 --kills 1 --away 100 --between 50 --deadline-ms 30000 --size 64";

    fn run(&self, run: &Run) -> Outcome<()> {
        let runtime = grpc::runtime(WORKERS)?;
        let mut stage = self.start(&runtime)?;
        run.begin(&format!(
            "3 nodes, 3 replicas; {SERVERS} servers of tonic; {} calls a second by each, {} bytes, \
             deadline {} ms; a kill takes the primary's node and a server away for {} calls",
            self.hz, self.size, self.deadline_ms, self.away
        ));
        let table = run.table(
            "kill=number:4, our channel: failed=ours/failed:20, gap ms=ours/gap_ms:8.1, \
             balance_list: failed=theirs/failed:22, gap ms=theirs/gap_ms:8.1",
        );
        for number in 1..=self.kills {
            let mut line = self.strike(&mut stage, number)?;
            line["number"] = json!(number);
            table.row(&line);
        }
        let native = WorkClient::new(&stage.cluster.connect()?, GROUP);
        let (ours, theirs) = (stage.ours.finish(&runtime)?, stage.theirs.finish(&runtime)?);
        let swaps = native.swaps()?;
        let last = native.swap(String::new())?.parse()?;
        self.report(run, ("steadfast", "stub over our channel"), &ours)?;
        self.report(run, ("tonic", "stub over balance_list"), &theirs)?;
        ours.lost_nothing(swaps, last)?;
        let (kills, made) = (self.kills, ours.made);
        let line = json!({
            "peer": "steadfast", "measure": "stubs, exactly once", "kills": kills, "made": made,
            "executed": swaps,
        });
        run.tell(&line, || {
            format!("{made} calls made, answered, and executed exactly once, over {kills} kills")
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

impl Options {
    /// Starts all, and waits until calls are answered by both.
    fn start(&self, runtime: &Runtime) -> Outcome<Stage> {
        let cluster = Cluster::start(Plan::of(3, 3, &[GROUP]))?;
        let server = || Server::start(Self::NAME, At::free()?, &Serves::Echo);
        let servers = (0..SERVERS).map(|_| server()).collect::<Outcome<Vec<Server>>>()?;
        let endpoints = servers.iter().map(|it| it.at.endpoint()).collect::<Outcome<Vec<_>>>()?;
        let deadline = Duration::from_millis(self.deadline_ms);
        let client = runtime.block_on(AsyncClient::connect(cluster.clients()))?;
        let _within = runtime.enter();
        let ours = Stub::new(gateway::Channel::new(&client, GROUP)?, deadline);
        let theirs = Stub::new(Channel::balance_list(endpoints.into_iter()), deadline);
        let ours = Load::start(runtime, self.hz, self.size, ours);
        let theirs = Load::start(runtime, self.hz, self.size, theirs);
        ours.wait_for_answers(self.between)?;
        theirs.wait_for_answers(self.between)?;
        Ok(Stage { cluster, servers: servers.into_iter().map(Some).collect(), ours, theirs })
    }

    /// One kill, until all are back and calls are answered again.
    fn strike(&self, stage: &mut Stage, number: usize) -> Outcome<Value> {
        let Stage { cluster, servers, ours, theirs } = stage;
        let view = cluster.view(GROUP);
        let node = view.primary.ok_or("the group has no primary")?;
        let place = number % SERVERS;
        let before = [ours.mark(), theirs.mark()];
        let at = servers[place].take().ok_or("this server does not run")?.at.clone();
        cluster.signal(node, Signal::KILL)?;
        ours.wait_for_calls(self.away)?;
        theirs.wait_for_calls(self.away)?;
        cluster.wait("the next view", |cluster| cluster.view(GROUP).number > view.number)?;
        cluster.start_node(node)?;
        servers[place] = Some(Server::start(Self::NAME, at, &Serves::Echo)?);
        cluster.wait_until_whole()?;
        ours.wait_for_answers(self.between)?;
        theirs.wait_for_answers(self.between)?;
        let [ours, theirs] = [ours.since(&before[0]), theirs.since(&before[1])];
        Ok(json!({"measure": "stubs, kill", "node": node.0, "ours": ours, "theirs": theirs}))
    }

    fn report(&self, run: &Run, (peer, way): (&str, &str), tally: &Tally) -> Outcome<()> {
        let summary = tally.times.summary().ok_or("no call was answered")?;
        let mut line = summary.json(&json!({
            "peer": peer, "measure": "stubs", "way": way, "kills": self.kills, "hz": self.hz,
            "size": self.size, "away": self.away, "deadline_ms": self.deadline_ms,
        }));
        line["made"] = json!(tally.made);
        line["failed"] = json!(tally.failed_calls());
        line["failed_as"] = json!(tally.failed);
        run.tell(&line, || {
            format!(
                "{way}: {} calls made, {} answered (p50 {:.0} µs, p99 {:.0}, worst {:.0}), {} \
                 failed{}",
                tally.made,
                summary.n,
                summary.p50,
                summary.p99,
                summary.max,
                tally.failed_calls(),
                tally.reasons(),
            )
        });
        Ok(())
    }
}
