//! How long a deployed group has fewer replicas than are wanted, when hosts and programs are killed
//! at random and nobody helps (`jgroup-arm.txt`, sections 2 and 6).

mod ledger;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use manager::cluster_state::Deployment;
use node::{EventKind, EventRecord};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadfast::{Client, ManagerKnobs, NodeId};
use wire::Random;

use harness::caller::Caller;
use harness::cluster::{Cluster, Plan, View, Where, wall};
use harness::figures::{median_and_worst, quantile};
use harness::process::Role;
use harness::{Experiment, Outcome, Run, Table, bail, name};

use ledger::{LedgerService, Pages};

/// The deployed group.
const GROUP: &str = "ledger";

/// Clients at a thousand calls a second each.
const WRITERS: u32 = 2;

/// Between a whole cluster and the next kill at most.
const PAUSE_MS: u64 = 500;

/// How long a call may take: longer than any fail-over.
const DEADLINE: Duration = Duration::from_secs(10);

/// How long a deployed group has too few replicas, when nodes and programs are killed at random and
/// nobody helps.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How often something is killed.
    #[arg(long, default_value_t = 100)]
    kills: usize,
    /// The kind of process that is killed with SIGKILL, on a host of a replica drawn at random.
    #[arg(long, value_enum, default_value_t = Kind::Either)]
    kind: Kind,
    /// Node processes.
    #[arg(long, default_value_t = 6)]
    nodes: u32,
    /// Replicas that are wanted.
    #[arg(long, default_value_t = 3)]
    replicas: u32,
    /// Size of the state, in KiB.
    #[arg(long, default_value_t = 1_024)]
    state: usize,
    /// Draws victims and pauses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    at: Where,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// The node's process, and the programs that it minds with it.
    Node,
    /// The replica's program: its node starts it again.
    Program,
    /// One or the other.
    Either,
}

/// The times of a recovery, in milliseconds after the kill.
struct Recovery {
    kind: Kind,
    node: NodeId,
    /// The victim was the primary's host.
    primary: bool,
    /// The first view without it.
    lost: Option<f64>,
    /// Where a replica came from, and when its program was there.
    attached: Option<(NodeId, f64)>,
    /// All replicas that are wanted have the state.
    whole: f64,
    /// The longest time between two good replies of any client, until then.
    gap: f64,
}

/// The orders of a program of the ledger.
#[derive(Serialize, Deserialize)]
struct Orders {
    /// The size of its state.
    bytes: usize,
}

impl Experiment for Options {
    const NAME: &'static str = "redundancy";
    const SMOKE: &'static str = "--kills 1 --nodes 4 --state 64";

    fn run(&self, run: &Run) -> Outcome<()> {
        let Options { nodes, replicas, state, kills, .. } = *self;
        if replicas >= nodes {
            return Err("--nodes: one more than --replicas at least, for what is lost".into());
        }
        let bandwidth = bandwidth()?;
        let limit = 1_000.0 + 1e3 * (state << 10) as f64 / bandwidth;
        run.begin(&format!(
            "{replicas} of {nodes} nodes have a replica with a state of {state} KiB, under \
             {WRITERS},000 calls/s; times in ms after SIGKILL; a TCP stream carries {:.0} MB/s \
             here, so a second and the state are {limit:.0} ms",
            bandwidth / 1e6
        ));
        let table = run.table(
            "kill=number:5, what=killed:9, node:7, primary:9, lost=lost_ms:9.1, \
             program there=attached_ms:15.1, at:4, whole=whole_ms:9.1, gap=gap_ms:9.1",
        );
        let knobs = ManagerKnobs { on: true, ..ManagerKnobs::default() };
        let mut cluster = Cluster::start(Plan {
            nodes,
            replicas: 0,
            placement: self.at.placement(),
            manager: Some(knobs),
            ..Plan::default()
        })?;
        cluster.wait_for_ring_without(None)?;
        deploy(&mut cluster, self)?;
        let writers = (1..=WRITERS).map(|writer| Ok(write(writer, cluster.connect()?)));
        let writers = writers.collect::<Outcome<Vec<Caller>>>()?;
        writers.iter().try_for_each(|writer| writer.wait_steady(0))?;
        let mut random = Random::new(self.seed);
        let mut recoveries = Vec::new();
        for number in 1..=kills {
            thread::sleep(Duration::from_millis(random.below(PAUSE_MS)));
            let recovery = strike(self, &mut cluster, &writers, &mut random)?;
            show(number, &recovery, &table);
            recoveries.push(recovery);
        }
        let (mut answered, mut failed) = (0, Vec::new());
        for writer in writers {
            let (good, errors) = writer.finish();
            answered += good;
            failed.extend(errors);
        }
        let alike = alike(&mut cluster, self)?;
        summarize(self, run, &recoveries, limit, (answered, failed.len()));
        match failed.first() {
            Some(error) => Err(format!("{} calls failed: {error}", failed.len()).into()),
            None if !alike => Err("the replicas' states differ".into()),
            None => Ok(()),
        }
    }

