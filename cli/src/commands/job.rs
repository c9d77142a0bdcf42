//! `steadfast job`: programs as ranks that go on after any loss.

use std::env;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use admin::jobs::JobsStatus;
use agent::images::log_of;
use clap::Subcommand;
use job::{Command, Job, JobState, Spec};
use os::clock::wall_clock;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use steadfast::admin::Client as AdminClient;
use wire::Time;
use wire::rank::Every;

use super::at::At;
use super::{Failure, finish, print};
use crate::jobs::{images, own, reach, show, submit, watch};

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
    what: What,
}

#[derive(Subcommand)]
enum What {
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
struct Run {
    /// Ranks.
    #[arg(short = 'n', long, default_value_t = 1)]
    ranks: u32,
    /// The job's name. Default: that of its script.
    #[arg(long)]
    name: Option<String>,
    /// Go on with the job of this name, if there is one; if it has finished, that is all. For scripts
    /// that are run again.
    #[arg(long, requires = "name")]
    or_resume: bool,
    /// When ranks save: auto (as it pays, by the measured cost), never, or a time such as 20s.
    #[arg(long, default_value = "auto", value_parser = submit::every)]
    every: Every,
    /// Copies of each image, at so many nodes, 1 to 4.
    #[arg(long, default_value_t = 1)]
    copies: u8,
    /// Save full images only.
    #[arg(long)]
    full: bool,
    /// Ranks wait until their image is written.
    #[arg(long)]
    blocking: bool,
    /// A label that a node must have. May be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// Mebibytes of memory that a rank needs.
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    memory: u64,
    /// A variable of the ranks' environment: NAME=VALUE, or NAME for the value that it has here. PATH,
    /// HOME and what finds Python's modules are there anyway. May be repeated.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = submit::variable)]
    env: Vec<(String, Option<String>)>,
    /// Nodes of this machine's own cluster, if one has to be made.
    #[arg(long, default_value_t = 1)]
    nodes: u32,
    /// Return as soon as the job is submitted.
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    how: How,
    /// The program and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

#[derive(clap::Args)]
struct How {
    #[command(flatten)]
    at: At,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Disk {
    /// A folder of images, as [jobs] folder of a node has it. May be repeated. Default: those of
    /// this machine's own cluster.
    #[arg(long, value_name = "DIR")]
    folder: Vec<PathBuf>,
    #[command(flatten)]
    at: At,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(match &args.what {
        What::Run(run) => start(run),
        What::List { how } => list(how),
        What::Show { name, how } => show_one(name, how),
        What::Logs { name, rank, follow, disk } => logs(name, *rank, *follow, disk),
        What::Checkpoint { name, how } => {
            steer(name, how, |job| Command::Save { job }, "each rank saves at its next safe point")
        }
        What::Kill { name, how } => steer(
            name,
            how,
            |job| Command::Kill { job },
            "it is stopped; `steadfast job resume` goes on",
        ),
        What::Resume { name, detach, how } => resume(name, *detach, how),
        What::Forget { name, how } => {
            steer(name, how, |job| Command::Forget { job }, "it is forgotten, and its images go")
        }
        What::Verify { name, disk } => verify(name, disk),
        What::Restore { name, out, generation, results, disk } => {
            restore(name, disk, (out, *generation, *results))
        }
        What::Keep { nodes } => own::keep(*nodes),
    })
}

fn start(run: &Run) -> Result<(), Failure> {
    let here = env::current_dir()
        .map_err(|error| Failure::Failed(format!("the present directory is unknown: {error}")))?;
    let mut spec = Spec {
        name: run.name.clone().unwrap_or_else(|| submit::name(&run.command, |_| false)),
        command: submit::command(&run.command, &here),
        folder: here.to_string_lossy().into_owned(),
        environment: submit::environment(&run.env)?,
        ranks: run.ranks,
        copies: run.copies,
        every: run.every,
        full: run.full,
        blocking: run.blocking,
        labels: run.label.clone(),
        memory: run.memory << 20,
    };
    submit::check(&spec)?;
    let mut node = reach::node(&run.how.at, run.nodes)?;
    if run.name.is_none() {
        let status = reach::book(&mut node, || reach::node(&run.how.at, 1))?;
        let taken = |name: &str| status.jobs.as_ref().is_some_and(|it| it.named(name).is_some());
        spec.name = submit::name(&run.command, taken);
    }
    if run.or_resume {
        let status = reach::book(&mut node, || reach::node(&run.how.at, 1))?;
        if let Some((number, job)) = status.jobs.as_ref().and_then(|it| it.named(&spec.name)) {
            return go_on((number, job), node, run.detach, &run.how);
        }
    }
    let name = spec.name.clone();
    let taken = reach::tell(&mut node, &Command::Submit(spec))?;
    let number = taken.job.ok_or_else(|| Failure::Failed("the book did not make a job".into()))?;
    if run.detach {
        return print(&format!("{name}: submitted (`steadfast job show {name}`)\n"));
    }
    eprintln!("{name}: {} ranks; `steadfast job show {name}` tells more", run.ranks);
    follow(number, node, &run.how)
}

/// Watches a job until it is over. An interrupt stops it.
fn follow(number: u64, node: AdminClient, how: &How) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGTERM, SIGINT])
        .map_err(|error| Failure::Failed(format!("cannot handle signals: {error}")))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let (seen, at) = (interrupted.clone(), how.at.clone());
    thread::spawn(move || {
        for _ in signals.forever() {
            if seen.swap(true, Ordering::Relaxed) {
                std::process::exit(1);
            }
            eprintln!("\nstopping; a second interrupt leaves the job running");
            let kill = Command::Kill { job: number };
            let told = reach::node(&at, 1).and_then(|mut node| reach::tell(&mut node, &kill));
            if let Err(Failure::Failed(why) | Failure::Usage(why)) = told {
                eprintln!("the job could not be stopped: {why}");
            }
        }
    });
    let job = watch::watch(number, node, || reach::node(&how.at, 1), how.json)?;
    if how.json {
        let json = serde_json::to_string_pretty(&job).map_err(Failure::failed)?;
        print(&format!("{json}\n"))?;
    }
    ended(&job)
}

