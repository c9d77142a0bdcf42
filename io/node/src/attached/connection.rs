//! How a program comes to its node, and what the node sends it.

use std::env;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process;

use bytes::BytesMut;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use wire::VersionRange;
use wire::attach::{Frame, Hello, SOCKET_VARIABLE, TOKEN, TOKEN_VARIABLE, Welcome};
use wire::versions::ATTACH;

/// Bytes read at a time.
const READ: usize = 64 << 10;

/// A program cannot serve, or serves no more. Its debugging form is its text: that is what `main`
/// prints of an error that it returns.
#[derive(thiserror::Error)]
pub enum AttachError {
    /// It was not started by a node.
    #[error(
        "this program serves a replica and has to be started by a node: steadfast run --group NAME -- PROGRAM \
         (the variable {0} is not set, or is none that a node sets)"
    )]
    NotStartedByNode(&'static str),
    /// The node cannot be reached.
    #[error("the node's socket {}: {source}; is the node that started this program still running?", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The node does not let it in, or needs it no more for a reason that should be looked at.
    #[error("the node says: {0}")]
    Dismissed(String),
    /// The state that the service begins with would not arrive whole at another replica.
    #[error("this service's state cannot be kept: {0}")]
    State(String),
    /// Ordered calls have one order.
    #[error(
        "group \"{0}\" orders its calls, and only stateless groups have lanes: use attach, or style = \"stateless\""
    )]
    Ordered(String),
    /// The connection broke.
    #[error("the connection to the node broke: {0}")]
    Broken(#[from] io::Error),
    /// The program does not understand the node's messages.
    #[error(
        "the node's words are not understood ({0}): build the program with a version of Steadfast nearer to the node's"
    )]
    Malformed(#[from] wire::Malformed),
}

impl fmt::Debug for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The connection to the node, and what it has brought.
pub(super) struct Incoming {
    pub stream: UnixStream,
    input: BytesMut,
    /// Buffer for one read. It is kept, because a new one would be filled with zeros for every
    /// call.
    room: Box<[u8]>,
}

impl Incoming {
    /// Connects to the node that has started this program.
    pub fn connect() -> Result<Incoming, AttachError> {
        let path = env::var_os(SOCKET_VARIABLE).map(PathBuf::from);
        let path = path.ok_or(AttachError::NotStartedByNode(SOCKET_VARIABLE))?;
        // So that its node sees its death at once, however much memory it has.
        os::closer::begin();
        let stream = UnixStream::connect(&path);
        Ok(Incoming::new(stream.map_err(|source| AttachError::Connect { path, source })?))
    }

    /// Shows the program's token. From here on the program ends with its node.
    pub fn introduce(&mut self, group: &str, merges: bool) -> Result<Welcome, AttachError> {
        let token = env::var(TOKEN_VARIABLE).ok().and_then(|digits| token_of(&digits));
        let token = token.ok_or(AttachError::NotStartedByNode(TOKEN_VARIABLE))?;
        let hello = Frame::Hello(Hello { merges, ..Hello::new(process::id(), token, group) });
        self.stream.write_all(&hello.encode())?;
        match self.receive()? {
            Some(Frame::Welcome(welcome)) if ATTACH.contains(welcome.version) => {
                end_with_the_node(&self.stream);
                Ok(welcome)
            }
            Some(Frame::Farewell(reason)) => Err(AttachError::Dismissed(reason)),
            Some(Frame::Welcome(welcome)) => {
                let theirs = VersionRange { least: welcome.version, greatest: welcome.version };
                Err(wire::Malformed::Version { theirs, ours: ATTACH }.into())
            }
            Some(_) => Err(wire::Malformed::Field("welcome").into()),
            None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }

    pub fn new(stream: UnixStream) -> Self {
        Incoming { stream, input: BytesMut::new(), room: vec![0; READ].into() }
    }

    /// The next frame that is here already.
    pub fn take(&mut self) -> Result<Option<Frame>, AttachError> {
        Ok(Frame::take(&mut self.input)?)
    }

    /// Waits for the next frame; `None` at the end.
    pub fn receive(&mut self) -> Result<Option<Frame>, AttachError> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            match self.stream.read(&mut self.room) {
                Ok(0) => return Ok(None),
                Ok(length) => self.input.extend_from_slice(&self.room[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_gone(&error) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The node has closed its end, which is as good as an end of its output. A program that writes
/// just then, or reads after the node has left data unread, gets one of two errors.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

fn token_of(digits: &str) -> Option<[u8; TOKEN]> {
    let digit = |byte: u8| (byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut token = [0; TOKEN];
    if digits.len() != 2 * TOKEN {
        return None;
    }
    for (byte, pair) in token.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(token)
}

/// A handler that loops does not see that its node is gone: then the system ends it. Only where the
/// node itself is the parent, whose thread for programs lives as long as the node: a shell between
/// them may end before this program does.
fn end_with_the_node(stream: &UnixStream) {
    let node = socket_peercred(stream).ok().map(|peer| peer.pid);
    if node.is_none() || getppid() != node {
        return;
    }
    if set_parent_process_death_signal(Some(Signal::KILL)).is_ok() && getppid() != node {
        // It went in between: no signal comes any more.
        process::exit(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_32_bytes_in_hexadecimal_digits() {
        assert_eq!(token_of(&"0f".repeat(TOKEN)), Some([15; TOKEN]));
        for wrong in ["", "0f", &"0g".repeat(TOKEN), &"0f".repeat(TOKEN + 1), &"é".repeat(TOKEN)] {
            assert_eq!(token_of(wrong), None, "{wrong}");
        }
    }
}
