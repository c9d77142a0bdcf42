//! `steadfast job`: programs as ranks that go on after any loss.

use std::env;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use admin::jobs::JobsStatus;
use job::{Command, Job, JobState, Spec};
use os::clock::wall_clock;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use steadfast::admin::Client as AdminClient;
use wire::Time;

use super::at::At;
use super::{Failure, finish, print};
use crate::jobs::{own, reach, show, submit, watch};

mod folders;
mod options;

use folders::{logs, restore, verify};
pub use options::Args;
use options::{How, Run, What};

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
        What::Resume { name, detach, any_processor, any_program, how } => {
            resume(name, *detach, (*any_processor, *any_program), how)
        }
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
        any_processor: run.any_processor,
        program: None,
        recovery: run.recovery.into(),
        log: run.log,
        stall: run.stall.unwrap_or_default(),
    };
    submit::check(&spec)?;
    if !run.any_program {
        spec.program = submit::program(&spec)?;
    }
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
    let restarts = show::told(show::restarts(job));
    eprintln!(
        "{text}, with {restarts}; `steadfast job restore {} --results --out DIR` writes its results",
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
    let (mut node, status) = known(&how.at)?;
    let (_, job) = reach::named(&status, name)?;
    if how.json {
        let json = serde_json::to_string_pretty(job).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    let jobs = status.jobs.as_ref().expect("it has the job");
    // A cluster without a manager drains nothing.
    let deployments = node.deployments().map(|it| it.nodes).unwrap_or_default();
    let drained = deployments.into_iter().filter(|it| it.drained).map(|it| it.node).collect();
    print(&show::show(jobs, job, &drained, Time(wall_clock())))
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

fn resume(
    name: &str,
    detach: bool,
    (processor, program): (bool, bool),
    how: &How,
) -> Result<(), Failure> {
    let (mut node, status) = known(&how.at)?;
    let found = reach::named(&status, name)?;
    if processor || program {
        reach::tell(&mut node, &Command::Loosen { job: found.0, processor, program })?;
    }
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