/// The outcome of a job that was watched.
fn ended(job: &Job) -> Result<(), Failure> {
    let now = Time(wall_clock());
    let text = format!("{}: {}", job.spec.name, show::state(job, now));
    if job.state != JobState::Finished {
        return Err(Failure::Failed(text));
    }
    let restarts = match show::restarts(job) {
        0 => "without a restart".to_owned(),
        1 => "with one restart".to_owned(),
        many => format!("with {many} restarts"),
    };
    eprintln!(
        "{text}, {restarts}; `steadfast job restore {} --results --out DIR` writes its results",
        job.spec.name
    );
    Ok(())
}

/// A node of a cluster that is there, and the book.
fn known(at: &At) -> Result<(AdminClient, JobsStatus), Failure> {
    let mut node = reach::existing(at)?;
    let status = reach::book(&mut node, || reach::existing(at))?;
    Ok((node, status))
}

fn list(how: &How) -> Result<(), Failure> {
    let status = known(&how.at)?.1;
    if how.json {
        let json = serde_json::to_string_pretty(&status).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&show::list(&status.jobs.unwrap_or_default(), Time(wall_clock())))
}

fn show_one(name: &str, how: &How) -> Result<(), Failure> {
    let status = known(&how.at)?.1;
    let (_, job) = reach::named(&status, name)?;
    if how.json {
        let json = serde_json::to_string_pretty(job).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&show::show(job, Time(wall_clock())))
}

fn steer(
    name: &str,
    how: &How,
    command: impl FnOnce(u64) -> Command,
    done: &str,
) -> Result<(), Failure> {
    let (mut node, status) = known(&how.at)?;
    let (number, _) = reach::named(&status, name)?;
    let taken = reach::tell(&mut node, &command(number))?;
    if how.json {
        let json = serde_json::to_string(&taken).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&format!("{name}: {done}\n"))
}

fn resume(name: &str, detach: bool, how: &How) -> Result<(), Failure> {
    let (node, status) = known(&how.at)?;
    let found = reach::named(&status, name)?;
    go_on(found, node, detach, how)
}

fn go_on(
    (number, job): (u64, &Job),
    mut node: AdminClient,
    detach: bool,
    how: &How,
) -> Result<(), Failure> {
    match job.state {
        JobState::Finished => return ended(job),
        // One that runs is only watched.
        JobState::Running => {}
        _ => drop(reach::tell(&mut node, &Command::Resume { job: number })?),
    }
    if detach {
        return print(&format!("{}: it goes on\n", job.spec.name));
    }
    follow(number, node, how)
}

/// The job's number and its images' folders; the book, if a node answers.
fn on_disk(name: &str, disk: &Disk) -> Result<(u64, Vec<PathBuf>, Option<job::Jobs>), Failure> {
    let folders = if disk.folder.is_empty() { own::folders()? } else { disk.folder.clone() };
    let again = || reach::existing(&disk.at);
    let node = reach::there(&disk.at)?;
    let status = node.map(|mut node| reach::book(&mut node, again)).transpose()?;
    if let Some(status) = status {
        let (number, _) = reach::named(&status, name)?;
        return Ok((number, folders, status.jobs));
    }
    Err(Failure::Failed("no node answers".into())).or_else(|error| {
        // Without a node, the folder's own number names the job.
        let number = u64::from_str_radix(name, 16).map_err(|_| error)?;
        Ok((number, folders, None))
    })
}

