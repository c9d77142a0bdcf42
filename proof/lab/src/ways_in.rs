//! The latency of one call at a time by each way in, beside tonic alone.
//!
//! All ways take turns in small blocks, as in `latency`, and call the same group. All stubs are the
//! same stub. A process of tonic alone and a gateway have the same runtime, so that the difference
//! between them is the gateway's work and its call.

use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use harness::cluster::{Cluster, Plan};
use harness::figures::{Summary, Times};
use harness::grpc::{self, At, GROUP, Server, Serves, Stub, WorkAsyncClient, WorkClient};
use harness::{Experiment, Outcome, Run, ensure};
use serde_json::{Value, json};
use steadfast::{AsyncClient, Node};
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::client::GrpcService;

/// Calls of one way before it is the next one's turn.
const BLOCK: usize = 100;

/// Rounds that do not count: they find cold caches and connections that are not made yet.
const WARM: usize = 2;

/// Far longer than a call takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// The ways that the others are compared with, by their places.
const TONIC: usize = 0;
const NATIVE: usize = 1;

/// Latency of a call by the client, by a stub over our channel, and by gateways, beside tonic alone.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Calls by each way that are measured.
    #[arg(long, default_value_t = 10_000)]
    calls: usize,
    /// Bytes of the text that a call brings, and of the one that it takes away.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Threads of the caller's tokio runtime beside the calling thread; 0: that one does all.
    #[arg(long, default_value_t = 0)]
    workers: usize,
}

/// So many calls by one way, one after the other.
type Block<'a> = Box<dyn FnMut(usize, &mut Times) -> Outcome<()> + 'a>;

/// A way in, with the times of its calls.
struct Way<'a> {
    name: &'static str,
    title: &'static str,
    block: Block<'a>,
    times: Times,
}

impl<'a> Way<'a> {
    fn new(name: &'static str, title: &'static str, block: Block<'a>) -> Way<'a> {
        Way { name, title, block, times: Times::default() }
    }
}

/// The processes that serve.
struct Servers {
    echo: Server,
    beside: Server,
    beside_unix: Server,
    on_node: Server,
}

impl Experiment for Options {
    const NAME: &'static str = "ways-in";
    const SMOKE: &'static str = "--calls 10";

    fn run(&self, run: &Run) -> Outcome<()> {
        let cluster = Cluster::start(Plan::of(3, 3, &[GROUP]))?;
        let servers = Servers::start(&cluster)?;
        let native = WorkClient::new(&cluster.connect()?, GROUP).within(DEADLINE);
        let runtime = grpc::runtime(self.workers)?;
        let mut ways = self.ways(&runtime, &native, &cluster.clients(), &servers)?;
        // From now on each call takes away the text that another has brought.
        native.swap("x".repeat(self.size))?;
        let block = run.sized(BLOCK, BLOCK / 25);
        let rounds = WARM + self.calls.div_ceil(block);
        for round in 0..rounds {
            for way in &mut ways {
                let mut cold = Times::default();
                let times = if round < WARM { &mut cold } else { &mut way.times };
                (way.block)(block, times)?;
            }
        }
        let (made, swaps) = (1 + rounds * block * (ways.len() - 1), native.swaps()?);
        ensure!(
            swaps == made as u64,
            "{made} calls were made and answered, and {swaps} were executed: a call was lost, or \
             executed twice"
        );
        self.report(run, &ways)
    }

    fn host(node: &Node, group: &str) -> Outcome<bool> {
        grpc::host(node, group)
    }