    fn live(orders: Value) -> Outcome<()> {
        let Orders { bytes } = serde_json::from_value(orders)?;
        Ok(steadfast::attach(move || LedgerService::new(Pages::new(bytes)))?)
    }
}

/// Bytes a second of one TCP stream within this machine: the highest rate for a state transfer.
fn bandwidth() -> Outcome<f64> {
    const BYTES: usize = 256 << 20;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut stream = TcpStream::connect(listener.local_addr()?)?;
    let (mut other, _) = listener.accept()?;
    let reader = thread::spawn(move || -> std::io::Result<()> {
        let mut buffer = vec![0; 1 << 20];
        while other.read(&mut buffer)? > 0 {}
        Ok(())
    });
    let (start, block) = (Instant::now(), vec![7; 1 << 20]);
    for _ in 0..BYTES / block.len() {
        stream.write_all(&block)?;
    }
    drop(stream);
    reader.join().map_err(|_| "the reader panicked")??;
    Ok(BYTES as f64 / start.elapsed().as_secs_f64())
}

fn deploy(cluster: &mut Cluster, options: &Options) -> Outcome<()> {
    let command = Role::own(Options::NAME, Orders { bytes: options.state << 10 })?.command()?;
    let deployment = Deployment::new(GROUP, command, options.replicas);
    // Nodes introduce themselves once the managers' group is there.
    let mut admin = cluster.node(NodeId(1))?;
    let deadline = Instant::now() + DEADLINE;
    loop {
        let known = admin.deployments().map(|told| told.nodes.len());
        match known {
            Ok(known) if known == options.nodes as usize => break,
            known if Instant::now() > deadline => {
                bail!("the nodes do not introduce themselves: {known:?}");
            }
            _ => thread::sleep(Duration::from_millis(20)),
        }
    }
    admin.deploy(&deployment, false)?;
    let wanted = options.replicas as usize;
    cluster.wait("all replicas of what is deployed", |cluster| cluster.view(GROUP).synced == wanted)
}

/// A client that writes an entry every millisecond. The ledger refuses any entry but the next.
fn write(writer: u32, client: Client) -> Caller {
    let mut number = 0;
    Caller::calling(move || {
        number += 1;
        let ledger = ledger::LedgerClient::new(&client, GROUP).within(DEADLINE);
        ledger.enter(writer, number).map_err(|error| error.to_string())
    })
}

/// One kill, from a whole group to a whole group on a whole cluster.
fn strike(
    options: &Options,
    cluster: &mut Cluster,
    writers: &[Caller],
    random: &mut Random,
) -> Outcome<Recovery> {
    let wanted = options.replicas as usize;
    drop(cluster.take_events());
    let before = cluster.view(GROUP);
    let hosts = before.hosts.clone();
    let node = hosts[random.below(hosts.len() as u64) as usize];
    let kind = match options.kind {
        Kind::Either if random.below(2) == 0 => Kind::Node,
        Kind::Either => Kind::Program,
        kind => kind,
    };
    let killed = match kind {
        Kind::Program => kill_program(cluster, node)?,
        _ => cluster.signal(node, Signal::KILL)?,
    };
    cluster.wait("what was lost to be restored", |cluster| {
        let view = cluster.view(GROUP);
        view.number > before.number && view.synced == wanted
    })?;
    let restored = wall();
    for writer in writers {
        writer.wait_steady(restored)?;
    }
    let events = cluster.take_events();
    let mut recovery = recovery(kind, node, &before, killed, &events)?;
    let span = killed..=killed + (recovery.whole * 1e6) as u64;
    let gaps = writers.iter().filter_map(|writer| writer.gap(span.clone()));
    recovery.gap = gaps.fold(0.0, f64::max);
    if kind == Kind::Node {
        cluster.start_node(node)?;
        cluster.wait_for_ring_without(None)?;
    }
    Ok(recovery)
}

