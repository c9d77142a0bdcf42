//! Stheno, section 4, figures 5 and 6: latency and fail-over beside real-time programs that take
//! the processors, with and without reserved time.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use node::sched::{Class, Reserve, set_class};
use rustix::process::Signal;
use rustix::thread::Pid;
use serde::Serialize;
use serde_json::json;
use steadfast::{Client, Invocation};

use harness::chart::{Chart, Series};
use harness::cluster::{Cluster, Plan, Where};
use harness::echo::{ECHO, Transport, Waits};
use harness::figures::{Summary, Times};
use harness::floor::EchoProcess;
use harness::hog::{self, PRIORITY};
use harness::report;
use harness::{Experiment, Outcome, Run, name};

/// Executed inline and acknowledged by all replicas, as the paper's primary waits for all.
const GROUP: &str = "safe";

/// Bytes of a call and of an echo.
const SIZE: usize = 64;

/// Far longer than any call takes, hogs or not.
const DEADLINE: Duration = Duration::from_secs(20);

/// The longest times of the paper, in milliseconds, with 4 replicas: a call and a fail-over, without
/// and with reservation (sections 4.1 and 4.2).
const PAPER: [(Kind, f64, f64); 2] = [(Kind::Call, 300.0, 1.0), (Kind::Failover, 3_000.0, 20.0)];

/// Stheno 4: calls and fail-over beside real-time hogs, with and without reserved time.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Percentages of each processor that SCHED_FIFO 48 threads take.
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_values_t = (0..20).map(|step| step * 5))]
    loads: Vec<u32>,
    /// Numbers of replicas.
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_values_t = 1..=4)]
    replicas: Vec<u32>,
    /// The scheduling classes of data planes and client.
    #[arg(long, value_enum, value_name = "CLASS", value_delimiter = ',', default_values_t = By::ALL)]
    by: Vec<By>,
    /// Runs of each.
    #[arg(long, default_value_t = 16)]
    runs: usize,
    /// Calls of a run, at 250 a second.
    #[arg(long, default_value_t = 1_000)]
    calls: usize,
    /// In the middle of each run the primary's node is killed (figure 6).
    #[arg(long)]
    kill: bool,
    /// Microseconds reserved for each data plane and for the client.
    #[arg(long, default_value_t = 1_000)]
    runtime_us: u64,
    /// The period of that.
    #[arg(long, default_value_t = 4_000)]
    period_us: u64,
    /// Leaves figures and charts in this folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    at: Where,
}

/// How data planes and client are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum By {
    /// As all programs are.
    Ordinary,
    /// SCHED_FIFO 48, as the hogs: the paper's services without reservation.
    Fifo,
    /// Reserved time: SCHED_DEADLINE.
    Reserved,
}

impl By {
    const ALL: [By; 3] = [By::Ordinary, By::Fifo, By::Reserved];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// A call, figure 5.
    Call,
    /// The call that the fault delays most, figure 6.
    Failover,
    /// A datagram to a process and back.
    Echo,
}

/// One place of a figure.
#[derive(Clone, Serialize)]
struct Place {
    kind: Kind,
    by: By,
    /// 0 for an echo.
    replicas: u32,
    load: u32,
    mean_ms: f64,
    /// Half the 95 % interval of the mean, over the runs.
    interval_ms: f64,
    p999_ms: f64,
    worst_ms: f64,
}

impl Experiment for Options {
    const NAME: &'static str = "stheno";
    const SMOKE: &'static str = "--loads 20 --replicas 2 --by ordinary --runs 1 --calls 20 --kill";

