//! A call of each style beside bare round trips.
//!
//! All kinds take turns in small blocks, so that whatever the machine does meanwhile strikes all
//! of them, and their ratio means something on any machine.
//!
//! Most of a round trip is the waking of the other side's processor. The scheduler may put both
//! sides of an echo on one processor, where nobody has to be woken; a cluster of five processes and
//! a client cannot be put so. So the echoes are measured both ways: left to the scheduler, and with
//! one processor for each side, which is what a call is compared with.
//!
//! A reply that all nodes have to be heard for first has another floor: from a bare client by TCP
//! to a process that sends a datagram to as many others, waits for the answers of all, and answers.
//! All of them are processes that sleep while they wait, placed by the scheduler, as the nodes are.

use std::path::PathBuf;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use node::realtime::Awake;
use serde_json::{Value, json};
use steadfast::{Client, Invocation, NodeId, Style};

use harness::cluster::{Cluster, Plan, Where};
use harness::echo::{ECHO, Transport, Waits};
use harness::figures::{Summary, Times};
use harness::floor::{self, EchoProcess, Fan};
use harness::protect::Protect;
use harness::{Experiment, Outcome, Run, machine, name};

/// Calls of one kind before it is the next one's turn.
const BLOCK: usize = 250;
/// Which of the kinds a call is compared with: TCP between two processors.
const TCP: usize = 1;
/// And which one a call that all nodes have to hold: TCP, and a datagram to all others and back.
const CHAIN: usize = 5;
const DEADLINE: Duration = Duration::from_secs(5);
/// The pause before a call of sparse traffic.
const SPARSE: Duration = Duration::from_millis(200);

/// Latency of a call of each style at each level, in turns with UDP and TCP echoes.
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
    /// The calls of sparse traffic also while the host's idle processors are kept awake within so
    /// many microseconds, 0: they do not sleep (as `[realtime] wake_within_us`).
    #[arg(long, value_name = "US", requires = "sparse", conflicts_with = "awake")]
    wake_within: Option<u32>,
    /// The host's processors are kept awake all the time: every node has `[realtime] wake_within_us
    /// = 0`.
    #[arg(long)]
    awake: bool,
    /// Measures a second cluster in turns, whose clients talk TLS (`tls`), and whose datagrams are
    /// sealed too (`all`).
    #[arg(long, value_enum, default_value_t = Protect::None)]
    protect: Protect,
    /// Measures a group on disk too, whose nodes keep it here: a folder of its own is made there
    /// and removed.
    #[arg(long, value_name = "FOLDER")]
    storage: Option<PathBuf>,
    #[command(flatten)]
    at: Where,
}

/// One kind of round trip, with its times so far.
struct Kind<'a> {
    names: Value,
    title: &'static str,
    /// The one processor for this side of it.
    core: Option<usize>,
    round: Box<dyn FnMut() -> Outcome<()> + 'a>,
    times: Times,
    /// The times of calls after a pause.
    sparse: Times,
    /// The times of the same calls while processors are kept awake.
    awake: Times,
    /// The processes that take part beside this one.
    processes: &'a [u32],
    /// How often threads slept and were woken in all that was measured: this process's, and theirs.
    woken: Vec<u64>,
}

impl<'a> Kind<'a> {
    fn new(title: &'static str, names: Value, round: Box<dyn FnMut() -> Outcome<()> + 'a>) -> Self {
        let (times, sparse, awake, woken) = Default::default();
        Kind { names, title, core: None, round, times, sparse, awake, processes: &[], woken }
    }

    fn turn(&mut self, count: usize, keep: bool) -> Outcome<()> {
        match self.core {
            Some(core) => machine::while_on(core, || self.block(count, keep))?,
            None => self.block(count, keep),
        }
    }

    /// One round trip, after a pause.
    fn once(&mut self) -> Outcome<Duration> {
        thread::sleep(SPARSE);
        let start = Instant::now();
        match self.core {
            Some(core) => machine::while_on(core, || (self.round)())??,
            None => (self.round)()?,
        }
        Ok(start.elapsed())
    }

    fn block(&mut self, count: usize, keep: bool) -> Outcome<()> {
        let before = self.wake_ups();
        self.times.measure_if(keep, count, &mut self.round)?;
        if keep {
            self.woken.resize(before.len(), 0);
            let after = self.wake_ups();
            let more = after.iter().zip(&before).map(|(after, before)| after - before);
            self.woken.iter_mut().zip(more).for_each(|(woken, more)| *woken += more);
        }
        Ok(())
    }

    /// Those of this process, then those of each of the others.
    fn wake_ups(&self) -> Vec<u64> {
        let processes = [process::id()].into_iter().chain(self.processes.iter().copied());
        processes.map(|process| machine::wake_ups(&[process])).collect()
    }

