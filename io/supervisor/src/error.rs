//! Why a program cannot be run, and the remedy.

use std::io;
use std::path::PathBuf;

use config::ProgramProblem;
use wire::limits::MAX_PROGRAMS;

/// A program cannot be run or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is not possible.
    #[error(transparent)]
    Config(#[from] ProgramProblem),
    /// Without an admin socket the node has no place for the programs' socket.
    #[error(
        "this node has no admin socket, beside which programs attach: set `admin = \"PATH\"` in its \
         configuration and start it again"
    )]
    NoPlace,
    /// The programs' socket cannot be made.
    #[error(
        "the programs' socket in {}: {source}; the node must be able to make this folder, and the \
         socket's whole path has at most 107 bytes", folder.display()
    )]
    Socket {
        /// Its folder.
        folder: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// One runs for this group.
    #[error(
        "a program serves group \"{0}\" at this node already, and a node hosts at most one replica of a \
         group: stop it first (`steadfast programs stop {0}`), or run this one at another node"
    )]
    Twice(String),
    /// Too many programs.
    #[error("this node runs {MAX_PROGRAMS} programs already, the limit")]
    TooMany,
    /// No program serves this group here.
    #[error(
        "this node runs no program for group \"{0}\": `steadfast programs` lists those that it runs"
    )]
    NotRunning(String),
    /// It cannot be started. It is not tried again.
    #[error("{0}; it is not kept: correct it, and run it again")]
    NotStarted(String),
    /// It ended before it served. It is not tried again.
    #[error("{}", ended(.group, .how, .dismissed.as_deref(), .lines))]
    Ended {
        /// The group.
        group: String,
        /// How its process ended.
        how: String,
        /// Why the node did not let it serve, if that is so.
        dismissed: Option<String>,
        /// Its last lines.
        lines: Vec<String>,
    },
    /// The node does not run any more, or does not answer.
    #[error("the node is stopping, or does not answer in time")]
    Stopped,
}

fn ended(group: &str, how: &str, dismissed: Option<&str>, lines: &[String]) -> String {
    let mut text = match dismissed {
        Some(reason) => {
            format!("the node did not let the program serve group \"{group}\": {reason}")
        }
        None => format!("the program for group \"{group}\" ended before it served: {how}"),
    };
    if dismissed.is_none() && lines.is_empty() {
        text.push_str(
            "; it wrote nothing. A program has to attach to its node: in Rust by steadfast::attach, in \
             other languages as docs/protocol/attach.md tells",
        );
    }
    if !lines.is_empty() {
        text.push_str("; its last lines:");
        for line in lines {
            text.push_str("\n  ");
            text.push_str(line);
        }
    }
    text.push_str("\nit is not kept: correct it, and run it again");
    text
}
