//! A semi-active call beside bare round trips.
//!
//! All kinds take turns in small blocks, so that whatever the machine does meanwhile strikes all
//! of them, and their ratio means something on any machine.
//!
//! Most of a round trip is the waking of the other side's processor. The scheduler may put both sides of
//! an echo on one processor, where nobody has to be woken; a cluster of five processes and a client
//! cannot be put so. So the echoes are measured both ways: left to the scheduler, and with one
//! processor for each side, which is what a call is compared with.

use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::json;
use steadfast::{Client, NodeId};

use crate::cluster::{Cluster, Plan, Where};
use crate::echo::{ECHO, EchoProcess, Transport, Waits};
use crate::figures::{Summary, Times};
use crate::protect::Protect;
use crate::{Outcome, machine};

/// Calls of one kind before it is the next one's turn.
const BLOCK: usize = 250;
/// Which of the kinds a call is compared with: TCP between two processors.
const TCP: usize = 1;
const DEADLINE: Duration = Duration::from_secs(5);
/// The pause before a call of sparse traffic.
const SPARSE: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Calls of each kind that are measured.
    #[arg(long, default_value_t = 20_000)]
    calls: usize,
    /// Bytes of request and reply.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Node processes.
    #[arg(long, default_value_t = 5)]
    nodes: u32,
    /// Replicas of the group.
    #[arg(long, default_value_t = 3)]
    replicas: u32,
    /// Further calls of each kind, each after a pause of 200 ms: sparse traffic.
    #[arg(long, default_value_t = 0)]
    sparse: usize,
    /// Measures a second cluster in turns, whose clients talk TLS (`tls`), and whose datagrams are
    /// sealed too (`all`).
    #[arg(long, value_enum, default_value_t = Protect::None)]
    protect: Protect,
    #[command(flatten)]
    at: Where,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
}

/// One kind of round trip, with its times so far.
struct Kind<'a> {
    names: serde_json::Value,
    title: &'static str,
    /// The one processor for this side of it.
    core: Option<usize>,
    round: Box<dyn FnMut() -> Outcome<()> + 'a>,
    times: Times,
    /// Of calls after a pause.
    sparse: Times,
    /// The processes that take part beside this one.
    processes: &'a [u32],
    /// How often a thread of theirs slept and was woken, in all that was measured.
    woken: u64,
}

impl<'a> Kind<'a> {
    fn new(
        title: &'static str,
        names: serde_json::Value,
        round: Box<dyn FnMut() -> Outcome<()> + 'a>,
    ) -> Self {
        let (times, sparse) = Default::default();
        Kind { names, title, core: None, round, times, sparse, processes: &[], woken: 0 }
    }

    fn turn(&mut self, keep: bool) -> Outcome<()> {
        match self.core {
            Some(core) => machine::while_on(core, || self.block(keep))?,
            None => self.block(keep),
        }
    }

    /// One round trip, after a pause.
    fn once(&mut self) -> Outcome<()> {
        let start = Instant::now();
        match self.core {
            Some(core) => machine::while_on(core, || (self.round)())??,
            None => (self.round)()?,
        }
        self.sparse.push(start.elapsed());
        Ok(())
    }

    fn block(&mut self, keep: bool) -> Outcome<()> {
        let before = machine::wake_ups(self.processes);
        for _ in 0..BLOCK {
            let start = Instant::now();
            (self.round)()?;
            if keep {
                self.times.push(start.elapsed());
            }
        }
        if keep {
            self.woken += machine::wake_ups(self.processes) - before;
        }
        Ok(())
    }
}

/// What is called: title, group.
const GROUPS: [(&str, &str); 4] = [
    ("call, agreed", "agreed"),
    ("call, held by majority", "inline"),
    ("call, safe", "safe"),
    ("the same on a thread", "thread"),
];