    fn live(orders: Value) -> Outcome<()> {
        grpc::live(orders)
    }
}

impl Servers {
    fn start(cluster: &Cluster) -> Outcome<Servers> {
        let start = |at, serves| Server::start(Options::NAME, at, &serves);
        let nodes = cluster.clients();
        let beside = Serves::Gateway { nodes, of: None };
        let primary = cluster.view(GROUP).primary.ok_or("the group has no primary")?;
        let nodes = cluster.client(primary).into_iter().collect();
        let unix = At::Unix(cluster.folder().join("gateway.sock"));
        Ok(Servers {
            echo: start(At::free()?, Serves::Echo)?,
            beside: start(At::free()?, beside.clone())?,
            beside_unix: start(unix, beside)?,
            on_node: start(At::free()?, Serves::Gateway { nodes, of: Some(primary) })?,
        })
    }
}

impl Options {
    fn ways<'a>(
        &self,
        runtime: &'a Runtime,
        native: &'a WorkClient,
        nodes: &[SocketAddr],
        servers: &Servers,
    ) -> Outcome<Vec<Way<'a>>> {
        let text = "x".repeat(self.size);
        let client = runtime.block_on(AsyncClient::connect(nodes))?;
        let connect = |server: &Server| {
            let connecting = async { server.at.endpoint()?.connect().await.map_err(Into::into) };
            let channel: Outcome<_> = runtime.block_on(connecting);
            Ok::<_, Box<dyn Error>>(Stub::new(channel?, DEADLINE))
        };
        let channel = Stub::new(gateway::Channel::new(&client, GROUP)?, DEADLINE);
        let keyed = connect(&servers.beside)?.with_keys()?;
        let asynchronous = WorkAsyncClient::new(&client, GROUP).within(DEADLINE);
        let by_stub = |server| Ok::<_, Box<dyn Error>>(by_stub(runtime, connect(server)?, &text));
        Ok(vec![
            Way::new("tonic", "tonic alone", by_stub(&servers.echo)?),
            Way::new("blocking", "native, blocking", blocking(native, &text)),
            Way::new("async", "native, async", by_async(runtime, asynchronous, &text)),
            Way::new("channel", "stub over our channel", self::by_stub(runtime, channel, &text)),
            Way::new("beside", "gateway beside, TCP", by_stub(&servers.beside)?),
            Way::new("beside-keyed", "the same, with keys", self::by_stub(runtime, keyed, &text)),
            Way::new("beside-unix", "gateway beside, Unix", by_stub(&servers.beside_unix)?),
            Way::new("node", "gateway of the primary", by_stub(&servers.on_node)?),
        ])
    }

    fn report(&self, run: &Run, ways: &[Way<'_>]) -> Outcome<()> {
        let summaries: Option<Vec<Summary>> = ways.iter().map(|way| way.times.summary()).collect();
        let summaries = summaries.ok_or("nothing was measured")?;
        run.begin(&format!(
            "all processes are placed by the scheduler\n3 nodes, 3 replicas, semi-active, majority; \
             a call brings {0} bytes and takes away {0}; one call at a time; {1} threads of the \
             caller's runtime; times in µs; both: tonic alone and native, blocking, together",
            self.size, self.workers
        ));
        let table = run.table(
            "=title:<22, n:8, min=min_us:8.1, p50=p50_us:8.1, p99=p99_us:8.1, max=max_us:9.0, \
             p50 / tonic's=p50_to_tonic:14.2, / native's=p50_to_native:11.2, / both=p50_to_both:8.2, \
             p99 / both=p99_to_both:12.2",
        );
        for (way, summary) in ways.iter().zip(&summaries) {
            let mut line = summary.json(&json!({
                "peer": if way.name == "tonic" { "tonic" } else { "steadfast" },
                "measure": "way in", "way": way.name, "title": way.title, "size": self.size,
                "workers": self.workers,
            }));
            let ratios = Ratios::of(summary, &summaries[TONIC], &summaries[NATIVE]);
            line["p50_to_tonic"] = json!(ratios.tonic);
            line["p50_to_native"] = json!(ratios.native);
            line["p50_to_both"] = json!(ratios.both);
            line["p99_to_both"] = json!(ratios.both_p99);
            table.row(&line);
        }
        let beside = ways.iter().zip(&summaries).filter(|(way, _)| way.name.starts_with("beside"));
        for (way, summary) in beside {
            let ratios = Ratios::of(summary, &summaries[TONIC], &summaries[NATIVE]);
            let holds = ratios.both <= 1.0;
            let line = json!({
                "measure": "way in, bound", "way": way.name, "p50_to_both": ratios.both,
                "holds": holds,
            });
            let verdict = if holds { "holds" } else { "does not hold" };
            run.tell(&line, || {
                format!(
                    "{}: p50 at most that of tonic alone and native together: {verdict} ({:.2})",
                    way.title, ratios.both
                )
            });
        }
        Ok(())
    }
}

/// A way's median to others of the same run, and its p99 to theirs together.
struct Ratios {
    tonic: f64,
    native: f64,
    both: f64,
    both_p99: f64,
}

impl Ratios {
    fn of(way: &Summary, tonic: &Summary, native: &Summary) -> Ratios {
        let ratio = |one: f64, other: f64| (one / other * 1000.0).round() / 1000.0;
        Ratios {
            tonic: ratio(way.p50, tonic.p50),
            native: ratio(way.p50, native.p50),
            both: ratio(way.p50, tonic.p50 + native.p50),
            both_p99: ratio(way.p99, tonic.p99 + native.p99),
        }
    }
}

fn blocking<'a>(client: &'a WorkClient, text: &str) -> Block<'a> {
    let text = text.to_owned();
    Box::new(move |count, times| {
        times.measure(count, || returned(&client.swap(text.clone())?, &text))
    })
}

fn by_async<'a>(runtime: &'a Runtime, client: WorkAsyncClient, text: &str) -> Block<'a> {
    let text = text.to_owned();
    in_turn(runtime, async move || returned(&client.swap(text.clone()).await?, &text))
}

fn by_stub<'a, T>(runtime: &'a Runtime, mut stub: Stub<T>, text: &str) -> Block<'a>
where
    T: GrpcService<Body, ResponseBody = Body> + 'a,
{
    let text = text.to_owned();
    in_turn(runtime, async move || returned(&stub.swap(text.clone()).await?, &text))
}

/// Calls of async code, one after the other.
fn in_turn<'a>(runtime: &'a Runtime, mut call: impl AsyncFnMut() -> Outcome<()> + 'a) -> Block<'a> {
    Box::new(move |count, times| {
        runtime.block_on(async {
            for _ in 0..count {
                let start = Instant::now();
                call().await?;
                times.push(start.elapsed());
            }
            Ok(())
        })
    })
}

fn returned(text: &str, kept: &str) -> Outcome<()> {
    ensure!(text == kept, "the call has taken away another text than was brought");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_compared_with_both_together() {
        let summary = |p50: f64, p99: f64| {
            let mut times = Times::default();
            times.push(Duration::ZERO);
            Summary { p50, p99, ..times.summary().expect("one time") }
        };
        let (tonic, native) = (summary(100.0, 200.0), summary(150.0, 300.0));
        let ratios = Ratios::of(&summary(300.0, 400.0), &tonic, &native);
        assert_eq!([ratios.tonic, ratios.native, ratios.both], [3.0, 2.0, 1.2]);
        assert_eq!(ratios.both_p99, 0.8);
    }
}
