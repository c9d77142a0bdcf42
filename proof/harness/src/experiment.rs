//! An experiment, and the program around a list of them.

use std::env;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use node::Node;
use serde_json::Value;

use crate::{Outcome, Run, child, smoke};

/// The exit status of an experiment that this machine does not permit, as test suites have it.
pub(crate) const SKIPPED: u8 = 77;

/// An experiment: its options, whose own documentation is the line for whoever looks for it.
pub trait Experiment: Args {
    /// As it is called on the command line.
    const NAME: &'static str;
    /// The options with which it is as small as it can be: `--smoke` puts them before those that
    /// are given.
    const SMOKE: &'static str;

    /// Why this machine does not permit it, if so.
    fn impossible(&self) -> Option<String> {
        None
    }

    /// Measures, and tells.
    fn run(&self, run: &Run) -> Outcome<()>;

    /// Hosts a group whose service is of this experiment alone. False: its name is none of them.
    fn host(_node: &Node, _group: &str) -> Outcome<bool> {
        Ok(false)
    }

    /// What its services in this process have kept since they were asked last.
    fn kept() -> Value {
        Value::Null
    }

    /// The life of a process of its own.
    fn live(_orders: Value) -> Outcome<()> {
        Err("this experiment has no processes of its own".into())
    }
}

/// An experiment in a program's list.
#[derive(Clone, Copy)]
pub struct Entry {
    pub(crate) name: &'static str,
    smoke: &'static str,
    arguments: fn(Command) -> Command,
    run: fn(&ArgMatches, &Run) -> Outcome<Option<String>>,
    pub(crate) host: fn(&Node, &str) -> Outcome<bool>,
    pub(crate) kept: fn() -> Value,
    pub(crate) live: fn(Value) -> Outcome<()>,
}

impl Entry {
    /// The entry of an experiment.
    pub const fn of<E: Experiment>() -> Entry {
        Entry {
            name: E::NAME,
            smoke: E::SMOKE,
            arguments: E::augment_args,
            run: run::<E>,
            host: E::host,
            kept: E::kept,
            live: E::live,
        }
    }

    fn command(&self) -> Command {
        (self.arguments)(Command::new(self.name).args_override_self(true))
    }
}

/// Why it was not run, if so.
fn run<E: Experiment>(matches: &ArgMatches, run: &Run) -> Outcome<Option<String>> {
    let experiment = E::from_arg_matches(matches)?;
    match experiment.impossible() {
        None => experiment.run(run).map(|()| None),
        why => Ok(why),
    }
}

/// A program of these experiments.
pub fn main(name: &'static str, about: &'static str, experiments: &'static [Entry]) -> ExitCode {
    let matches = command(name, about, experiments).get_matches_from(words(experiments));
    match perform(&matches, experiments) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(why)) => {
            eprintln!("SKIPPED: {why}");
            ExitCode::from(SKIPPED)
        }
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn perform(matches: &ArgMatches, experiments: &'static [Entry]) -> Outcome<Option<String>> {
    let (name, matches) = matches.subcommand().ok_or("no experiment is named")?;
    match name {
        "smoke" => smoke::run(experiments).map(|()| None),
        "child" => {
            let role = matches.get_one::<String>("role").ok_or("no role")?;
            child::run(serde_json::from_str(role)?, experiments).map(|()| None)
        }
        name => {
            let entry = experiments.iter().find(|entry| entry.name == name);
            let run = Run { json: matches.get_flag("json"), smoke: matches.get_flag("smoke") };
            (entry.ok_or("no such experiment")?.run)(matches, &run)
        }
    }
}

fn command(name: &'static str, about: &'static str, experiments: &[Entry]) -> Command {
    let flag = |id: &'static str, help: &'static str| {
        Arg::new(id).long(id).global(true).action(ArgAction::SetTrue).help(help)
    };
    let role = Arg::new("role").required(true);
    Command::new(name)
        .about(about)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(flag("json", "One JSON object a line instead of a table"))
        .arg(flag("smoke", "The smallest size: does it work? Its figures say nothing"))
        .subcommands(experiments.iter().map(Entry::command))
        .subcommand(
            Command::new("smoke").about("Every experiment in its smallest size, one by one"),
        )
        .subcommand(Command::new("child").about("A process of an experiment").hide(true).arg(role))
}

/// The words of the command line, with the smallest size's behind the experiment's name.
fn words(experiments: &[Entry]) -> Vec<String> {
    let mut words: Vec<String> = env::args().collect();
    let named = |word: &String| experiments.iter().find(|entry| entry.name == word);
    let found = words.iter().enumerate().find_map(|(place, word)| Some((place, named(word)?)));
    if let Some((place, entry)) = found
        && words.iter().any(|word| word == "--smoke")
    {
        words.splice(place + 1..place + 1, entry.smoke.split_whitespace().map(str::to_owned));
    }
    words
}