fn verify(name: &str, disk: &Disk) -> Result<(), Failure> {
    let (number, folders, jobs) = on_disk(name, disk)?;
    let found = images::find(&folders, number, jobs.as_ref())?;
    let torn = images::torn(&folders, number)?;
    let mut verified = images::verify(&found);
    for manifest in &torn {
        let manifest = manifest.display();
        verified.text += &format!("{manifest}: DAMAGED\n  the manifest is torn or rotten\n");
    }
    verified.damages += torn.len();
    print(&verified.text)?;
    match verified.damages {
        0 if verified.copies == 0 => Err(Failure::Failed(
            "this machine has no image of the job: --folder DIR names another folder".into(),
        )),
        0 => print(&format!("{} copies, all whole\n", verified.copies)),
        damages => Err(Failure::Failed(format!(
            "{damages} damages in {} copies: a rank that starts takes another copy, or the newest image that is whole",
            verified.copies
        ))),
    }
}

fn restore(
    name: &str,
    disk: &Disk,
    (out, generation, results): (&Path, Option<u64>, bool),
) -> Result<(), Failure> {
    let (number, folders, jobs) = on_disk(name, disk)?;
    let found = images::find(&folders, number, jobs.as_ref())?;
    let states = images::newest(&found, generation)?;
    let mut missing: Vec<u32> = Vec::new();
    let ranks = jobs.as_ref().and_then(|jobs| jobs.job(number)).map_or(0, |job| job.spec.ranks);
    for rank in 0..ranks.max(states.keys().last().map_or(0, |last| last + 1)) {
        let written = match states.get(&rank) {
            Some(state) => images::write(out, rank, state, results)?,
            None => Vec::new(),
        };
        if written.is_empty() {
            missing.push(rank);
        }
        for path in written {
            print(&format!("{}\n", path.display()))?;
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(format!(
            "this machine has nothing to write of ranks {missing:?}: --folder DIR names another folder, and `steadfast job verify {name}` reads the \
             images"
        ))),
    }
}

fn logs(name: &str, rank: u32, follow: bool, disk: &Disk) -> Result<(), Failure> {
    let (number, folders, _) = on_disk(name, disk)?;
    let logs: Vec<PathBuf> = folders.iter().map(|folder| log_of(folder, number, rank)).collect();
    let there: Vec<&PathBuf> = logs.iter().filter(|log| log.exists()).collect();
    if there.is_empty() && !follow {
        return Err(Failure::Failed(format!("rank {rank} has printed nothing on this machine")));
    }
    let over = Arc::new(Mutex::new(!follow));
    if follow {
        watch_end(number, disk, over.clone())?;
    }
    let mut read = vec![0; logs.len()];
    loop {
        let last = *over.lock().unwrap_or_else(PoisonError::into_inner);
        let mut some = false;
        for (log, read) in logs.iter().zip(&mut read) {
            some |= print_from(log, read)?;
        }
        if last && !some {
            return Ok(());
        }
        if !some {
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Notes when a job is over.
fn watch_end(number: u64, disk: &Disk, over: Arc<Mutex<bool>>) -> Result<(), Failure> {
    let Some(mut node) = reach::there(&disk.at)? else {
        *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        return Ok(());
    };
    thread::spawn(move || {
        let mut since = None;
        while let Ok(status) = node.jobs(since, Duration::from_secs(5)) {
            since = Some(status.version);
            let runs = |jobs: &job::Jobs| {
                jobs.job(number).is_some_and(|job| job.state == JobState::Running)
            };
            if status.jobs.is_some_and(|jobs| !runs(&jobs)) {
                break;
            }
        }
        *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
    });
    Ok(())
}

/// Prints what is new in a file. True: something was.
fn print_from(log: &Path, read: &mut u64) -> Result<bool, Failure> {
    let Ok(mut file) = File::open(log) else { return Ok(false) };
    let mut bytes = Vec::new();
    let new = file.seek(SeekFrom::Start(*read)).and_then(|_| file.read_to_end(&mut bytes));
    let new = new.map_err(|error| Failure::Failed(format!("{}: {error}", log.display())))?;
    *read += new as u64;
    print(&String::from_utf8_lossy(&bytes))?;
    Ok(new > 0)
}
