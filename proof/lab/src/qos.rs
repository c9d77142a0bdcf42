//! The host's daemon of reserves, killed again and again beside real-time hogs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use node::sched::{Class, class};
use qosd::{Client, Cpu, Keeper, Standing, Wanted};
use rustix::thread::{Pid, gettid};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use harness::figures::Times;
use harness::hog::{self, PRIORITY};
use harness::process::{Process, Role};
use harness::usage;
use harness::wait::until_so;
use harness::{Experiment, Outcome, Run, bail, daemon};

/// The wait for a daemon, and for all reserves: far longer than they take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Between two looks.
const GLANCE: Duration = Duration::from_millis(5);

/// Reserves that outlive the host's daemon, the time to make one, and the daemon's cost.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How often the daemon is killed.
    #[arg(long, default_value_t = 50)]
    kills: usize,
    /// Threads with a reserve of one hundredth of a processor each.
    #[arg(long, default_value_t = 40)]
    reserves: usize,
    /// Changes of a reserve that are measured.
    #[arg(long, default_value_t = 2_000)]
    changes: usize,
    /// Percent of each processor that threads under SCHED_FIFO 48 take.
    #[arg(long, value_name = "PERCENT", default_value_t = 90)]
    hogs: u32,
    /// Seconds for which the idle daemon is watched.
    #[arg(long, default_value_t = 10)]
    idle: u64,
}

/// The orders of the daemon's process.
#[derive(Serialize, Deserialize)]
struct Orders {
    socket: PathBuf,
}

impl Experiment for Options {
    const NAME: &'static str = "qos";
    const SMOKE: &'static str = "--kills 2 --reserves 3 --changes 20 --hogs 10 --idle 1";

    fn impossible(&self) -> Option<String> {
        hog::impossible(self.hogs)
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("qos.sock");
        let mut daemon = Daemon::start(&socket)?;
        let threads: Vec<Sleeper> = (0..self.reserves).map(|_| Sleeper::start()).collect();
        let keepers = threads.iter().enumerate().map(|(number, thread)| {
            Keeper::start(&socket, wanted(&format!("lab/{number}"), thread.id, 1_000))
        });
        let keepers = keepers.collect::<Result<Vec<_>, _>>()?;
        let in_force = classes(&threads)?;
        let hogs = hog::start(self.hogs)?;
        let mut back = Times::default();
        for kill in 1..=self.kills {
            daemon.process.kill()?;
            daemon.process.wait()?;
            let began = Instant::now();
            if classes(&threads)? != in_force {
                bail!("kill {kill}: a reserve was lost with the daemon");
            }
            daemon = Daemon::start(&socket)?;
            until_so(TIMEOUT, GLANCE, "the reserves are not held again", || {
                let shown = Client::connect(&socket)?.show()?;
                Ok(shown.reserves.len() == self.reserves)
            })?;
            back.push(began.elapsed());
            if classes(&threads)? != in_force {
                bail!("kill {kill}: a reserve was lost with the new daemon");
            }
        }
        let all_stand = keepers.iter().all(|it| matches!(it.standing(), Standing::InForce(..)));
        let changes = self.change(&socket)?;
        drop(hogs);
        let idle = self.watch_idle(&daemon)?;
        drop(keepers);
        until_so(TIMEOUT, GLANCE, "a thread keeps its class", || {
            Ok(classes(&threads)?.iter().all(|class| *class == Class::Ordinary))
        })?;
        let left = Client::connect(&socket)?.show()?.reserves.len();
        run.begin("");
        let ms = |times: &Times, of: fn(&harness::figures::Summary) -> f64| {
            times.summary().map_or(0.0, |all| of(&all) / 1e3)
        };
        let line = json!({
            "peer": "steadfast", "measure": "qos", "kills": self.kills,
            "reserves": self.reserves, "hogs": self.hogs, "lost": 0, "left": left,
            "in_force": format!("{:?}", in_force.first()), "all_stand": all_stand,
            "back_p50_ms": ms(&back, |all| all.p50), "back_worst_ms": ms(&back, |all| all.max),
            "change_p50_ms": ms(&changes, |all| all.p50), "change_p99_ms": ms(&changes, |all| all.p99),
            "change_worst_ms": ms(&changes, |all| all.max), "idle_percent": idle,
        });
        run.tell(&line, || text(&line));
        match (all_stand, left) {
            (true, 0) => Ok(()),
            _ => Err(format!("{left} reserves are left, and all stand: {all_stand}").into()),
        }
    }

