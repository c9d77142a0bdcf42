//! Figure 2: what it costs to have messages on disks, by how many may be on none.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use harness::chart::{Chart, Series};
use harness::cluster::Plan;
use harness::figures::{Times, median_and_worst};
use harness::jobs::Scene;
use harness::{Outcome, Run, bail};
use job::{Command, Log, Spec};
use serde_json::{Value, json};
use steadfast::NodeId;
use wire::rank::Every;

use super::orders::Orders;
use super::sending::{GROWS, SIZE, Sending};
use super::setting::{Found, Setting};

/// The knobs of figure 2.
#[derive(Debug, clap::Args)]
#[group(id = "logs-knobs")]
#[command(next_help_heading = "Figure 2")]
pub struct Knobs {
    /// Messages that may be on no disk; 0: none, before it is delivered.
    #[arg(long, value_delimiter = ',',
          default_values_t = [0, 1, 4, 16, 64, 128, 256, 500, 1_024])]
    queue: Vec<u32>,
    /// Messages that are sent in a row, of 1,024 bytes each.
    #[arg(long, default_value_t = 1_024)]
    messages: u32,
    /// How often, with each log.
    #[arg(long, default_value_t = 15)]
    repeats: u32,
    /// Passes over all logs.
    #[arg(long, default_value_t = 3)]
    passes: usize,
    /// Disks, each at a node of its own.
    #[arg(long, default_value_t = 2)]
    disks: u8,
}

/// A way for the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A stream of TCP, with one call of `write` for each message.
    Raw,
    Ranks(Log),
}

impl Way {
    fn name(self) -> String {
        match self {
            Way::Raw => "raw stream".into(),
            Way::Ranks(log) => log.to_string(),
        }
    }

    fn queue(self) -> Option<u32> {
        match self {
            Way::Ranks(Log::Optimistic(queue)) => Some(queue),
            Way::Ranks(Log::Pessimistic) => Some(0),
            _ => None,
        }
    }
}

/// Measures, and tells.
pub fn run(knobs: &Knobs, setting: &Setting, run: &Run, found: &mut Found) -> Outcome<()> {
    let nodes = u32::from(knobs.disks);
    let mut scene = Scene::start(Plan::of(nodes, nodes, &[]), &setting.storage)?;
    run.begin(&format!(
        "figure 2: {} messages of {SIZE} bytes from one rank to another on one of {nodes} nodes of this \
         machine, until the last one is answered; kept by all nodes in {}, one disk; medians of {} \
         passes of {} each, ms; beside a stream of TCP",
        knobs.messages,
        setting.storage.display(),
        knobs.passes,
        knobs.repeats
    ));
    let log = |queue: &u32| if *queue == 0 { Log::Pessimistic } else { Log::Optimistic(*queue) };
    let queues = knobs.queue.iter().map(|queue| Way::Ranks(log(queue)));
    let ways = [Way::Raw, Way::Ranks(Log::Sender)].into_iter().chain(queues);
    let mut all: Vec<(Way, Vec<f64>)> = ways.map(|way| (way, Vec::new())).collect();
    let folder = tempfile::tempdir()?;
    for _ in 0..knobs.passes {
        for (way, passes) in &mut all {
            let (messages, repeats) = (knobs.messages, knobs.repeats);
            let sending = Sending { messages, repeats, file: folder.path().join("times") };
            passes.push(match way {
                Way::Raw => raw(&sending)?,
                Way::Ranks(log) => ranks(&mut scene, sending, *log, knobs.disks)?,
            });
        }
    }
    let table = run
        .table("log=way:<16, ms:9.2, worst=worst_ms:9.2, us each=each_us:9.2, of raw=of_raw:9.2");
    let raw = all[0].1.clone();
    for (way, passes) in all {
        let ratios = passes.iter().zip(&raw).map(|(us, raw)| us / raw).collect();
        let (median, worst) = median_and_worst(passes).unwrap_or_default();
        let row = json!({
            "peer": "steadfast", "measure": "logs", "way": way.name(), "queue": way.queue(),
            "messages": knobs.messages, "ms": median / 1e3, "worst_ms": worst / 1e3,
            "each_us": median / f64::from(knobs.messages),
            "of_raw": median_and_worst(ratios).map(|(ratio, _)| ratio),
        });
        table.row(&row);
        found.rows.push(row);
    }
    found.charts.push(("figure-2.svg", chart(&found.rows)));
    Ok(())
}

/// The median of a pass, in microseconds.
fn ranks(scene: &mut Scene, sending: Sending, log: Log, copies: u8) -> Outcome<f64> {
    let (file, labels) = (sending.file.clone(), vec![Scene::label(NodeId(1))]);
    let command = Orders::Send(sending).role()?.command()?;
    let spec = Spec { command, labels, ranks: 2, copies, every: Every::Never, ..Spec::default() };
    let spec = Spec { log, blocking: true, ..spec };
    let job = scene.submit(spec)?;
    scene.finished(job)?;
    scene.take(&Command::Forget { job })?;
    let times: Vec<f64> = serde_json::from_slice(&std::fs::read(&file)?)?;
    std::fs::remove_file(file)?;
    let (median, _) = median_and_worst(times).ok_or("nothing was sent")?;
    Ok(median)
}

/// The same by a stream between two threads.
fn raw(sending: &Sending) -> Outcome<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    thread::scope(|scope| {
        let far = scope.spawn(move || -> std::io::Result<()> {
            let mut bytes = [0; SIZE];
            for _ in 0..GROWS + sending.repeats {
                (0..sending.messages).try_for_each(|_| far.read_exact(&mut bytes))?;
                far.write_all(&bytes)?;
            }
            Ok(())
        });
        let (mut bytes, mut times) = ([7; SIZE], Times::default());
        for repeat in 0..GROWS + sending.repeats {
            let begun = Instant::now();
            (0..sending.messages).try_for_each(|_| near.write_all(&bytes))?;
            near.read_exact(&mut bytes)?;
            if repeat >= GROWS {
                times.push(begun.elapsed());
            }
        }
        match far.join() {
            Ok(done) => done?,
            Err(_) => bail!("the far end has ended"),
        }
        Ok(times.summary().map_or(0.0, |all| all.p50))
    })
}

/// The time by the length of the queue.
fn chart(rows: &[Value]) -> Chart {
    let of = |row: &Value| Some((row["queue"].as_f64()?, row["ms"].as_f64()?));
    let points = rows.iter().filter(|row| row["measure"] == "logs").filter_map(of).collect();
    let line = Series::line("messages", 0, points).marked();
    Chart::new("Messages on two disks", "messages that may be on none", "ms", vec![line])
}