    fn impossible(&self) -> Option<String> {
        hog::impossible(self.loads.iter().copied().max().unwrap_or_default())
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let kind = if self.kill { "fail-over" } else { "calls" };
        run.begin(&format!(
            "{kind} of 64 bytes at 250 a second, acknowledged by all replicas; {} runs of {} calls; \
             SCHED_FIFO {PRIORITY} hogs on each processor; reserved: {} of {} us",
            self.runs, self.calls, self.runtime_us, self.period_us
        ));
        let table = run.table(
            "kind:<9, by:<9, replicas:9, load:5, mean=mean_ms:9.3, +-=interval_ms:8.3, \
             p99.9=p999_ms:9.3, worst=worst_ms:9.3",
        );
        let mut places = Vec::new();
        for by in &self.by {
            for replicas in &self.replicas {
                let mut stage = Stage::start(self, *by, *replicas)?;
                for load in &self.loads {
                    for place in stage.measure(*load)? {
                        table.row(&report::row(
                            &place,
                            json!({ "peer": "steadfast", "measure": "stheno" }),
                        ));
                        places.push(place);
                    }
                }
            }
        }
        self.tell(run, &places)
    }
}

impl Options {
    fn class(&self, by: By) -> Class {
        let micros = Duration::from_micros;
        let (runtime, period) = (micros(self.runtime_us), micros(self.period_us));
        match by {
            By::Ordinary => Class::Ordinary,
            By::Fifo => Class::Fifo(PRIORITY),
            By::Reserved => Class::Deadline(Reserve { runtime, deadline: period, period }),
        }
    }

    fn tell(&self, run: &Run, places: &[Place]) -> Outcome<()> {
        for (kind, without, with) in PAPER {
            let worst = |by: By| {
                let all = places.iter().filter(|place| place.kind == kind && place.by == by);
                all.map(|place| place.worst_ms).max_by(f64::total_cmp)
            };
            if places.iter().all(|place| place.kind != kind) {
                continue;
            }
            let line = json!({
                "peer": "steadfast", "measure": "stheno-worst", "kind": kind,
                "paper_without_ms": without, "paper_with_ms": with,
                "ordinary_ms": worst(By::Ordinary), "fifo_ms": worst(By::Fifo),
                "reserved_ms": worst(By::Reserved),
            });
            run.tell(&line, || {
                let ms = |by| worst(by).map_or("-".into(), |worst| format!("{worst:.2}"));
                format!(
                    "longest {}: ordinary {} ms, FIFO {} ms (the paper without reservation {without}), \
                     reserved {} ms (the paper {with})",
                    name_of(kind), ms(By::Ordinary), ms(By::Fifo), ms(By::Reserved)
                )
            });
        }
        match &self.out {
            None => Ok(()),
            Some(out) => report::write(out, "stheno.json", &json!(places), charts(places)),
        }
    }
}

fn name_of(kind: Kind) -> String {
    json!(kind).as_str().unwrap_or_default().to_owned()
}

/// A chart for each kind and class: the mean of each number of replicas over the load.
fn charts(places: &[Place]) -> Vec<(String, Chart)> {
    let mut all = Vec::new();
    for kind in [Kind::Call, Kind::Failover] {
        for by in By::ALL {
            let of = |replicas: u32| {
                let some = places
                    .iter()
                    .filter(|it| (it.kind, it.by, it.replicas) == (kind, by, replicas));
                some.map(|it| (f64::from(it.load), it.mean_ms)).collect::<Vec<_>>()
            };
            let series: Vec<Series> = (1..=16)
                .map(|replicas| (replicas, of(replicas)))
                .filter(|(_, points)| !points.is_empty())
                .map(|(replicas, points)| {
                    Series::line(format!("{replicas} replicas"), replicas as usize, points).marked()
                })
                .collect();
            if !series.is_empty() {
                let title =
                    format!("{} beside SCHED_FIFO {PRIORITY} hogs, {}", name_of(kind), name(by));
                let chart =
                    Chart::new(title, "load of each processor, percent", "mean, ms", series);
                all.push((format!("stheno-{}-{}.svg", name_of(kind), name(by)), chart));
            }
        }
    }
    all
}

/// A cluster under one class, and an echo under the same.
struct Stage<'a> {
    options: &'a Options,
    by: By,
    replicas: u32,
    cluster: Cluster,
    client: Client,
}

