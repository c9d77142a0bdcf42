//! `steadfast run`: has the node of this host run a program that serves a replica.

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
  steadfast run --group counter -- steadfast replica counter     a built-in service, to try it
  steadfast programs                                             how it fares
  steadfast programs stop orders

Run it once at each node that is to have a replica: it asks the node of this host, which starts
the program, and returns when the replica is in its group. From then on the node minds the program:
its output goes to the node's log, its death is seen at once, and it is started again, at once the
first time and ever later if it goes on ending. It ends when it is stopped, or with its node. For a
program that is to be there after the node's next start, put it into the node's configuration
([[program]]; `steadfast node --print-config --all` tells how).

The program attaches to the node in two lines:
  fn main() -> Result<(), steadfast::AttachError> {
      steadfast::attach(|| CounterService::new(Tally::default()))
  }
Programs in other languages: docs/protocol/attach.md.

Exit codes:
  0  the program serves
  1  it does not: standard error says why, with its last lines; it is not kept
  2  the command line or the configuration is wrong";

/// Runs a program that serves a replica, in a process of its own that the node minds.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The group's name. A node has at most one replica of a group.
    #[arg(long, value_name = "NAME")]
    group: String,
    /// How the group is replicated; all its replicas must say the same. Without it: semi-active.
    #[arg(long, value_parser = named::<steadfast::Style>)]
    style: Option<steadfast::Style>,
    /// The nodes that must have a request before its reply may leave: one, majority or all. Without
    /// it: majority.
    #[arg(long, value_parser = named::<steadfast::AckLevel>)]
    ack: Option<steadfast::AckLevel>,
    /// Where the group is kept: memory or disk (its nodes need [storage]). Without it: memory.
    #[arg(long, value_parser = named::<steadfast::Durability>)]
    durability: Option<steadfast::Durability>,
    /// Where the program runs; without it, here.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// A variable of its environment, beside those that the node itself has. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// The program and its arguments, behind `--`. A path with a slash is taken from here, a name
    /// without one is looked for where the node's PATH says.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(start(args))
}

fn start(args: &Args) -> Result<(), Failure> {
    let here = std::env::current_dir().map_err(|error| {
        Failure::Failed(format!("the present folder cannot be told: {error}; give --folder DIR"))
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
