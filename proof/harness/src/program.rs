//! The program around a list of experiments.

use std::env;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::smoke::{self, SKIPPED};
use crate::{Entry, Outcome, Run, child};

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