fn kill_program(cluster: &Cluster, node: NodeId) -> Outcome<u64> {
    let status = cluster.node(node)?.status()?;
    let program = status.programs.iter().find(|it| it.group == GROUP).and_then(|it| it.pid);
    let pid = program.and_then(|pid| Pid::from_raw(pid as i32));
    let time = wall();
    kill_process(pid.ok_or_else(|| format!("{node} runs no program of the group"))?, Signal::KILL)?;
    Ok(time)
}

/// A recovery by the nodes' events. The gap comes from the clients.
fn recovery(
    kind: Kind,
    node: NodeId,
    before: &View,
    killed: u64,
    events: &[EventRecord],
) -> Outcome<Recovery> {
    let after = |time: u64| time.saturating_sub(killed) as f64 / 1e6;
    let wanted = before.hosts.len();
    let view = |enough: bool| {
        let seen = events.iter().filter(|event| match &event.kind {
            EventKind::View { group, view, replicas, .. } => {
                let synced = replicas.iter().filter(|it| it.synced).count();
                group == GROUP && *view > before.number && (synced == wanted) == enough
            }
            _ => false,
        });
        seen.map(|event| event.time).min()
    };
    let attached = events.iter().find(|event| {
        event.time >= killed && matches!(event.kind, EventKind::ProgramAttached { .. })
    });
    let whole = view(true).ok_or("nobody told of the view in which all was restored")?;
    Ok(Recovery {
        kind,
        node,
        primary: before.primary == Some(node),
        lost: view(false).map(after),
        attached: attached.map(|event| (event.node, after(event.time))),
        whole: after(whole),
        gap: 0.0,
    })
}

/// All replicas have the same state at the end.
fn alike(cluster: &mut Cluster, options: &Options) -> Outcome<bool> {
    let hosts = cluster.view(GROUP).hosts;
    let deadline = Instant::now() + DEADLINE;
    loop {
        let mut digests = Vec::new();
        for host in &hosts {
            let answer = cluster.node(*host)?.digest(GROUP)?;
            digests.push(answer.digest);
        }
        let same = digests.windows(2).all(|pair| pair[0] == pair[1]);
        if same || Instant::now() > deadline {
            return Ok(same && digests.len() == options.replicas as usize);
        }
    }
}

fn show(number: usize, recovery: &Recovery, table: &Table) {
    let Recovery { kind, node, primary, lost, attached, whole, gap } = recovery;
    table.row(&json!({
        "peer": "steadfast", "measure": "recovery", "number": number, "killed": name(*kind),
        "node": node.0, "primary": primary, "lost_ms": lost, "whole_ms": whole, "gap_ms": gap,
        "attached_ms": attached.map(|(_, time)| time), "at": attached.map(|(at, _)| at.0),
    }));
}

fn summarize(
    options: &Options,
    run: &Run,
    recoveries: &[Recovery],
    limit: f64,
    (answered, failed): (usize, usize),
) {
    for kind in [Kind::Node, Kind::Program] {
        let of: Vec<&Recovery> = recoveries.iter().filter(|it| it.kind == kind).collect();
        let whole: Vec<f64> = of.iter().map(|it| it.whole).collect();
        let Some((median, worst)) = median_and_worst(whole.clone()) else { continue };
        let p99 = quantile(whole.clone(), 0.99).unwrap_or(worst);
        let late = whole.iter().filter(|time| **time > limit).count();
        let gaps = of.iter().map(|it| it.gap).collect();
        let (gap, worst_gap) = median_and_worst(gaps).unwrap_or_default();
        let (count, what) = (of.len(), name(kind));
        let line = json!({
            "peer": "steadfast", "measure": "redundancy", "killed": what, "n": count,
            "state_kib": options.state, "nodes": options.nodes, "k": options.replicas,
            "whole_ms": median, "p99_whole_ms": p99, "worst_whole_ms": worst, "limit_ms": limit,
            "late": late, "gap_ms": gap, "worst_gap_ms": worst_gap, "answered": answered,
            "failed_calls": failed,
        });
        run.tell(&line, || {
            format!(
                "{what} killed {count} times: all replicas again after a median of {median:.0} \
                 ms, p99 {p99:.0}, worst {worst:.0}; {late} later than {limit:.0} ms; gap of the \
                 clients median {gap:.1} ms, worst {worst_gap:.1} ms"
            )
        });
    }
    match failed {
        _ if run.json => {}
        0 => println!("{answered} entries answered, none failed, lost or executed twice"),
        // The ledger refuses an entry that does not follow on the one before.
        failed => println!("{answered} entries answered, {failed} calls FAILED"),
    }
}
