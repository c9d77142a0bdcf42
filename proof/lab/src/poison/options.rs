//! The faults, and the groups that they strike.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use steadfast::{Durability, GroupOptions, Style};

use harness::objects::Death;

/// Requests that kill the programs that execute them, and the end of all programs or nodes: is it
/// linearizable?
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The styles of the group, one after the other, each with a cluster of its own; all that have
    /// a state if none is named.
    #[arg(long, value_delimiter = ',', value_parser = named::<Style>)]
    pub style: Vec<Style>,
    /// Where the group is kept: memory or disk; both if nothing is named, where the style permits
    /// it.
    #[arg(long, value_delimiter = ',', value_parser = named::<Durability>)]
    pub durability: Vec<Durability>,
    /// Calls of all clients together.
    #[arg(long, default_value_t = 100_000)]
    pub calls: u64,
    /// How many of them have a handler that dies.
    #[arg(long, default_value_t = 100)]
    pub poisonous: u64,
    /// How handlers die.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Death::Abort])]
    pub deaths: Vec<Death>,
    /// The program of a replica is killed by hand now and then at the same time.
    #[arg(long)]
    pub kill: bool,
    /// Instead of poisonous calls, all programs are killed at once so often while calls flow.
    #[arg(long, value_name = "N")]
    pub all_programs: Option<usize>,
    /// Instead of poisonous calls, all nodes are killed at once so often while calls flow (groups
    /// on disk alone).
    #[arg(long, value_name = "N")]
    pub all_nodes: Option<usize>,
    /// Instead of poisonous calls, the state is saved while calls flow, and the group ends and goes
    /// on with it, here and in a new cluster.
    #[arg(long)]
    pub backup: bool,
    /// At the 99th percentile other clients wait no longer than this for their next answer around a
    /// poisonous call.
    #[arg(long, default_value_t = 50)]
    pub gap_ms: u64,
    /// Clients that call all the time.
    #[arg(long, default_value_t = 8)]
    pub clients: usize,
    /// A client pauses no longer than this between calls, in microseconds.
    #[arg(long, default_value_t = 500)]
    pub pause: u64,
    /// Decides calls, pauses and what is killed; drawn and told if it is not given. The processes'
    /// schedules still differ between runs.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Where histories and logs are left if something is wrong: a folder for each style there.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub out: PathBuf,
    /// Where nodes keep groups on disk: a folder of its own is made there and removed.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    pub storage: PathBuf,
}

/// The fault of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Requests,
    AllPrograms(usize),
    AllNodes(usize),
    Backup,
}

impl Mode {
    pub fn name(self) -> &'static str {
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

impl Options {
    pub fn modes(&self) -> Vec<Mode> {
        let ends = [self.all_programs.map(Mode::AllPrograms), self.all_nodes.map(Mode::AllNodes)];
        let backup = self.backup.then_some(Mode::Backup);
        let modes: Vec<Mode> = ends.into_iter().flatten().chain(backup).collect();
        if modes.is_empty() { vec![Mode::Requests] } else { modes }
    }

    /// The groups that it strikes, by the options and by the possible combinations.
    pub fn groups(&self, mode: Mode) -> Vec<GroupOptions> {
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

    pub fn longest_gap(&self) -> Duration {
        Duration::from_millis(self.gap_ms)
    }
}

/// A value by the name that files and JSON know it by.
fn named<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, String> {
    let deserializer: StrDeserializer<'_, Error> = text.into_deserializer();
    T::deserialize(deserializer).map_err(|error| error.to_string())
}
