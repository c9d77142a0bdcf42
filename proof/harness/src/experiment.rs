//! An experiment, as a program lists it.

use clap::{ArgMatches, Args, Command};
use node::Node;
use serde_json::Value;

use crate::{Outcome, Run};

/// An experiment: its options. Their doc comment is its line in the list of experiments.
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

    /// Data that its services in this process have kept since the last call.
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
    pub(crate) smoke: &'static str,
    arguments: fn(Command) -> Command,
    pub(crate) run: fn(&ArgMatches, &Run) -> Outcome<Option<String>>,
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

    pub(crate) fn command(&self) -> Command {
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
