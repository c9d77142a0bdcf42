//! Why an agent cannot run.

use std::io;
use std::path::PathBuf;

/// Why an agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A folder cannot be used.
    #[error("the folder {} cannot be used: {source}", path.display())]
    Folder {
        /// It.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another agent uses the folder.
    #[error("another agent uses {}: a node has one", .0.display())]
    Taken(PathBuf),
    /// The socket cannot be made.
    #[error("ranks cannot be listened for at {}: {why}; a socket's path has at most 107 bytes, and --runtime says in which folder it is", path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Copies cannot be given away.
    #[error("copies of images cannot be given away at {at}: {source}")]
    Copies {
        /// The address or path.
        at: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The node does not answer.
    #[error("{0}")]
    Node(String),
    /// The system has no threads.
    #[error("a thread cannot be started: {0}")]
    Thread(io::Error),
}
