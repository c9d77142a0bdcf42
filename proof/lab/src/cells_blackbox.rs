//! As `blackbox`, over a system of cells: clients in one cell call the objects of another over four
//! links, while nodes, seats, links and whole cells are struck.

use std::path::PathBuf;
use std::process;
use std::time::{Duration, Instant};

use serde_json::json;
use wire::Random;

use harness::cluster::wall;
use harness::objects::clients::Habit;
use harness::objects::evidence::{self, Finding, Tally};
use harness::system::{Place, Plan, System, Trial};
use harness::{Experiment, Outcome, Run, machine, name};

mod faults;

use faults::{Fault, Kind};

/// The tree: clients are in the last cell.
const CELLS: [(&str, usize); 5] =
    [("porto", 3), ("a.porto", 3), ("b.porto", 3), ("a.b.porto", 3), ("a.a.porto", 3)];

/// The called group, and its cell.
const GROUP: &str = "a.b.porto:objects";
const CALLEE: &str = "a.b.porto";

/// So many faults strike before the histories are checked and others begun.
const ROUND: usize = 10;

/// Calls that must be answered after a fault before the next strikes.
const AFTERWARDS: u64 = 20;

/// Faults strike the cells of a system while clients record what they see: is it linearizable?
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How many faults strike.
    #[arg(long, default_value_t = 200)]
    faults: usize,
    /// No further fault strikes after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Which kinds; all if none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    kinds: Vec<Kind>,
    /// One way between two cells, in milliseconds.
    #[arg(long, default_value_t = 2.0)]
    delay_ms: f64,
    /// Clients that call all the time.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Decides faults, calls and pauses; drawn and told if it is not given. The processes'
    /// schedules still differ between runs.
    #[arg(long)]
    seed: Option<u64>,
    /// Where histories and logs are left if something is wrong.
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

/// A run in its course.
struct Course<'a> {
    options: &'a Options,
    run: &'a Run,
    trial: Trial,
    struck: usize,
}

impl Experiment for Options {
    const NAME: &'static str = "cells-blackbox";
    const SMOKE: &'static str = "--faults 2 --clients 2 --kinds kill,cut-link";

    fn impossible(&self) -> Option<String> {
        self.place.impossible()
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let seed = self.seed.unwrap_or_else(wall);
        eprintln!("on {}; seed {seed}; {}", machine::description(), self.place.build());
        let delay = Duration::from_secs_f64(self.delay_ms / 1e3);
        let plan = Plan { objects: vec![CALLEE], ..self.place.plan(&CELLS, delay) };
        let from = (CELLS.len() - 1, GROUP);
        let system = System::start(&plan)?;
        let trial = Trial::start(system, from, self.clients, Habit::default(), seed)?;
        let mut course = Course { options: self, run, trial, struck: 0 };
        let found = course.faults(seed).and_then(|()| course.trial.finish()).err();
        course.summarize(seed, found.is_some());
        let Some(finding) = found else {
            return evidence::undecided(&course.trial.tally.undecided)
                .map_or(Ok(()), |why| Err(why.into()));
        };
        let place = format!("steadfast-cells-blackbox-{seed}-{}", process::id());
        let folder = self.out.clone().unwrap_or_else(|| std::env::temp_dir().join(place));
        course.trial.leave(&folder, &finding)?;
        let (text, struck) = (&finding.text, course.struck);
        Err(format!(
            "after {struck} faults of seed {seed}: {text}histories, faults and logs are in {}; \
             docs/linearizability.md says how to read them",
            folder.display()
        )
        .into())
    }
}

impl Course<'_> {
    /// All faults, with a verdict on the records every [`ROUND`].
    fn faults(&mut self, seed: u64) -> Result<(), Finding> {
        let Options { faults, seconds, ref kinds, .. } = *self.options;
        let kinds = if kinds.is_empty() { Kind::ALL } else { kinds };
        let mut random = Random::new(seed);
        self.trial.wait_for_answers(AFTERWARDS)?;
        for number in 1..=faults {
            if seconds.is_some_and(|most| self.trial.took() > Duration::from_secs(most)) {
                break;
            }
            let fault = Fault::draw(kinds, &self.trial.system, &mut random);
            self.strike(number, &fault)?;
            if number % ROUND == 0 {
                self.trial.judge_round()?;
            }
        }
        Ok(())
    }

    /// One fault, until all is well again.
    fn strike(&mut self, number: usize, fault: &Fault) -> Result<(), Finding> {
        self.trial.clients()?.forget_gap();
        self.trial.note(&format!("{fault:?}"));
        self.struck += 1;
        let began = Instant::now();
        fault.strike(&mut self.trial.system)?;
        self.trial.system.wait_until_whole()?;
        let well = began.elapsed().as_secs_f64() * 1e3;
        self.trial.wait_for_answers(AFTERWARDS)?;
        let gap = self.trial.clients()?.gap();
        let (kind, span) = (name(fault.kind), fault.span.as_millis() as u64);
        let cell = self.trial.system.path(fault.site);
        self.trial.tally.gap(&kind, gap);
        let line = json!({
            "measure": "cells-blackbox-fault", "number": number, "fault": kind, "cell": cell,
            "host": fault.host, "span_ms": span, "gap_ms": gap, "well_ms": well,
        });
        self.run.tell(&line, || {
            format!(
                "{number:5} {kind:<10} {cell:<10} {span:5} ms: gap {gap:.1} ms, well after \
                 {well:.0} ms"
            )
        });
        Ok(())
    }

    fn summarize(&self, seed: u64, broken: bool) {
        let (took, struck) = (self.trial.took(), self.struck);
        let Tally { ends: (answered, failed, unknown), keys, ref undecided, .. } = self.trial.tally;
        let line = json!({
            "peer": "steadfast", "measure": "cells-blackbox", "seed": seed, "faults": struck,
            "seconds": took.as_secs_f64(), "answered": answered, "failed": failed,
            "unknown": unknown, "objects": keys, "undecided": undecided.len(),
            "violation": broken, "kinds": self.trial.tally.json(),
        });
        self.run.tell(&line, || {
            format!(
                "{}{struck} faults in {took:.0?}: {answered} calls answered, {failed} not \
                 executed, {unknown} of unknown end; {keys} objects: {}",
                self.trial.tally.table(),
                evidence::verdict(broken)
            )
        });
    }
}
