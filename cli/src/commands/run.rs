//! `steadfast run`: the node of this host runs a program that serves a replica.

use std::collections::BTreeMap;
use std::path::{MAIN_SEPARATOR, PathBuf};
use std::process::ExitCode;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;
use steadfast::{GroupOptions, ProgramConfig};

use super::at::At;
use super::{Failure, finish, print, programs};

const EXAMPLES: &str = "\
Examples:
  steadfast run --group orders -- ./orders --verbose
  steadfast run --group orders --ack all --env RUST_LOG=debug --config node.toml -- ./orders
  steadfast run --group counter -- steadfast replica counter     a built-in service, for a trial
  steadfast programs                                             shows the program's state
  steadfast programs stop orders

Run the command once at each node that shall have a replica. It asks the node of this host, which
starts the program. It returns when the replica is in its group. The node then supervises the
program: the program's output goes to the node's log, and the node restarts it when it ends. The
first restart is immediate; each further one waits longer. The program ends when you stop it, or
with its node. To start it again with the node, add it to the node's configuration ([[program]]; see
`steadfast node --print-config --all`).

A Rust program attaches to the node as follows:
  fn main() -> Result<(), steadfast::AttachError> {
      steadfast::attach(|| CounterService::new(Tally::default()))
  }
Programs in other languages: docs/protocol/attach.md; `steadfast conform` tries them without a node.

Exit codes:
  0  the program serves
  1  it does not, and the node forgets it: standard error has the reason and its last lines
  2  the command line or the configuration is wrong";

/// Runs a program that serves a replica, in its own process that the node supervises.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The group's name. A node has at most one replica of a group.
    #[arg(long, value_name = "NAME")]
    group: String,
    /// The group's style; the same at all its replicas. Default: semi-active.
    #[arg(long, value_parser = named::<steadfast::Style>)]
    style: Option<steadfast::Style>,
    /// The nodes that must have a request before its reply leaves: one, majority or all. Default:
    /// majority.
    #[arg(long, value_parser = named::<steadfast::AckLevel>)]
    ack: Option<steadfast::AckLevel>,
    /// Where the group's state is stored: memory or disk (its nodes need [storage]). Default: memory.
    #[arg(long, value_parser = named::<steadfast::Durability>)]
    durability: Option<steadfast::Durability>,
    /// The program's working directory. Default: the present one.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// An environment variable of the program, beside the node's own. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// The program and its arguments, after `--`. A path with a slash is relative to the present
    /// directory; a name without one is found by the node's PATH.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(start(args))
}

fn start(args: &Args) -> Result<(), Failure> {
    let here = std::env::current_dir().map_err(|error| {
        Failure::Failed(format!("the present directory is unknown: {error}; give --folder DIR"))
    })?;
    let mut command = args.command.clone();
    if command[0].contains(MAIN_SEPARATOR) {
        // Without the `.` of `./program`: it is shown to people.
        let path: PathBuf = here.join(&command[0]).components().collect();
        command[0] = path.to_string_lossy().into_owned();
    }
    let folder = args.folder.as_ref().map_or(here.clone(), |folder| here.join(folder));
    let defaults = GroupOptions::default();
    let program = ProgramConfig {
        group: args.group.clone(),
        command,
        folder: Some(folder),
        environment: args.env.iter().cloned().collect::<BTreeMap<_, _>>(),
        options: GroupOptions {
            style: args.style.unwrap_or(defaults.style),
            ack: args.ack.unwrap_or(defaults.ack),
            durability: args.durability.unwrap_or(defaults.durability),
        },
    };
    let status = args.at.connect()?.run(&program).map_err(Failure::failed)?;
    if args.json {
        let json = serde_json::to_string_pretty(&status).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&programs::started(&status))
}

/// A value by the name that files and JSON know it by.
fn named<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, String> {
    let deserializer: serde::de::value::StrDeserializer<'_, Error> = text.into_deserializer();
    T::deserialize(deserializer).map_err(|error| error.to_string())
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE, such as RUST_LOG=debug".into()),
    }
}

#[cfg(test)]
mod tests {
    use steadfast::{AckLevel, Style};

    use super::*;

    #[test]
    fn options_go_by_the_names_that_files_know() {
        assert_eq!(named::<AckLevel>("majority"), Ok(AckLevel::Majority));
        assert_eq!(named::<Style>("semi-active"), Ok(Style::SemiActive));
        let refusal = named::<AckLevel>("two").expect_err("no such ack");
        assert!(refusal.contains("majority"), "{refusal}");
    }

    #[test]
    fn a_variable_has_a_name() {
        assert_eq!(variable("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert_eq!(variable("A="), Ok(("A".into(), String::new())));
        for wrong in ["A", "=b", ""] {
            variable(wrong).expect_err(wrong);
        }
    }
}
