//! Requests that kill the programs of a group's replicas, and the end of all programs or all nodes
//! at once, while clients record what they see.
//!
//! A group of three replicas is served by programs. Its clients are those of the black box, and so
//! are its objects and its verdict. See docs/protocol/poison.md.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use steadfast::{Durability, GroupOptions, Style};

use harness::cluster::wall;
use harness::objects::Death;
use harness::{Experiment, Outcome, Run, machine};

mod backup;
mod ends;
mod gaps;
mod requests;
mod stage;

use stage::Stage;

/// Requests that kill the programs that execute them, and the end of all programs or nodes: is it
/// linearizable?
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The styles of the group, one after the other, each with a cluster of its own; all that have
    /// a state if none is named.
    #[arg(long, value_delimiter = ',', value_parser = named::<Style>)]
    style: Vec<Style>,
    /// Where the group is kept: memory or disk; both if nothing is named, where the style permits
    /// it.
    #[arg(long, value_delimiter = ',', value_parser = named::<Durability>)]
    durability: Vec<Durability>,
    /// Calls of all clients together.
    #[arg(long, default_value_t = 100_000)]
    calls: u64,
    /// How many of them have a handler that dies.
    #[arg(long, default_value_t = 100)]
    poisonous: u64,
    /// How handlers die.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Death::Abort])]
    deaths: Vec<Death>,
    /// The program of a replica is killed by hand now and then at the same time.
    #[arg(long)]
    kill: bool,
    /// Instead of poisonous calls, all programs are killed at once so often while calls flow.
    #[arg(long, value_name = "N")]
    all_programs: Option<usize>,
    /// Instead of poisonous calls, all nodes are killed at once so often while calls flow (groups
    /// on disk alone).
    #[arg(long, value_name = "N")]
    all_nodes: Option<usize>,
    /// Instead of poisonous calls, the state is saved while calls flow, and the group ends and goes
    /// on with it, here and in a new cluster.
    #[arg(long)]
    backup: bool,
    /// At the 99th percentile other clients wait no longer than this for their next answer around a
    /// poisonous call.
    #[arg(long, default_value_t = 50)]
    gap_ms: u64,
    /// Clients that call all the time.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// A client pauses no longer than this between calls, in microseconds.
    #[arg(long, default_value_t = 500)]
    pause: u64,
    /// Decides calls, pauses and what is killed; drawn and told if it is not given. What the
    /// processes make of it differs.
    #[arg(long)]
    seed: Option<u64>,
    /// Where histories and logs are left if something is wrong: a folder for each style there.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    out: PathBuf,
    /// Where nodes keep groups on disk: a folder of its own is made there and removed.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    storage: PathBuf,
}

/// What is done to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Requests,
    AllPrograms(usize),
    AllNodes(usize),
    Backup,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Requests => "requests",
            Mode::AllPrograms(_) => "all-programs",
            Mode::AllNodes(_) => "all-nodes",
            Mode::Backup => "backup",
        }
    }

    /// It leaves nothing in memory.
    fn needs_disk(self) -> bool {
        matches!(self, Mode::AllNodes(_))
    }
}

impl Experiment for Options {
    const NAME: &'static str = "poison";
    const SMOKE: &'static str =
        "--style semi-active --durability memory --calls 300 --poisonous 2 --clients 2";

    fn run(&self, run: &Run) -> Outcome<()> {
        if self.poisonous > self.calls / 2 {
            return Err("--poisonous: at most half of --calls".into());
        }
        let seed = self.seed.unwrap_or_else(wall);
        eprintln!("on {}; seed {seed}", machine::description());
        let mut broken = Vec::new();
        for mode in self.modes() {
            for group in self.groups(mode) {
                let mut stage = Stage::start(self, mode, group, seed)?;
                let outcome = match mode {
                    // How long clients wait says nothing in the smallest size.
                    Mode::Requests => {
                        requests::play(&mut stage, (!run.smoke).then(|| self.longest_gap()))
                    }
                    Mode::AllPrograms(times) => ends::play(&mut stage, times, ends::programs),
                    Mode::AllNodes(times) => ends::play(&mut stage, times, ends::nodes),
                    Mode::Backup => backup::play(&mut stage),
                };
                broken.extend(stage.close(run, outcome)?);
            }
        }
        if broken.is_empty() { Ok(()) } else { Err(broken.concat().into()) }
    }
}

impl Options {
    fn modes(&self) -> Vec<Mode> {
        let ends = [self.all_programs.map(Mode::AllPrograms), self.all_nodes.map(Mode::AllNodes)];
        let backup = self.backup.then_some(Mode::Backup);
        let modes: Vec<Mode> = ends.into_iter().flatten().chain(backup).collect();
        if modes.is_empty() { vec![Mode::Requests] } else { modes }
    }

    /// The groups that it is done to, by what is asked for and what may be.
    fn groups(&self, mode: Mode) -> Vec<GroupOptions> {
        let styles = if self.style.is_empty() { &Style::ALL[..] } else { &self.style };
        let kept = [Durability::Memory, Durability::Disk];
        let kept = if self.durability.is_empty() { &kept[..] } else { &self.durability };
        let pairs = styles.iter().flat_map(|style| kept.iter().map(move |kept| (*style, *kept)));
        let possible = pairs.filter(|(style, kept)| match kept {
            Durability::Memory => *style != Style::Stateless && !mode.needs_disk(),
            Durability::Disk => style.has_state(),
        });
        let group = |(style, durability)| GroupOptions { style, durability, ..Default::default() };
        possible.map(group).collect()
    }

    fn longest_gap(&self) -> Duration {
        Duration::from_millis(self.gap_ms)
    }
}

/// A value by the name that files and JSON know it by.
fn named<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, String> {
    let deserializer: StrDeserializer<'_, Error> = text.into_deserializer();
    T::deserialize(deserializer).map_err(|error| error.to_string())
}