    /// Wake-ups a round trip: in all processes, and in each.
    fn woken_each(&self) -> (f64, Vec<f64>) {
        let tenths = |woken: f64| (woken * 10.0).round() / 10.0;
        let times = self.times.summary().map_or(1, |summary| summary.n) as f64;
        let each: Vec<f64> = self.woken.iter().map(|woken| tenths(*woken as f64 / times)).collect();
        (tenths(self.woken.iter().sum::<u64>() as f64 / times), each)
    }
}

/// The called groups: title, group, style.
const GROUPS: [(&str, &str, Style); 10] = [
    ("stateless", "stateless", Style::Stateless),
    ("active, majority", "active", Style::Active),
    ("voting, majority", "voting", Style::Voting),
    ("semi-active, agreed", "agreed", Style::SemiActive),
    ("semi-active, majority", "inline", Style::SemiActive),
    ("semi-active, safe", "safe", Style::SemiActive),
    ("cold passive, majority", "cold", Style::ColdPassive),
    ("warm passive, majority", "warm", Style::WarmPassive),
    ("majority, on a thread", "thread", Style::SemiActive),
    ("semi-active, on disk", ON_DISK, Style::SemiActive),
];

/// The group that needs a folder, the last one.
const ON_DISK: &str = "disk";

impl Experiment for Options {
    const NAME: &'static str = "latency";
    const SMOKE: &'static str = "--calls 10 --nodes 3";

    fn run(&self, run: &Run) -> Outcome<()> {
        let kept = GROUPS.len() - usize::from(self.storage.is_none());
        if self.at.hosts && self.protect != Protect::None {
            return Err(
                "--protect measures two clusters in turns, and one thread is on one host".into()
            );
        }
        let plan = Plan {
            placement: self.at.placement(),
            awake: self.awake,
            storage: self.storage.clone(),
            ..Plan::of(self.nodes, self.replicas, &GROUPS.map(|(_, group, _)| group)[..kept])
        };
        let (_cluster, processes, client) = start(plan.clone())?;
        let protected = match self.protect {
            Protect::None => None,
            protect => Some(start(Plan { groups: vec!["inline"], protect, ..plan })?),
        };
        let body = Bytes::from(vec![7; self.size]);
        let mut floors = Floors::start(self)?;
        let mut kinds = floors.kinds(self)?;
        for (title, group, style) in GROUPS.into_iter().take(kept) {
            let names = self.names(group, style);
            let round = call(&client, group, &body);
            kinds.push(Kind { processes: &processes, ..Kind::new(title, names, Box::new(round)) });
        }
        if let Some((_, processes, client)) = &protected {
            let title = match self.protect {
                Protect::All => "majority, TLS, sealed",
                _ => "majority, TLS",
            };
            let mut names = self.names("inline", Style::SemiActive);
            names["protect"] = json!(name(self.protect));
            let round = call(client, "inline", &body);
            kinds.push(Kind { processes, ..Kind::new(title, names, Box::new(round)) });
        }
        self.measure(&mut kinds, run.sized(BLOCK, BLOCK / 25))?;
        self.report(run, &kinds)
    }
}

impl Options {
    fn names(&self, group: &str, style: Style) -> Value {
        json!({
            "peer": "steadfast", "measure": "invocation", "style": style, "k": self.replicas,
            "nodes": self.nodes, "group": group, "cores": "free", "size": self.size,
        })
    }

