//! The options of `steadfast job`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use job::Log;
use wire::rank::Every;

use crate::commands::at::At;
use crate::jobs::submit;

const EXAMPLES: &str = "\
Examples:
  steadfast job run -n 4 -- python examples/jobs/matmul.py
  steadfast job run --every 20s --detach --name fft -- python examples/jobs/fft.py
  steadfast job list
  steadfast job show fft
  steadfast job logs fft --rank 2
  steadfast job checkpoint fft
  steadfast job kill fft
  steadfast job resume fft
  steadfast job verify fft
  steadfast job restore fft --out fft-state
  steadfast job forget fft

A job is a program that runs as so many ranks until all have ended. Each rank saves its arrays while
it computes, and goes on from there when its process, its agent or its host dies. Any program can be
a rank; one without our library begins anew at each start.

Where jobs run: on the cluster that an option or the context names, else on that of this host's node,
else on one of this machine's own, which `job run` starts and which ends when it has nothing to do.

Exit codes:
  0  the command succeeded: of `run`, all ranks have finished
  1  it failed: standard error has the reason and the remedy
  2  the command line is wrong";

/// Runs programs as ranks that go on after any loss, and looks after them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub what: What,
}

#[derive(Subcommand)]
pub enum What {
    Run(Run),
    /// Shows all jobs.
    #[command(
        after_help = "Examples:\n  steadfast job list\n  steadfast job list --json | jq '.jobs'"
    )]
    List {
        #[command(flatten)]
        how: How,
    },
    /// Shows a job: each rank's turn, rate, time to go and last checkpoint, and each recovery.
    #[command(after_help = "Examples:\n  steadfast job show matmul")]
    Show {
        /// The job.
        name: String,
        #[command(flatten)]
        how: How,
    },
    /// Shows what a rank has printed, at this machine.
    #[command(
        after_help = "Examples:\n  steadfast job logs matmul --rank 2\n  steadfast job logs matmul --follow"
    )]
    Logs {
        /// The job.
        name: String,
        /// The rank.
        #[arg(long, default_value_t = 0)]
        rank: u32,
        /// Go on with what it prints, until the job is over.
        #[arg(long)]
        follow: bool,
        #[command(flatten)]
        disk: Disk,
    },
    /// Has each rank save what it has, at its next safe point.
    #[command(after_help = "Examples:\n  steadfast job checkpoint matmul")]
    Checkpoint {
        /// The job.
        name: String,
        #[command(flatten)]
        how: How,
    },
    /// Stops a job. Its images stay: `resume` goes on from them.
    #[command(after_help = "Examples:\n  steadfast job kill matmul")]
    Kill {
        /// The job.
        name: String,
        #[command(flatten)]
        how: How,
    },
    /// Goes on with a job that was stopped, or has failed.
    #[command(after_help = "Examples:\n  steadfast job resume matmul")]
    Resume {
        /// The job.
        name: String,
        /// Return at once.
        #[arg(long)]
        detach: bool,
        /// From now on let ranks go on at hosts with other processors. Also of a job that runs.
        #[arg(long)]
        any_processor: bool,
        /// From now on let ranks start although the program has changed.
        #[arg(long)]
        any_program: bool,
        #[command(flatten)]
        how: How,
    },
    /// Forgets a job that is over or stopped. Its images are removed.
    #[command(after_help = "Examples:\n  steadfast job forget matmul")]
    Forget {
        /// The job.
        name: String,
        #[command(flatten)]
        how: How,
    },
    /// Reads every copy of a job's images on this machine, and names each damage.
    #[command(after_help = "Examples:\n  steadfast job verify matmul")]
    Verify {
        /// The job.
        name: String,
        #[command(flatten)]
        disk: Disk,
    },
    /// Writes a job's arrays as .npy files, also when no node runs.
    #[command(
        after_help = "Examples:\n  steadfast job restore matmul --out state\n  steadfast job restore matmul --results --out results"
    )]
    Restore {
        /// The job.
        name: String,
        /// Write into this folder: rank-0/NAME.npy, and so on.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// The state of this generation. Default: of each rank, the newest that can be read.
        #[arg(long)]
        generation: Option<u64>,
        /// Write only the results that the program has delivered.
        #[arg(long)]
        results: bool,
        #[command(flatten)]
        disk: Disk,
    },
    /// Keeps the nodes of this machine's own cluster while there is something to do.
    #[command(hide = true)]
    Keep {
        /// How many, if there were none.
        #[arg(long, default_value_t = 1)]
        nodes: u32,
    },
}

