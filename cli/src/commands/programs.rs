//! `steadfast programs`: shows the programs of a node, and stops them.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Subcommand;
use steadfast::status::{Grant, ProgramState, ProgramStatus};

use super::at::At;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast programs
  steadfast programs --config node.toml --json | jq '.[] | select(.state != \"attached\")'
  steadfast programs stop orders

States:
  stands by    it starts when its replica becomes primary (cold passive groups)
  starting     its process runs, but has not attached yet
  attached     it serves; `not in its group`: the node has no quorum, or no view with it yet
  backing off  it ended again and again, and waits for its next start
  stopping     its replica leaves the group, and its process ends

`stop` takes the group's name. The replica leaves its group, then the process ends: the node sends
SIGTERM after 2 s, and SIGKILL after 5 s more. A program of the node's configuration starts again
with the node.";

const STOPS: &str = "\
Examples:
  steadfast programs stop orders
  steadfast programs stop orders --config node.toml

The program's replica leaves its group first, so no call is lost.";

/// Shows the programs that serve replicas at a node, and stops them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    ask: Option<Ask>,
}

#[derive(Subcommand)]
enum Ask {
    /// Stops a program, and waits until it has ended.
    #[command(after_help = STOPS)]
    Stop {
        /// The name of its group.
        group: String,
        #[command(flatten)]
        at: At,
    },
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(match &args.ask {
        None => show(args),
        Some(Ask::Stop { group, at }) => stop(group, at),
    })
}

fn show(args: &Args) -> Result<(), Failure> {
    let programs = args.at.connect()?.status().map_err(Failure::failed)?.programs;
    if args.json {
        let json = serde_json::to_string_pretty(&programs).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&text(&programs))
}

fn stop(group: &str, at: &At) -> Result<(), Failure> {
    let answer = at.connect()?.stop_program(group).map_err(Failure::failed)?;
    print(&format!("the program of group {} has ended\n", answer.stopped))
}

/// For people: what came of a start.
pub fn started(status: &ProgramStatus) -> String {
    let group = &status.group;
    let pid = status.pid.map_or_else(|| "none".to_owned(), |pid| pid.to_string());
    match status.state {
        ProgramState::Attached if status.joined => {
            format!("serving: group {group}, process {pid}\n")
        }
        ProgramState::Standby if status.joined => {
            format!("stands by: group {group}; it starts when its replica becomes primary\n")
        }
        ProgramState::Attached => format!(
            "attached: group {group}, process {pid}; its replica joins the group when the node has the quorum \
             (see `steadfast status`)\n"
        ),
        _ => format!(
            "started: group {group}, process {pid}, but it has not attached yet; the node still waits \
             (`steadfast programs` shows its state, `steadfast programs stop {group}` stops it)\n"
        ),
    }
}

/// For people: a line each, what is wrong below it.
pub fn text(programs: &[ProgramStatus]) -> String {
    if programs.is_empty() {
        return "this node runs no programs (`steadfast run` starts one)\n".to_owned();
    }
    let wide = programs.iter().map(|program| program.group.len()).max().unwrap_or(0);
    let mut text = String::new();
    for program in programs {
        line(&mut text, program, wide);
    }
    text
}

fn line(text: &mut String, program: &ProgramStatus, wide: usize) {
    let state = match (program.state, program.backing_off_ms) {
        (ProgramState::Standby, _) => "stands by".to_owned(),
        (ProgramState::Starting, _) => "starting".to_owned(),
        (ProgramState::Attached, _) if !program.joined => "attached, not in its group".to_owned(),
        (ProgramState::Attached, _) => "attached".to_owned(),
        (ProgramState::BackingOff, Some(ms)) => {
            format!("backing off, next start in {:.1} s", ms as f64 / 1e3)
        }
        (ProgramState::BackingOff, None) => "backing off".to_owned(),
        (ProgramState::Stopping, _) => "stopping".to_owned(),
    };
    let pid = program.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
    let command = program.command.join(" ");
    let mut more = Vec::new();
    if program.restarts > 0 {
        let s = if program.restarts == 1 { "" } else { "s" };
        more.push(format!("{} restart{s}", program.restarts));
    }
    if program.ends_in_a_row > 1 {
        more.push(format!("{} ends in a row", program.ends_in_a_row));
    }
    if let Some(exit) = &program.last_exit {
        more.push(format!("last end: {exit}"));
    }
    if program.lines_dropped > 0 {
        more.push(format!("{} lines of output dropped", program.lines_dropped));
    }
    match (&program.priority_grant, program.priority) {
        (Grant::NotAsked, _) => {}
        (Grant::InForce, priority) => more.push(format!("SCHED_FIFO {priority}, by its rate")),
        (Grant::Refused(why), _) => more.push(format!("no priority by its rate: {why}")),
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  {:wide$}  {state}, process {pid}: {command}", program.group);
    if !more.is_empty() {
        let _ = writeln!(text, "  {:wide$}  {}", "", more.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_shown_with_what_is_wrong() {
        assert!(text(&[]).contains("steadfast run"));
        let program = ProgramStatus {
            group: "orders".into(),
            command: vec!["./orders".into(), "--fast".into()],
            state: ProgramState::BackingOff,
            joined: false,
            pid: None,
            backing_off_ms: Some(12_800),
            restarts: 9,
            ends_in_a_row: 9,
            last_exit: Some("exit status: 3".into()),
            lines_dropped: 0,
            priority: 30,
            priority_grant: Grant::InForce,
        };
        let text = text(&[program]);
        for expected in [
            "orders  backing off, next start in 12.8 s, process -: ./orders --fast",
            "9 restarts, 9 ends in a row, last end: exit status: 3, SCHED_FIFO 30, by its rate",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }
}
