//! `steadfast replica`: a built-in service as a program of its own, for `steadfast run`.

use std::process::ExitCode;

use steadfast::attach;

use super::{Failure, finish};
use crate::services::{CounterService, Echo, Tally};

const EXAMPLES: &str = "\
Examples:
  steadfast run --group counter -- steadfast replica counter
  steadfast call counter add '[5]' --at 127.0.0.1:7100

It is started by a node, not by hand: the node leaves the way to itself in the environment.";

/// Serves a built-in service in a process of its own: for `steadfast run`, to try it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// Which service.
    service: Service,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Service {
    /// Whatever the method, the arguments come back.
    Echo,
    /// A number that is added to: add(n) and get().
    Counter,
}

/// Runs the command, until the node needs it no more.
pub fn run(args: &Args) -> ExitCode {
    let served = match args.service {
        Service::Echo => attach(|| Echo),
        Service::Counter => attach(|| CounterService::new(Tally::default())),
    };
    finish(served.map_err(Failure::failed))
}