const RUNS: &str = "\
Examples:
  steadfast job run -n 4 -- python examples/jobs/matmul.py
  steadfast job run -n 4 --every 20s --nodes 3 -- python examples/jobs/matmul.py
  steadfast job run --detach --name long -- ./simulate --steps 1000000
  steadfast job run --or-resume --name long -- ./simulate --steps 1000000

An interrupt stops the job; `steadfast job resume NAME` goes on with it.";

/// Runs a program as ranks, and waits until all have finished.
#[derive(clap::Args)]
#[command(after_help = RUNS)]
pub struct Run {
    /// Ranks.
    #[arg(short = 'n', long, default_value_t = 1)]
    pub ranks: u32,
    /// The job's name. Default: that of its script.
    #[arg(long)]
    pub name: Option<String>,
    /// Go on with the job of this name, if there is one; if it has finished, that is all. For scripts
    /// that are run again.
    #[arg(long, requires = "name")]
    pub or_resume: bool,
    /// When ranks save: auto (as it pays, by the measured cost), never, a time such as 20s, or turns
    /// such as 50turns.
    #[arg(long, default_value = "auto", value_parser = submit::every)]
    pub every: Every,
    /// Copies of each image, at so many nodes, 1 to 4.
    #[arg(long, default_value_t = 1)]
    pub copies: u8,
    /// Save full images only.
    #[arg(long)]
    pub full: bool,
    /// Ranks wait until their image is written.
    #[arg(long)]
    pub blocking: bool,
    /// A label that a node must have. May be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub label: Vec<String>,
    /// Mebibytes of memory that a rank needs.
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    pub memory: u64,
    /// Let ranks go on at hosts with other processors than where the job began. Results may then differ
    /// in their last bits.
    #[arg(long)]
    pub any_processor: bool,
    /// Let ranks start although the program, or the script, has changed since the job was submitted.
    #[arg(long)]
    pub any_program: bool,
    /// After the loss of a rank, only that one goes back (log). With `group`, all go back to states that
    /// fit together where it cannot go on so, because the program is not deterministic; they save at
    /// the same turns (--every 50turns).
    #[arg(long, value_enum, default_value = "log")]
    pub recovery: Rollback,
    /// Where messages between ranks are kept: in their sender's memory and images (sender); also on the
    /// disks of its host and, by --copies, of others, before the receiver has them (pessimistic), or
    /// behind it (optimistic:N), where the sender waits while 2 N messages are not there yet. A receiver
    /// then need not wait until a lost sender has computed them again.
    #[arg(long, value_name = "sender|optimistic:N|pessimistic", default_value = "sender")]
    pub log: Log,
    /// End a rank that reaches no safe point (a turn) for so long, such as 10min, and start it again.
    #[arg(long, value_name = "TIME", value_parser = submit::span)]
    pub stall: Option<Duration>,
    /// A variable of the ranks' environment: NAME=VALUE, or NAME for the value that it has here. PATH,
    /// HOME and what finds Python's modules are there anyway. May be repeated.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = submit::variable)]
    pub env: Vec<(String, Option<String>)>,
    /// Nodes of this machine's own cluster, if one has to be made.
    #[arg(long, default_value_t = 1)]
    pub nodes: u32,
    /// Return as soon as the job is submitted.
    #[arg(long)]
    pub detach: bool,
    #[command(flatten)]
    pub how: How,
    /// The program and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub command: Vec<String>,
}

/// How a job goes on after the loss of a rank.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Rollback {
    /// Only the rank that was lost goes back.
    Log,
    /// All go back, where that does not do.
    Group,
}

impl From<Rollback> for job::Rollback {
    fn from(recovery: Rollback) -> Self {
        match recovery {
            Rollback::Log => job::Rollback::Log,
            Rollback::Group => job::Rollback::Group,
        }
    }
}

#[derive(clap::Args)]
pub struct How {
    #[command(flatten)]
    pub at: At,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
pub struct Disk {
    /// A folder of images, as [jobs] folder of a node has it. May be repeated. Default: those of
    /// this machine's own cluster.
    #[arg(long, value_name = "DIR")]
    pub folder: Vec<PathBuf>,
    #[command(flatten)]
    pub at: At,
}
