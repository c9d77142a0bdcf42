//! A connection to the daemon.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::message::{Answer, Enforced, Request, Tree, Wanted};

/// How long the daemon may take for an answer. It takes less than a millisecond.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of an answer: the tree of a host with all reserves that it may have.
const MAX_ANSWER: u64 = 64 << 20;

/// Why the daemon does not do it.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answers.
    #[error(
        "no daemon answers at {}: {source}; start one with `steadfast qos serve`, and let this user \
         into its group", path.display()
    )]
    Connect {
        /// The socket's path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection to the daemon failed: {0}")]
    Io(#[from] io::Error),
    /// It is not understood.
    #[error("the daemon's answer is not understood ({0}): use programs of the same version")]
    Answer(#[from] serde_json::Error),
    /// It says no.
    #[error("{error}")]
    Refused {
        /// The reason, and the remedy.
        error: String,
        /// The host has no room: another one may.
        full: bool,
    },
}

/// A connection. Its reserves end with it.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the daemon at this socket.
    ///
    /// # Errors
    /// Nobody answers there.
    pub fn connect(path: &Path) -> Result<Client, ClientError> {
        let failed = |source| ClientError::Connect { path: path.into(), source };
        let stream = UnixStream::connect(path).map_err(failed)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// Makes a reserve, or changes the one of this path; what enforces it, and what is not in
    /// force.
    ///
    /// # Errors
    /// It is refused, or nobody answers.
    pub fn reserve(&mut self, wanted: Wanted) -> Result<(Enforced, Vec<String>), ClientError> {
        reserved(self.ask(&Request::Reserve(wanted))?)
    }

    /// Ends a reserve of this connection.
    ///
    /// # Errors
    /// There is none of this path, or nobody answers.
    pub fn release(&mut self, path: &str) -> Result<(), ClientError> {
        match self.ask(&Request::Release { path: path.into() })? {
            Answer::Released => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// All reserves of the host.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn show(&mut self) -> Result<Tree, ClientError> {
        match self.ask(&Request::Show)? {
            Answer::Tree(tree) => Ok(tree),
            other => Err(unexpected(other)),
        }
    }

    /// Waits for the next answer about a reserve that was asked for by [`socket`](Self::socket).
    ///
    /// # Errors
    /// The daemon has ended.
    pub(crate) fn next(&mut self) -> io::Result<Result<(Enforced, Vec<String>), ClientError>> {
        self.stream.get_ref().set_read_timeout(None)?;
        match self.receive() {
            Ok(answer) => Ok(reserved(answer)),
            Err(ClientError::Io(error)) => Err(error),
            Err(error) => Ok(Err(error)),
        }
    }

    /// The socket, to be written to and shut down by another thread.
    pub(crate) fn socket(&self) -> io::Result<UnixStream> {
        self.stream.get_ref().try_clone()
    }

    fn ask(&mut self, request: &Request) -> Result<Answer, ClientError> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)?;
        self.receive()
    }

    fn receive(&mut self) -> Result<Answer, ClientError> {
        let mut answer = String::new();
        if self.stream.by_ref().take(MAX_ANSWER).read_line(&mut answer)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(serde_json::from_str(&answer)?)
    }
}

fn reserved(answer: Answer) -> Result<(Enforced, Vec<String>), ClientError> {
    match answer {
        Answer::Reserved { cpu, degraded } => Ok((cpu, degraded)),
        other => Err(unexpected(other)),
    }
}

fn unexpected(answer: Answer) -> ClientError {
    match answer {
        Answer::Refused { error, full } => ClientError::Refused { error, full },
        other => {
            ClientError::Io(io::Error::other(format!("it answers another request: {other:?}")))
        }
    }
}
