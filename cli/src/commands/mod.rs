//! The commands of the program, one module each, and how they end.

pub mod agent;
pub mod at;
pub mod bench;
pub mod call;
pub mod carry;
pub mod cell;
pub mod cluster;
pub mod conform;
pub mod context;
pub mod deploy;
pub mod deployments;
pub mod describe;
pub mod doctor;
pub mod drain;
pub mod events;
pub mod explain;
pub mod gateway;
pub mod hand_over;
mod human;
pub mod init;
pub mod job;
pub mod join;
pub mod key;
mod log;
pub mod node;
pub mod nodes;
mod notify;
pub mod poisoned;
pub mod programs;
pub mod qos;
pub mod registry;
pub mod reload;
pub mod replica;
mod report;
pub mod retire;
pub mod run;
pub mod state;
pub mod status;
pub mod style;
pub mod targets;
pub mod upgrade;
mod wait;

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Why a command ends without success.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// Exit code 1: it was tried, and failed.
    Failed(String),
    /// Exit code 2: the command line or the configuration is wrong.
    Usage(String),
}

impl Failure {
    /// The reason, with the remedy.
    pub fn text(self) -> String {
        match self {
            Failure::Failed(text) | Failure::Usage(text) => text,
        }
    }

    pub fn failed(error: impl Display) -> Self {
        Failure::Failed(error.to_string())
    }

    pub fn usage(error: impl Display) -> Self {
        Failure::Usage(error.to_string())
    }
}

/// Says why a command failed, and turns it into the exit code.
fn finish(result: Result<(), Failure>) -> ExitCode {
    let (code, text) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Failed(text)) => (1, text),
        Err(Failure::Usage(text)) => (2, text),
    };
    eprintln!("error: {text}");
    ExitCode::from(code)
}

/// Writes a command's result to standard output. A reader of its beginning alone (`| head`) is no
/// failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
