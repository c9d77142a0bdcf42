//! The evaluation of `star.txt` (section 6): what checkpoints cost, how long a recovery takes, and
//! how much slower applications become; beside CRIU, which saves whole processes.

use std::path::PathBuf;

use harness::{Experiment, Outcome, Run, report};
use serde_json::{Value, json};

mod applications;
mod arena;
mod checkpoints;
mod criu;
mod logs;
mod orders;
mod paper;
mod recovery;
mod sending;
mod setting;
mod table;

use orders::{EXPERIMENT, Orders};
use setting::{Found, Setting};

const EXAMPLES: &str = "\
Examples:
  steadfast-papers star --part logs                       figure 2
  steadfast-papers star --part checkpoints                figures 3 and 4
  steadfast-papers star --part recovery                   figure 5
  steadfast-papers star --part table --pairs 1            table 2 at full size: most of two hours
  steadfast-papers star --part table --way incremental --gauss 2048 --matmul 4096 --fft 10000 --interval 5
  steadfast-papers star --part criu --criu ./criu         256 MiB, in turn with CRIU (root)
  steadfast-papers star --python venv/bin/python3         with the examples in Python, too

The Python has to have the package of this repository.";

/// STAR's evaluation: messages on disks, checkpoints by size and copies, recovery, applications; and CRIU beside it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Only this part; several: one after the other. All by default.
    #[arg(long, value_enum)]
    part: Vec<Part>,
    #[command(flatten)]
    logs: logs::Knobs,
    #[command(flatten)]
    checkpoints: checkpoints::Knobs,
    #[command(flatten)]
    recovery: recovery::Knobs,
    #[command(flatten)]
    table: table::Knobs,
    #[command(flatten)]
    criu: criu::Knobs,
    #[command(flatten)]
    setting: Setting,
    /// A folder for star.json and the charts.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// A part of the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Figure 2.
    Logs,
    /// Figures 3 and 4.
    Checkpoints,
    /// Figure 5.
    Recovery,
    /// Tables 1 and 2.
    Table,
    /// The same memory under CRIU.
    Criu,
}

impl Experiment for Options {
    const NAME: &'static str = EXPERIMENT;
    const SMOKE: &'static str = "--queue 0,4 --messages 64 --repeats 1 --passes 1 --sizes 100 --copies 1,2 --rounds 1 --recover 100 --kills 1 \
                                 --gauss 64 --matmul 128 --fft 20 --interval 0.05 --pairs 1 --mib 4 \
                                 --percent 10 --dumps 1";

    fn run(&self, run: &Run) -> Outcome<()> {
        let (setting, mut found) = (&self.setting, Found::default());
        let all = [Part::Logs, Part::Checkpoints, Part::Recovery, Part::Table, Part::Criu];
        for part in if self.part.is_empty() { &all[..] } else { &self.part } {
            match part {
                Part::Logs => logs::run(&self.logs, setting, run, &mut found)?,
                Part::Checkpoints => checkpoints::run(&self.checkpoints, setting, run, &mut found)?,
                Part::Recovery => recovery::run(&self.recovery, setting, run, &mut found)?,
                Part::Table => table::run(&self.table, setting, run, &mut found)?,
                Part::Criu => criu::run(&self.criu, setting, run, &mut found)?,
            }
        }
        if let Some(out) = &self.out {
            report::write(out, "star.json", &json!(found.rows), found.charts)?;
        }
        Ok(())
    }

    fn live(orders: Value) -> Outcome<()> {
        serde_json::from_value::<Orders>(orders)?.live()
    }
}