    /// All take turns, in blocks of so many calls.
    fn measure(&self, kinds: &mut [Kind<'_>], block: usize) -> Outcome<()> {
        let warm = 2;
        for round in 0..warm + self.calls.div_ceil(block) {
            for kind in &mut *kinds {
                kind.turn(block, round >= warm)?;
            }
        }
        for _ in 0..self.sparse {
            for kind in &mut *kinds {
                let time = kind.once()?;
                kind.sparse.push(time);
                if let Some(micros) = self.wake_within {
                    let awake = Awake::hold(Duration::from_micros(micros.into()))?;
                    let time = kind.once()?;
                    kind.awake.push(time);
                    drop(awake);
                }
            }
        }
        Ok(())
    }

    fn report(&self, run: &Run, kinds: &[Kind<'_>]) -> Outcome<()> {
        let summaries: Option<Vec<Summary>> =
            kinds.iter().map(|kind| kind.times.summary()).collect();
        let summaries = summaries.ok_or("nothing was measured")?;
        let kept = if self.awake { "; processors are kept awake" } else { "" };
        run.begin(&format!(
            "calls are placed by the scheduler{kept}\n{} nodes, {} replicas, {} bytes each way, \
             one client; times in µs; all: TCP, UDP to all others; sparse: p50 after a pause of \
             200 ms; awake: the same while processors are kept from sleeping; woken: wake-ups of \
             threads a call, of all processes: of the client, of each node",
            self.nodes, self.replicas, self.size
        ));
        let table = run.table(
            "=title:<24, n:8, min=min_us:8.1, p50=p50_us:8.1, p99=p99_us:8.1, p99.9=p999_us:9.1, \
             max=max_us:8.0, p50 / TCP's=ratio_to_tcp:13.2, / all's=ratio_to_fan:8.2, \
             sparse=sparse_p50_us:9.1, awake=sparse_awake_p50_us:9.1, woken=woken_per_call:7.1, \
             each=woken_each:<0",
        );
        for (kind, summary) in kinds.iter().zip(&summaries) {
            let mut line = summary.json(&kind.names);
            let ratio = |other: usize| (summary.p50 / summaries[other].p50 * 100.0).round() / 100.0;
            let (woken, each) = kind.woken_each();
            line["title"] = json!(kind.title);
            line["ratio_to_tcp"] = json!(ratio(TCP));
            line["ratio_to_fan"] = json!(ratio(CHAIN));
            line["awake"] = json!(self.awake);
            line["woken_per_call"] = json!(woken);
            line["woken_each"] = json!(each);
            for (name, times) in
                [("sparse_p50_us", &kind.sparse), ("sparse_awake_p50_us", &kind.awake)]
            {
                if let Some(summary) = times.summary() {
                    line[name] = json!(summary.p50);
                }
            }
            table.row(&line);
        }
        Ok(())
    }
}

/// The bare round trips.
struct Floors {
    /// Title, transport, the other side's processor.
    echoes: Vec<(&'static str, Transport, Option<usize>, EchoProcess)>,
    /// This side's processor, where that is one.
    own: Option<usize>,
    fan: Fan,
    behind: EchoProcess,
}

impl Floors {
    fn start(options: &Options) -> Outcome<Floors> {
        let (own, other) = machine::two_cores()?.unzip();
        let echoes = [
            ("UDP echo, two cores", Transport::Udp, other),
            ("TCP echo, two cores", Transport::Tcp, other),
            ("UDP echo, anywhere", Transport::Udp, None),
            ("TCP echo, anywhere", Transport::Tcp, None),
        ];
        let start = |(title, transport, core)| {
            let echo = EchoProcess::start(transport, options.size, core, Waits::Asleep)?;
            Ok((title, transport, core, echo))
        };
        let others = options.nodes.saturating_sub(1) as usize;
        Ok(Floors {
            echoes: echoes.into_iter().map(start).collect::<Outcome<_>>()?,
            own,
            fan: Fan::start(options.size, others)?,
            behind: floor::behind_tcp(options.size, others)?,
        })
    }

    fn kinds(&mut self, options: &Options) -> Outcome<Vec<Kind<'_>>> {
        let mut kinds = Vec::new();
        for (title, transport, core, echo) in &mut self.echoes {
            let names = json!({
                "peer": "floor", "measure": "echo", "transport": transport,
                "cores": if core.is_some() { "two" } else { "free" }, "mode": "block",
                "size": options.size,
            });
            let mut kind = Kind::new(title, names, echo.rounds(options.size));
            kind.core = self.own.filter(|_| core.is_some());
            kinds.push(kind);
        }
        kinds.extend(fans(options, &mut self.fan, &mut self.behind));
        Ok(kinds)
    }
}

/// A datagram to all others and their answers, alone and behind TCP.
fn fans<'a>(options: &Options, fan: &'a mut Fan, behind: &'a mut EchoProcess) -> [Kind<'a>; 2] {
    [
        ("UDP to all others", "udp", fan.rounds(options.size)),
        ("TCP, UDP to all others", "tcp+udp", behind.rounds(options.size)),
    ]
    .map(|(title, transport, rounds)| {
        let names = json!({
            "peer": "floor", "measure": "fan", "transport": transport, "peers": options.nodes - 1,
            "cores": "free", "mode": "block", "size": options.size,
        });
        Kind::new(title, names, rounds)
    })
}

/// A cluster with its processes and a client.
fn start(plan: Plan) -> Outcome<(Cluster, Vec<u32>, Client)> {
    let nodes = plan.nodes;
    let cluster = Cluster::start(plan)?;
    let processes = (1..=nodes).filter_map(|id| cluster.process(NodeId(id))).collect();
    let client = cluster.connect()?;
    Ok((cluster, processes, client))
}

fn call<'a>(
    client: &'a Client,
    group: &'static str,
    body: &'a Bytes,
) -> impl FnMut() -> Outcome<()> + 'a {
    move || {
        let reply =
            client.call(Invocation::new(group, ECHO).body(body.clone()).within(DEADLINE))?;
        if reply == *body { Ok(()) } else { Err("the echo is another".into()) }
    }
}
