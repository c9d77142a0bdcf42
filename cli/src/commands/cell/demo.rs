//! `steadfast cell demo`: a system of seven cells on this machine, under load, whose cells lose
//! their seat, and are lost whole.
//!
//! The tree is that of Stheno's measurements (`stheno.txt`, section 4): four nodes in the root, and
//! two cells below each cell, down to the third level. Each has three nodes here, so that each can
//! lose one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::super::Failure;

mod report;
mod system;
mod traffic;

use report::{Fault, Report, ms};
use system::{System, path};
use traffic::Traffic;

const EXAMPLES: &str = "\
Examples:
  steadfast cell demo
  steadfast cell demo --json | jq .faults

Exit codes:
  0  every acknowledged call was executed once
  1  it was not so, or the run could not be finished
  2  the command line is wrong";

/// The cell whose clients call, and those that they call: carried over four links, and directly.
const CALLER: &str = "b.b.porto";
const CARRIED: &str = "a.a.porto";
const DIRECT: &str = "b.a.porto";

/// The cell that loses its seat, and the one that is lost whole.
const UNSEATED: &str = "a.porto";
const SILENT: &str = "b.porto";

/// Calls flow undisturbed for so long, and after each fault.
const CALM: Duration = Duration::from_secs(3);

/// A cell is silent for so long.
const SILENCE: Duration = Duration::from_secs(4);

/// The system stands within this time.
const BEGINS: Duration = Duration::from_secs(60);

/// A fault is mended within this time.
const MENDED: Duration = Duration::from_secs(20);

/// Runs seven cells on this machine, takes a seat and a whole cell away while clients call over
/// four links, and counts that nothing was lost or done twice.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Calls a second, of all clients together.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..=5_000))]
    rate: u32,
    /// The report as one JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Keep the folder with the keys, configurations and logs, and say where it is.
    #[arg(long)]
    keep: bool,
}

/// Runs the demonstration.
pub fn run(args: &Args) -> Result<(), Failure> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, interrupt.clone()).map_err(Failure::failed)?;
    }
    let mut stage = Stage { interrupt, system: System::make(CARRIED)? };
    let result = stage.play(args);
    if args.keep {
        let folder = stage.system.keep();
        eprintln!("keys, configurations and logs are in {}", folder.display());
    }
    let report = result?;
    let json = || serde_json::to_string(&report).map(|text| text + "\n");
    let text = if args.json { json().map_err(Failure::failed)? } else { report.text() };
    super::super::print(&text)?;
    match report.passed {
        true => Ok(()),
        false => Err(Failure::Failed("calls were lost or executed twice".into())),
    }
}

struct Stage {
    interrupt: Arc<AtomicBool>,
    system: System,
}

impl Stage {
    fn play(&mut self, args: &Args) -> Result<Report, Failure> {
        let began = Instant::now();
        let nodes = self.system.start()?;
        eprintln!("{nodes} nodes of {} cells start", self.system.cells().len());
        let all = self.system.cells().len() - 1;
        self.until("all cells are attached", BEGINS, |system| Ok(system.attached()? == all))?;
        let stood_ms = ms(began.elapsed());
        eprintln!("{}all stand after {:.1} s", self.system.tree()?, stood_ms / 1e3);

        let traffic = Traffic::begin(&self.system, CALLER, [CARRIED, DIRECT], args.rate)?;
        eprintln!("clients of {CALLER} call {CARRIED}, carried, and {DIRECT}, directly");
        self.pass(CALM)?;
        let calm = traffic.waits();
        let faults = vec![self.unseat(&traffic)?, self.silence(&traffic)?];
        let counts = traffic.end();
        let mut passed = true;
        for count in &counts {
            let sum = self.system.sum(CALLER, &count.group)?;
            passed &= (count.answered..=count.answered + count.unknown).contains(&sum);
        }
        Ok(Report { nodes, stood_ms, calm, faults, counts, passed })
    }

    /// Kills the node that has the links, and starts it again.
    fn unseat(&mut self, traffic: &Traffic) -> Result<Fault, Failure> {
        let path = path(UNSEATED);
        let seat = self.system.seat(&path)?;
        traffic.forget_waits();
        self.system.kill(&path, seat)?;
        let began = Instant::now();
        eprintln!("{path} loses its seat, {seat}: killed");
        self.until("another node is the seat", MENDED, |system| Ok(system.seat(&path)? != seat))?;
        let mended = began.elapsed();
        self.pass(CALM)?;
        let waits = traffic.waits();
        self.system.restart(&path, seat)?;
        self.until("it is back", MENDED, |system| Ok(system.members(&path)? == 3))?;
        let what = format!("{path} lost its seat, {seat}, killed");
        Ok(Fault { what, then: "another node was the seat".into(), after_ms: ms(mended), waits })
    }

    /// Stops all nodes of a cell, and lets them go on.
    fn silence(&mut self, traffic: &Traffic) -> Result<Fault, Failure> {
        let (path, root) = (path(SILENT), path("porto"));
        let below = self.system.below(&path);
        traffic.forget_waits();
        self.system.stop(&path)?;
        let began = Instant::now();
        eprintln!("{path} is silent: all its nodes are stopped");
        self.until("its cells are attached to the root", MENDED, |system| {
            let there = system.children(&root)?;
            Ok(below.iter().all(|cell| there.contains(cell)))
        })?;
        let mended = began.elapsed();
        self.pass(SILENCE.saturating_sub(mended))?;
        self.system.go_on(&path)?;
        self.until("the tree is as before", MENDED, |system| {
            let there = system.children(&root)?;
            Ok(there.contains(&path) && !below.iter().any(|cell| there.contains(cell)))
        })?;
        self.pass(CALM)?;
        let (waits, then) = (traffic.waits(), "its cells were attached to the root".into());
        let what = format!("{path} was silent for {SILENCE:?}, all its nodes stopped");
        Ok(Fault { what, then, after_ms: ms(mended), waits })
    }

    /// Lets time go by.
    fn pass(&self, span: Duration) -> Result<(), Failure> {
        let end = Instant::now() + span;
        while Instant::now() < end {
            self.look()?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn until(
        &mut self,
        what: &str,
        within: Duration,
        mut is: impl FnMut(&mut System) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let end = Instant::now() + within;
        // A node that has just been hit gives no answer, or an old one.
        while !is(&mut self.system).unwrap_or(false) {
            self.look()?;
            self.system.check()?;
            if Instant::now() > end {
                let tree = self.system.tree().unwrap_or_else(Failure::text);
                let why = format!("{what}: not within {within:?}; --keep leaves the logs\n{tree}");
                return Err(Failure::Failed(why));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn look(&self) -> Result<(), Failure> {
        match self.interrupt.load(Ordering::Relaxed) {
            true => Err(Failure::Failed("interrupted: all processes are ended".into())),
            false => Ok(()),
        }
    }
}
