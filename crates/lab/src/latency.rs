//! A semi-active call beside bare round trips.
//!
//! All kinds take turns in small blocks, so that whatever the machine does meanwhile strikes all
//! of them, and their ratio means something on any machine.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::Child;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::json;
use steadfast::Client;

use crate::cluster::{Cluster, Plan};
use crate::echo::{ECHO, Floor, Transport};
use crate::figures::{Summary, Times};
use crate::{Outcome, child, machine};

/// Calls of one kind before it is the next one's turn.
const BLOCK: usize = 250;
const DEADLINE: Duration = Duration::from_secs(5);

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
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
}

/// An echo process on a bare socket, and the connection to it.
struct EchoProcess {
    process: Child,
    floor: Floor,
}

impl EchoProcess {
    fn start(transport: Transport, name: &str, size: usize) -> Outcome<EchoProcess> {
        let size = size.to_string();
        let arguments = ["--transport", name, "--size", &size];
        let (process, _stdin, stdout) = child::spawn("echo", &arguments)?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let child::Line::Ready { ready } = serde_json::from_str::<child::Line>(&line)? else {
            return Err("the echo is not ready".into());
        };
        let address: SocketAddr = ready;
        Ok(EchoProcess { process, floor: Floor::connect(transport, address)? })
    }

    fn rounds(&mut self, size: usize) -> Box<dyn FnMut() -> Outcome<()> + '_> {
        let mut buffer = vec![7; size];
        Box::new(move || self.floor.round(&mut buffer))
    }
}

impl Drop for EchoProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One kind of round trip, with its times so far.
struct Kind<'a> {
    names: serde_json::Value,
    title: &'static str,
    round: Box<dyn FnMut() -> Outcome<()> + 'a>,
    times: Times,
}

impl Kind<'_> {
    fn block(&mut self, keep: bool) -> Outcome<()> {
        for _ in 0..BLOCK {
            let start = Instant::now();
            (self.round)()?;
            if keep {
                self.times.push(start.elapsed());
            }
        }
        Ok(())
    }
}

pub fn run(options: &Options) -> Outcome<()> {
    let machine = machine::description();
    let plan =
        Plan { nodes: options.nodes, replicas: options.replicas, groups: &["inline", "thread"] };
    let cluster = Cluster::start(plan)?;
    let client = Client::connect(cluster.clients())?;
    let mut udp = EchoProcess::start(Transport::Udp, "udp", options.size)?;
    let mut tcp = EchoProcess::start(Transport::Tcp, "tcp", options.size)?;
    let body = Bytes::from(vec![7; options.size]);

    let call = |group: &'static str| -> Box<dyn FnMut() -> Outcome<()> + '_> {
        let (client, body) = (&client, &body);
        Box::new(move || {
            let reply = client.call(group, ECHO, false, body.clone(), DEADLINE)?;
            if reply == *body { Ok(()) } else { Err("the echo is another".into()) }
        })
    };
    let echo_names = |transport: &str| json!({"peer": "floor", "measure": "echo", "transport": transport, "size": options.size});
    let call_names = |execution: &str| {
        json!({
            "peer": "steadfast", "measure": "invocation", "style": "semi-active",
            "k": options.replicas, "nodes": options.nodes, "execution": execution,
            "size": options.size,
        })
    };
    let kind = |title, names, round| Kind { names, title, round, times: Times::default() };
    let mut kinds = [
        kind("UDP echo", echo_names("udp"), udp.rounds(options.size)),
        kind("TCP echo", echo_names("tcp"), tcp.rounds(options.size)),
        kind("call, inline handler", call_names("inline"), call("inline")),
        kind("call, handler's thread", call_names("thread"), call("thread")),
    ];
    // The first blocks find cold caches, unmapped memory and connections that are not made yet.
    let warm = 2;
    for round in 0..warm + options.calls.div_ceil(BLOCK) {
        for kind in &mut kinds {
            kind.block(round >= warm)?;
        }
    }
    report(options, &machine, &kinds)
}

fn report(options: &Options, machine: &str, kinds: &[Kind<'_>]) -> Outcome<()> {
    let summaries: Option<Vec<Summary>> = kinds.iter().map(|kind| kind.times.summary()).collect();
    let summaries = summaries.ok_or("nothing was measured")?;
    let tcp = summaries[1];
    if options.json {
        eprintln!("on {machine}");
    } else {
        println!("on {machine}; placement left to the scheduler");
        println!(
            "{} nodes, {} replicas, {} bytes each way, one client; times in µs",
            options.nodes, options.replicas, options.size
        );
        println!(
            "{:24}{:>8}{:>8}{:>8}{:>8}{:>9}{:>8}{:>14}",
            "", "n", "min", "p50", "p99", "p99.9", "max", "p50 / TCP's"
        );
    }
    for (kind, summary) in kinds.iter().zip(&summaries) {
        let ratio = summary.p50 / tcp.p50;
        if options.json {
            let mut line = summary.json(&kind.names);
            line["ratio_to_tcp"] = json!((ratio * 100.0).round() / 100.0);
            println!("{line}");
        } else {
            println!(
                "{:24}{:8}{:8.1}{:8.1}{:8.1}{:9.1}{:8.0}{:14.2}",
                kind.title,
                summary.n,
                summary.min,
                summary.p50,
                summary.p99,
                summary.p999,
                summary.max,
                ratio
            );
        }
    }
    Ok(())
}