    fn live(orders: Value) -> Outcome<()> {
        let Orders { socket } = serde_json::from_value(orders)?;
        // As `steadfast qos serve`; a refusal leaves it ordinary.
        let _ = hog::take(Class::Fifo(PRIORITY + 1));
        let server = daemon::open(&socket, BTreeMap::new())?;
        println!("ready");
        Ok(server.serve()?)
    }
}

impl Options {
    /// How long a change takes, asked for by a thread that does not wait for the hogs itself.
    fn change(&self, socket: &Path) -> Outcome<Times> {
        let thread = Sleeper::start();
        let mut client = Client::connect(socket)?;
        // A refusal leaves it ordinary.
        let _ = hog::take(Class::Fifo(PRIORITY + 1));
        let mut times = Times::default();
        for number in 0..self.changes as u64 {
            let wanted = wanted("lab/changed", thread.id, 1_000 + number % 2 * 500);
            let began = Instant::now();
            client.reserve(wanted)?;
            times.push(began.elapsed());
        }
        hog::take(Class::Ordinary)?;
        Ok(times)
    }

    /// The processor time of the daemon without a request, in percent of a processor.
    fn watch_idle(&self, daemon: &Daemon) -> Outcome<f64> {
        let before = usage::processor_time(daemon.process.id())?;
        let began = Instant::now();
        thread::sleep(Duration::from_secs(self.idle));
        let used = usage::processor_time(daemon.process.id())?.saturating_sub(before);
        Ok(used.as_secs_f64() / began.elapsed().as_secs_f64() * 100.0)
    }
}

fn text(line: &Value) -> String {
    let figure = |key: &str| line[key].as_f64().unwrap_or_default();
    format!(
        "{} kills of the daemon beside {} % hogs, {} reserves ({}): none lost, {} left at the end; \
         held again after {:.1} ms (p50), {:.1} (worst)\na change takes {:.2} ms (p50), {:.2} (p99), \
         {:.2} (worst); the idle daemon takes {:.4} % of a processor",
        line["kills"],
        line["hogs"],
        line["reserves"],
        line["in_force"],
        line["left"],
        figure("back_p50_ms"),
        figure("back_worst_ms"),
        figure("change_p50_ms"),
        figure("change_p99_ms"),
        figure("change_worst_ms"),
        figure("idle_percent"),
    )
}

struct Daemon {
    process: Process,
}

impl Daemon {
    fn start(socket: &Path) -> Outcome<Daemon> {
        let role = Role::own(Options::NAME, Orders { socket: socket.into() })?;
        let mut process = Process::start(&role)?;
        if process.line()?.is_empty() {
            bail!("the daemon did not start: its words are above");
        }
        Ok(Daemon { process })
    }
}

/// A thread that does nothing, until this is dropped.
struct Sleeper {
    id: i32,
    _until: Sender<()>,
}

impl Sleeper {
    fn start() -> Sleeper {
        let (until, told) = channel::<()>();
        let (tell, id) = channel();
        thread::spawn(move || {
            let _ = tell.send(gettid().as_raw_nonzero().get());
            let _ = told.recv();
        });
        Sleeper { id: id.recv().unwrap_or_default(), _until: until }
    }
}

fn wanted(path: &str, thread: i32, runtime_us: u64) -> Wanted {
    let cpu = Cpu { runtime_us, deadline_us: 100_000, period_us: 100_000 };
    Wanted { path: path.into(), thread: Some(thread), cpu: Some(cpu), ..Wanted::default() }
}

fn classes(threads: &[Sleeper]) -> Outcome<Vec<Class>> {
    let of = |thread: &Sleeper| Ok(class(Pid::from_raw(thread.id))?);
    threads.iter().map(of).collect()
}