impl Stage<'_> {
    fn start(options: &Options, by: By, replicas: u32) -> Outcome<Stage<'_>> {
        // One more node than replicas survives a kill with a majority, and replaces nobody.
        let nodes = if options.kill { replicas.max(2) + 1 } else { replicas };
        let cluster = Cluster::start(Plan {
            placement: options.at.placement(),
            class: options.class(by),
            ..Plan::of(nodes, replicas, &[GROUP])
        })?;
        let client = cluster.connect()?;
        Ok(Stage { options, by, replicas, cluster, client })
    }

    /// All runs under one load.
    fn measure(&mut self, load: u32) -> Outcome<Vec<Place>> {
        let (mut calls, mut echoes) = (Runs::default(), Runs::default());
        let mut echo = EchoProcess::start(Transport::Udp, SIZE, None, Waits::Asleep)?;
        let class = self.options.class(self.by);
        set_class(Pid::from_raw(i32::try_from(echo.id())?), class)?;
        for _ in 0..self.options.runs {
            let hogs = hog::start(load)?;
            let mut buffer = [7; SIZE];
            set_class(None, class)?;
            // Both under the same load, one after the other.
            echoes.one(self.options.calls, |_| echo.floor().round(&mut buffer))?;
            let (half, kill) = (self.options.calls / 2, self.options.kill);
            let body = Bytes::from_static(&[7; SIZE]);
            let mut struck = None;
            calls.one(self.options.calls, |number| {
                if kill && number == half {
                    struck = self.cluster.view(GROUP).primary;
                    self.cluster.signal(struck.ok_or("the group has no primary")?, Signal::KILL)?;
                }
                let call = Invocation::new(GROUP, ECHO).body(body.clone()).within(DEADLINE);
                self.client.call(call).map(drop).map_err(Into::into)
            })?;
            drop(hogs);
            // The next processes begin with the class of this thread.
            set_class(None, Class::Ordinary)?;
            if let Some(node) = struck {
                self.cluster.start_node(node)?;
                self.cluster.wait_until_whole()?;
            }
        }
        let call = if self.options.kill { Kind::Failover } else { Kind::Call };
        Ok(vec![
            calls.place(call, self.by, self.replicas, load),
            echoes.place(Kind::Echo, self.by, 0, load),
        ])
    }
}

/// The figures of several runs.
#[derive(Default)]
struct Runs {
    all: Times,
    means: Vec<f64>,
    longest: Vec<f64>,
}

impl Runs {
    /// So many rounds, each begun at its time, 250 a second.
    fn one(&mut self, count: usize, mut round: impl FnMut(usize) -> Outcome<()>) -> Outcome<()> {
        let (mut sum, mut longest) = (Duration::ZERO, Duration::ZERO);
        let mut due = Instant::now();
        for number in 0..count {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let began = Instant::now();
            round(number)?;
            let time = began.elapsed();
            self.all.push(time);
            (sum, longest) = (sum + time, longest.max(time));
            // A late call delays the next, and is not made up for.
            due = (due + Duration::from_millis(4)).max(Instant::now());
        }
        self.means.push(sum.as_secs_f64() * 1e3 / count as f64);
        self.longest.push(longest.as_secs_f64() * 1e3);
        Ok(())
    }

    /// A fail-over counts by the longest call of its run, all else by all calls.
    fn place(&self, kind: Kind, by: By, replicas: u32, load: u32) -> Place {
        let each = if kind == Kind::Failover { &self.longest } else { &self.means };
        let mean = each.iter().sum::<f64>() / each.len() as f64;
        let squares: f64 = each.iter().map(|one| (one - mean).powi(2)).sum();
        let deviation = (squares / (each.len() - 1).max(1) as f64).sqrt();
        let of_all =
            |figure: fn(&Summary) -> f64| self.all.summary().map_or(0.0, |all| figure(&all));
        Place {
            kind,
            by,
            replicas,
            load,
            mean_ms: mean,
            interval_ms: 1.96 * deviation / (each.len() as f64).sqrt(),
            p999_ms: of_all(|all| all.p999) / 1e3,
            worst_ms: of_all(|all| all.max) / 1e3,
        }
    }
}