pub fn run(options: &Options) -> Outcome<()> {
    let machine = machine::description();
    let groups = &["agreed", "inline", "safe", "thread"];
    if options.at.hosts && options.protect != Protect::None {
        return Err(
            "--protect measures two clusters in turns, and one thread is on one host".into()
        );
    }
    let plan = Plan {
        nodes: options.nodes,
        replicas: options.replicas,
        groups,
        placement: options.at.placement(),
        ..Plan::default()
    };
    let (_cluster, processes, client) = start(plan)?;
    let protected = match options.protect {
        Protect::None => None,
        protect => Some(start(Plan { groups: &["inline"], protect, ..plan })?),
    };
    let body = Bytes::from(vec![7; options.size]);
    let cores = machine::two_cores()?;
    let (own, other) = cores.unzip();
    let echo = |transport, core| EchoProcess::start(transport, options.size, core, Waits::Asleep);
    let mut echoes = [
        ("UDP echo, two cores", Transport::Udp, other),
        ("TCP echo, two cores", Transport::Tcp, other),
        ("UDP echo, anywhere", Transport::Udp, None),
        ("TCP echo, anywhere", Transport::Tcp, None),
    ]
    .map(|(title, transport, core)| (title, transport, core, echo(transport, core)));
    let mut kinds = Vec::new();
    for (title, transport, core, echo) in &mut echoes {
        let echo = echo.as_mut().map_err(|error| error.to_string())?;
        let names = json!({
            "peer": "floor", "measure": "echo", "transport": transport.name(),
            "cores": if core.is_some() { "two" } else { "free" }, "mode": "block",
            "size": options.size,
        });
        let mut kind = Kind::new(title, names, echo.rounds(options.size));
        kind.core = own.filter(|_| core.is_some());
        kinds.push(kind);
    }
    for (title, group) in GROUPS {
        let names = json!({
            "peer": "steadfast", "measure": "invocation", "style": "semi-active",
            "k": options.replicas, "nodes": options.nodes, "group": group, "cores": "free",
            "size": options.size,
        });
        let round = call(&client, group, &body);
        kinds.push(Kind { processes: &processes, ..Kind::new(title, names, Box::new(round)) });
    }
    if let Some((_, processes, client)) = &protected {
        let title = match options.protect {
            Protect::All => "majority, TLS, sealed",
            _ => "majority, TLS",
        };
        let names = json!({
            "peer": "steadfast", "measure": "invocation", "style": "semi-active",
            "k": options.replicas, "nodes": options.nodes, "group": "inline", "cores": "free",
            "size": options.size, "protect": format!("{:?}", options.protect).to_lowercase(),
        });
        let round = call(client, "inline", &body);
        kinds.push(Kind { processes, ..Kind::new(title, names, Box::new(round)) });
    }
    // The first blocks find cold caches, unmapped memory and connections that are not made yet.
    let warm = 2;
    for round in 0..warm + options.calls.div_ceil(BLOCK) {
        for kind in &mut kinds {
            kind.turn(round >= warm)?;
        }
    }
    for _ in 0..options.sparse {
        for kind in &mut kinds {
            thread::sleep(SPARSE);
            kind.once()?;
        }
    }
    report(options, &machine, &kinds)
}

/// A cluster with its processes and a client.
fn start(plan: Plan) -> Outcome<(Cluster, Vec<u32>, Client)> {
    let cluster = Cluster::start(plan)?;
    let processes = (1..=plan.nodes).filter_map(|id| cluster.process(NodeId(id))).collect();
    let client = cluster.connect()?;
    Ok((cluster, processes, client))
}

fn call<'a>(
    client: &'a Client,
    group: &'static str,
    body: &'a Bytes,
) -> impl FnMut() -> Outcome<()> + 'a {
    move || {
        let reply = client.call(group, ECHO, false, body.clone(), DEADLINE)?;
        if reply == *body { Ok(()) } else { Err("the echo is another".into()) }
    }
}

fn report(options: &Options, machine: &str, kinds: &[Kind<'_>]) -> Outcome<()> {
    let summaries: Option<Vec<Summary>> = kinds.iter().map(|kind| kind.times.summary()).collect();
    let summaries = summaries.ok_or("nothing was measured")?;
    let tcp = summaries[TCP];
    if options.json {
        eprintln!("on {machine}");
    } else {
        println!("on {machine}; calls are placed by the scheduler");
        println!(
            "{} nodes, {} replicas, {} bytes each way, one client; times in µs; sparse: p50 after a \
             pause of 200 ms; woken: wake-ups of node threads a call",
            options.nodes, options.replicas, options.size
        );
        println!(
            "{:24}{:>8}{:>8}{:>8}{:>8}{:>9}{:>8}{:>13}{:>9}{:>9}",
            "", "n", "min", "p50", "p99", "p99.9", "max", "p50 / TCP's", "sparse", "woken"
        );
    }
    for (kind, summary) in kinds.iter().zip(&summaries) {
        let ratio = summary.p50 / tcp.p50;
        let sparse = kind.sparse.summary();
        let woken = kind.woken as f64 / summary.n as f64;
        if options.json {
            let mut line = summary.json(&kind.names);
            line["ratio_to_tcp"] = json!((ratio * 100.0).round() / 100.0);
            if let Some(sparse) = sparse {
                line["sparse_p50_us"] = json!(sparse.p50);
            }
            if !kind.processes.is_empty() {
                line["woken_per_call"] = json!((woken * 10.0).round() / 10.0);
            }
            println!("{line}");
        } else {
            println!(
                "{:24}{:8}{:8.1}{:8.1}{:8.1}{:9.1}{:8.0}{:13.2}{:>9}{:>9}",
                kind.title,
                summary.n,
                summary.min,
                summary.p50,
                summary.p99,
                summary.p999,
                summary.max,
                ratio,
                sparse.map_or("-".into(), |sparse| format!("{:.1}", sparse.p50)),
                if kind.processes.is_empty() { "-".into() } else { format!("{woken:.1}") },
            );
        }
    }
    Ok(())
}
