//! The other end: a program that serves a replica of its node's in a process of its own.
//!
//! The node has started the program and left the way back in its environment. One thread reads
//! commands, executes them in order, and answers; it answers together what came together, and
//! sooner where a handler takes its time. When the node is gone, or needs the replica no more,
//! serving ends.

use std::collections::VecDeque;
use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use engine::{Command, Executed, NestedCall, NestedError, ServiceOutcome, Ticket};
use os::clock::monotonic;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use wire::attach::{
    Answer, Ask, BEGINS_VARIABLE, Execute, Failed, Frame, GROUP_VARIABLE, Hello, Outcome, Piece,
    SOCKET_VARIABLE, TOKEN, TOKEN_VARIABLE, Told,
};
use wire::limits::{ATTACH_PIECE, MAX_BODY, MAX_STATE};
use wire::ordered::Style;
use wire::{Duration, GroupId, Lane, PROTOCOL_VERSION};

use crate::executor::{Done, Replica, cut};
use crate::nested::error_of;
use crate::service::{Factory, Line, Service};

/// Bytes read at a time.
const READ: usize = 64 << 10;

/// Answers wait for those behind them up to so many bytes, and for at most this long.
const BATCH: usize = 64 << 10;
const HELD_BACK: Duration = Duration::from_micros(50);

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
    /// The connection broke.
    #[error("the connection to the node broke: {0}")]
    Broken(#[from] io::Error),
    /// The program does not understand the node's messages.
    #[error(
        "the node's words are not understood ({0}): build the program with the node's version of Steadfast"
    )]
    Malformed(#[from] wire::Malformed),
}

impl fmt::Debug for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Serves a replica of the group for which a node has started this program. `make` gives the
/// service in its initial state: now, and when the replica has to begin anew. Panics of its
/// handlers are caught, as in a node's own process. Returns when the node has stopped or needs the
/// replica no more.
///
/// # Errors
/// No node has started this program, it does not let it serve, or the connection broke.
pub fn attach<S: Service + 'static>(
    make: impl Fn() -> S + Send + 'static,
) -> Result<(), AttachError> {
    let mut node = Incoming::new(connect()?);
    let begins = begins();
    let group = env::var(GROUP_VARIABLE).unwrap_or_default();
    let make: Factory = Box::new(move || Box::new(make()));
    introduce(&mut node, &group)?;
    end_with_the_node(&node.stream);
    let (output, waiting) = (BytesMut::new(), VecDeque::new());
    let link = Arc::new(Shared(Mutex::new(Link { node, output, waiting })));
    let replica = Replica::new(GroupId::of(&group), 0, make, Style::default(), Some(link.clone()));
    Server { link, replica, arriving: Vec::new(), begins }.serve()
}

fn connect() -> Result<UnixStream, AttachError> {
    let path = env::var_os(SOCKET_VARIABLE).map(PathBuf::from);
    let path = path.ok_or(AttachError::NotStartedByNode(SOCKET_VARIABLE))?;
    UnixStream::connect(&path).map_err(|source| AttachError::Connect { path, source })
}

/// The file in which its node looks for what it has begun: nothing so far.
fn begins() -> Option<File> {
    let path = env::var_os(BEGINS_VARIABLE)?;
    let file = File::options().write(true).open(path).ok()?;
    note_begun(Some(&file), 0);
    Some(file)
}

/// If the number of a call cannot be written, the file is emptied: the node then knows nothing of
/// what was begun. It would take an older number for true if a call killed the program.
fn note_begun(begins: Option<&File>, number: u64) {
    if let Some(file) = begins
        && file.write_all_at(&number.to_le_bytes(), 0).is_err()
    {
        let _ = file.set_len(0);
    }
}

