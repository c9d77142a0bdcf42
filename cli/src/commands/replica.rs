//! `steadfast replica`: a built-in service in a separate process, to try `steadfast run`.

use std::process::ExitCode;

use steadfast::attach;

use super::{Failure, finish};
use crate::services::{CounterService, Echo, Tally};

const EXAMPLES: &str = "\
Examples:
  steadfast run --group counter -- steadfast replica counter
  steadfast call counter add '[5]' --at 127.0.0.1:7100

A node starts this program, not a person: it finds the node's address in its environment.";

/// Serves a built-in service in a separate process, to try `steadfast run`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The service.
    service: Service,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Service {
    /// Every method returns its arguments.
    Echo,
    /// A counter with the methods add(n) and get().
    Counter,
}

/// Serves until the node ends the program.
pub fn run(args: &Args) -> ExitCode {
    let served = match args.service {
        Service::Echo => attach(|| Echo),
        Service::Counter => attach(|| CounterService::new(Tally::default())),
    };
    finish(served.map_err(Failure::failed))
}