fn introduce(node: &mut Incoming, group: &str) -> Result<(), AttachError> {
    let token = env::var(TOKEN_VARIABLE).ok().and_then(|digits| token_of(&digits));
    let token = token.ok_or(AttachError::NotStartedByNode(TOKEN_VARIABLE))?;
    let hello = Frame::Hello(Hello::new(process::id(), token, group));
    node.stream.write_all(&hello.encode())?;
    match node.receive()? {
        Some(Frame::Welcome(welcome)) if welcome.version == PROTOCOL_VERSION => Ok(()),
        Some(Frame::Farewell(reason)) => Err(AttachError::Dismissed(reason)),
        Some(Frame::Welcome(welcome)) => {
            Err(wire::Malformed::Version { theirs: welcome.version }.into())
        }
        Some(_) => Err(wire::Malformed::Field("welcome").into()),
        None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    }
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

/// The connection to the node, and what it has brought.
struct Incoming {
    stream: UnixStream,
    input: BytesMut,
    /// Buffer for one read. It is kept, because a new one would be filled with zeros for every
    /// call.
    room: Box<[u8]>,
}

impl Incoming {
    fn new(stream: UnixStream) -> Self {
        Incoming { stream, input: BytesMut::new(), room: vec![0; READ].into() }
    }

    /// The next frame that is here already.
    fn take(&mut self) -> Result<Option<Frame>, AttachError> {
        Ok(Frame::take(&mut self.input)?)
    }

    /// Waits for the next frame; `None` at the end.
    fn receive(&mut self) -> Result<Option<Frame>, AttachError> {
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
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

/// The connection to the node: the thread that serves has it, and while it runs a handler, the
/// handler's calls.
struct Link {
    node: Incoming,
    output: BytesMut,
    /// Commands that came while a handler waited for a call of its own.
    waiting: VecDeque<Frame>,
}

struct Shared(Mutex<Link>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Link> {
        // One thread has it; a panic in a handler finds it at rest.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection to the node")
    }
}

impl Link {
    /// Writes what is to be answered; true if nobody reads it any more.
    fn flush(&mut self) -> Result<bool, AttachError> {
        match self.node.stream.write_all(&self.output) {
            Ok(()) => {
                self.output.clear();
                Ok(false)
            }
            Err(error) if is_gone(&error) => self.last_words().map(|()| true),
            Err(error) => Err(error.into()),
        }
    }

    /// The node has closed the connection: it may have said why.
    fn last_words(&mut self) -> Result<(), AttachError> {
        while let Some(frame) = self.node.receive()? {
            if let Frame::Farewell(reason) = frame
                && !reason.is_empty()
            {
                return Err(AttachError::Dismissed(reason));
            }
        }
        Ok(())
    }

    /// The next command, if it is here already.
    fn take(&mut self) -> Result<Option<Frame>, AttachError> {
        match self.waiting.pop_front() {
            Some(frame) => Ok(Some(frame)),
            None => self.node.take(),
        }
    }

    /// Waits for what came of a call; what comes before it is done later.
    fn told(&mut self, number: u64) -> Result<Option<Told>, AttachError> {
        if self.flush()? {
            return Ok(None);
        }
        while let Some(frame) = self.node.receive()? {
            match frame {
                Frame::Called(told) if told.number == number => return Ok(Some(told)),
                frame => self.waiting.push_back(frame),
            }
        }
        Ok(None)
    }
}

impl Line for Shared {
    fn call(&self, call: NestedCall) -> Result<Bytes, NestedError> {
        let mut link = self.lock();
        let number = call.ticket.0;
        let timeout_us = u32::try_from(call.timeout.as_micros()).unwrap_or(u32::MAX);
        let NestedCall { method, json, body, .. } = call;
        if body.len() > MAX_BODY {
            return Err(NestedError::TooLarge(body.len()));
        }
        let ask = Ask { number, method, timeout_us, json, group: call.callee, body };
        Frame::Call(ask).append(&mut link.output);
        // A node that is gone takes no answer from the handler either.
        let told = link.told(number).ok().flatten().ok_or(NestedError::Void)?;
        match (told.error, told.outcome) {
            (0, Outcome::Ok(body)) => Ok(body),
            (0, Outcome::Error(body)) => Err(NestedError::Service(body)),
            (0, Outcome::Refused(refusal, reason)) => Err(NestedError::Refused(refusal, reason)),
            (error, _) => Err(error_of(error)),
        }
    }
}

struct Server {
    link: Arc<Shared>,
    replica: Replica,
    /// The state that is coming in pieces.
    arriving: Vec<u8>,
    /// Where its node looks for what it has begun.
    begins: Option<File>,
}

impl Server {
    fn serve(mut self) -> Result<(), AttachError> {
        loop {
            let Some(frame) = self.next()? else { return Ok(()) };
            let begun = monotonic();
            if !self.handle(frame)? {
                return Ok(());
            }
            let long = monotonic().since(begun) > HELD_BACK;
            let mut link = self.link.lock();
            if (long || link.output.len() >= BATCH) && link.flush()? {
                return Ok(());
            }
        }
    }

    /// The next command; `None` at the end.
    fn next(&mut self) -> Result<Option<Frame>, AttachError> {
        let mut link = self.link.lock();
        if let Some(frame) = link.take()? {
            return Ok(Some(frame));
        }
        if link.flush()? {
            return Ok(None);
        }
        link.node.receive()
    }

    fn put(&mut self, frame: Frame) {
        frame.append(&mut self.link.lock().output);
    }

    /// Does what a frame asks for; false if it was the last one.
    fn handle(&mut self, frame: Frame) -> Result<bool, AttachError> {
        match frame {
            Frame::Execute(execute) => self.execute(execute),
            Frame::Snapshot(number) => {
                self.run(number, Command::Snapshot { ticket: Ticket(number) })
            }
            Frame::Restore(piece) => self.restore(piece)?,
            Frame::Reset => drop(self.replica.run(Command::Reset)),
            // Without a reason it is as it should be: the node stops, or needs the replica no more.
            Frame::Farewell(reason) if reason.is_empty() => return Ok(false),
            Frame::Farewell(reason) => return Err(AttachError::Dismissed(reason)),
            _ => return Err(wire::Malformed::Field("kind").into()),
        }
        Ok(true)
    }

    fn execute(&mut self, execute: Execute) {
        let Execute { number, now, seed, client, call, method, json, read, body } = execute;
        let ticket = Ticket(number);
        let command = Command::Execute {
            ticket,
            method,
            json,
            read,
            body,
            now,
            seed,
            client,
            number: call,
            lane: Lane::default(),
        };
        self.run(number, command);
    }

    fn restore(&mut self, piece: Piece) -> Result<(), AttachError> {
        self.arriving.extend_from_slice(&piece.bytes);
        let there = self.arriving.len() as u64;
        if there > piece.total {
            return Err(wire::Malformed::Field("total").into());
        }
        if there == piece.total {
            let state = Bytes::from(std::mem::take(&mut self.arriving));
            self.run(piece.number, Command::Restore { ticket: Ticket(piece.number), state });
        }
        Ok(())
    }

    fn run(&mut self, number: u64, command: Command) {
        note_begun(self.begins.as_ref(), number);
        let Some(Done { executed, panicked, .. }) = self.replica.run(command) else { return };
        match executed {
            Executed::Reply(outcome) => {
                let outcome = match outcome {
                    ServiceOutcome::Ok(body) => Outcome::Ok(body),
                    ServiceOutcome::Error(body) => Outcome::Error(body),
                    ServiceOutcome::Refused(refusal, reason) => Outcome::Refused(refusal, reason),
                };
                self.put(Frame::Answer(Answer { number, panicked, outcome }));
            }
            Executed::Snapshot(Ok(state)) => self.give_state(number, &state),
            Executed::Restored(Ok(())) => self.put(Frame::Restored(number)),
            Executed::Change(_) | Executed::Applied(_) => {
                unreachable!("a node gives and takes a program's whole states")
            }
            Executed::Snapshot(Err(reason)) | Executed::Restored(Err(reason)) => {
                self.failed(number, reason);
            }
        }
    }

    fn give_state(&mut self, number: u64, state: &Bytes) {
        if state.len() > MAX_STATE {
            let reason = format!("the state has {} bytes, at most {MAX_STATE} fit", state.len());
            return self.failed(number, reason);
        }
        let total = state.len() as u64;
        let mut left = state.clone();
        loop {
            let bytes = left.split_to(left.len().min(ATTACH_PIECE));
            self.put(Frame::State(Piece { number, total, bytes }));
            if left.is_empty() {
                return;
            }
        }
    }

    fn failed(&mut self, number: u64, reason: String) {
        let reason = cut(reason);
        self.put(Frame::Failed(Failed { number, reason }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_writing_when_its_node_ends_ends_well() {
        // How the system tells it depends on whether the write had begun to wait: both come among
        // so many.
        for _ in 0..50 {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            while ours.write(&[7; 1_000]).is_ok() {}
            ours.set_nonblocking(false).unwrap();
            let (told, begins) = std::sync::mpsc::channel();
            let program = std::thread::spawn(move || {
                let (node, output) = (Incoming::new(ours), BytesMut::from(&[7; 1_000][..]));
                let mut link = Link { node, output, waiting: VecDeque::new() };
                told.send(()).unwrap();
                link.flush()
            });
            begins.recv().unwrap();
            for _ in 0..5_000 {
                std::thread::yield_now();
            }
            // The written bytes are not read.
            drop(theirs);
            assert!(program.join().unwrap().unwrap(), "nobody reads any more");
        }
    }

    #[test]
    fn a_token_is_32_bytes_in_hexadecimal_digits() {
        assert_eq!(token_of(&"0f".repeat(TOKEN)), Some([15; TOKEN]));
        for wrong in ["", "0f", &"0g".repeat(TOKEN), &"0f".repeat(TOKEN + 1), &"é".repeat(TOKEN)] {
            assert_eq!(token_of(wrong), None, "{wrong}");
        }
    }
}
