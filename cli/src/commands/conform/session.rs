//! One start of the program, with its node's side of the protocol.

use std::fmt::Display;
use std::process::ExitStatus;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use wire::attach::{Execute, Frame, Hello, Outcome, Piece};
use wire::client::Refusal;
use wire::limits::ATTACH_PIECE;
use wire::versions::ATTACH;
use wire::{ClientId, Lane, Random, Time};

use super::link::{Broken, Link, Notice, welcome};
use super::plan::Call;
use super::process::{GROUP, Process, Surroundings, sleeps};
use super::verdict::{Flaw, shown};

/// The first ordered time, in nanoseconds since 1970. Each call comes a millisecond later.
const FIRST_TIME: u64 = 1_700_000_000_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// Bytes of a state that the trial takes.
const MAX_STATE: u64 = 256 << 20;

/// How long a program may take to say Hello, as with a node.
const HELLO_WITHIN: Duration = Duration::from_secs(10);

/// How long is waited for the end of a process whose connection has ended.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// How a program is started and let in.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    pub command: &'a [String],
    /// The longest time for each answer.
    pub wait: Duration,
    pub surroundings: Surroundings,
    /// Flag 1 of the welcome.
    pub ordered: bool,
    pub extension: &'static [u8],
}

/// A program that was let in.
pub struct Session {
    link: Link,
    process: Process,
    /// The process that said Hello: a child of the started one, perhaps.
    pid: u32,
    wait: Duration,
    /// Its service merges states.
    merges: bool,
    number: u64,
    /// Calls so far: the time and the seed of each follow from it, in every start alike.
    stamp: u64,
}

impl Session {
    /// Starts the program, takes its Hello and lets it in.
    pub fn open(start: Start<'_>) -> Result<Session, Flaw> {
        let mut process = Process::start(start.command, start.surroundings)?;
        let stream = process.accept(HELLO_WITHIN)?;
        let ours = |error: std::io::Error| Flaw::wrong("a connection", error.to_string());
        let mut link = Link::new(stream, HELLO_WITHIN).map_err(ours)?;
        let hello = match link.receive() {
            Ok(Frame::Hello(hello)) => hello,
            Ok(other) => return Err(Flaw::wrong("Hello, as the first frame", name(&other))),
            Err(error) => {
                let seen = format!("{error}; {}", process.fate());
                return Err(Flaw::wrong(format!("Hello within {HELLO_WITHIN:?}"), seen));
            }
        };
        check(&hello, &process)?;
        link.set_wait(start.wait).map_err(ours)?;
        let (pid, merges, wait) = (hello.pid, hello.merges, start.wait);
        let mut session = Session { link, process, pid, wait, merges, number: 0, stamp: 0 };
        session.write(&welcome(start.ordered, start.extension))?;
        Ok(session)
    }

    /// Whether the service says that it merges states.
    pub fn merges(&self) -> bool {
        self.merges
    }

    /// The number of the last command.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The time and seed of the last call.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The next call has the time and the seed that come after this one.
    pub fn set_stamp(&mut self, stamp: u64) {
        self.stamp = stamp;
    }

    fn broken(&mut self, expected: impl Display, error: &Broken) -> Flaw {
        if matches!(error, Broken::Ended) {
            // Its end comes with that of the connection: then it is told with its last words.
            self.process.end(ENDS_WITHIN);
        }
        Flaw::wrong(expected.to_string(), format!("{error}; {}", self.process.fate()))
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Flaw> {
        let written = self.link.write(bytes);
        written.map_err(|error| self.broken("the program reads what the node writes", &error))
    }

    pub fn receive(&mut self, expected: impl Display) -> Result<Frame, Flaw> {
        let received = self.link.receive();
        received.map_err(|error| self.broken(expected, &error))
    }

    /// The bytes of a call, as the next command.
    pub fn command(&mut self, call: &Call, how: How) -> Bytes {
        self.command_with(call, how, Bytes::from(call.body.clone()))
    }

    fn command_with(&mut self, call: &Call, how: How, body: Bytes) -> Bytes {
        self.number += 1;
        self.stamp += 1;
        let execute = Execute {
            number: self.number,
            now: Time(FIRST_TIME + self.stamp * MILLISECOND),
            seed: Random::new(self.stamp).next_u64(),
            client: ClientId(1),
            call: self.stamp,
            method: call.id(),
            json: how != How::Postcard,
            read: how == How::Read,
            lane: Lane::Normal,
            body,
        };
        Frame::Execute(execute).encode()
    }

    /// Makes a call and takes its answer.
    pub fn execute(&mut self, call: &Call, how: How) -> Result<Outcome, Flaw> {
        let bytes = self.command(call, how);
        self.write(&bytes)?;
        self.answer(self.number, call)
    }

    /// Makes a call with other arguments, which may be no JSON.
    pub fn execute_bytes(&mut self, call: &Call, body: Vec<u8>) -> Result<Outcome, Flaw> {
        let odd = Call { body: String::from_utf8_lossy(&body).into_owned(), ..call.clone() };
        let bytes = self.command_with(call, How::Ordered, body.into());
        self.write(&bytes)?;
        self.answer(self.number, &odd)
    }

    /// The program's words on its state so far, each once.
    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.link.notices)
    }

    /// Takes the answer to this command.
    pub fn answer(&mut self, number: u64, call: &Call) -> Result<Outcome, Flaw> {
        let expected = format!("the answer to command {number} ({call})");
        match self.receive(&expected)? {
            Frame::Answer(answer) if answer.number == number => Ok(answer.outcome),
            other => Err(Flaw::wrong(expected, name(&other))),
        }
    }

    /// Executes calls one by one.
    pub fn execute_all(&mut self, calls: &[Call]) -> Result<Vec<Outcome>, Flaw> {
        calls.iter().map(|call| self.execute(call, How::Ordered)).collect()
    }

    /// Takes the whole state.
    pub fn snapshot(&mut self) -> Result<Vec<u8>, Flaw> {
        self.number += 1;
        self.write(&Frame::Snapshot(self.number).encode())?;
        let mut state: Vec<u8> = Vec::new();
        let mut total = None;
        loop {
            let number = self.number;
            let there = state.len();
            let expected = match total {
                None => format!("the state, as the answer to command {number}"),
                Some(total) => format!("the rest of the state: {there} of {total} bytes came"),
            };
            let piece = match self.receive(&expected)? {
                Frame::State(piece) if piece.number == number => piece,
                other => return Err(Flaw::wrong(expected, name(&other))),
            };
            let total = *total.get_or_insert(piece.total);
            let there = state.len() as u64 + piece.bytes.len() as u64;
            if piece.total != total || there > total {
                let seen = format!("the total {} with {there} bytes so far", piece.total);
                return Err(Flaw::wrong(format!("pieces of {total} bytes in all"), seen));
            }
            if total > MAX_STATE {
                let why = format!("a state of {total} bytes: this trial takes {MAX_STATE}");
                return Err(Flaw::not_tried(why));
            }
            state.extend_from_slice(&piece.bytes);
            if there == total {
                return Ok(state);
            }
        }
    }

    /// Gives a state in at least three pieces, if it has as many bytes. The program's reason, if it
    /// cannot take it.
    pub fn restore(&mut self, state: &[u8]) -> Result<Result<(), String>, Flaw> {
        let number = self.give(state, Frame::Restore)?;
        let expected = format!("Restored or Failed for command {number}");
        match self.receive(&expected)? {
            Frame::Restored(restored) if restored == number => Ok(Ok(())),
            Frame::Failed(failed) if failed.number == number => Ok(Err(failed.reason)),
            other => Err(Flaw::wrong(expected, name(&other))),
        }
    }

    /// Gives the state of another history, in pieces as those of [`Session::restore`].
    pub fn merge(&mut self, state: &[u8]) -> Result<Outcome, Flaw> {
        let number = self.give(state, Frame::Merge)?;
        self.answer(number, &Call::new("steadfast.merge", ""))
    }

    fn give(&mut self, state: &[u8], frame: fn(Piece) -> Frame) -> Result<u64, Flaw> {
        self.number += 1;
        let (number, total) = (self.number, state.len() as u64);
        let mut bytes = BytesMut::new();
        let size = state.len().div_ceil(3).clamp(1, ATTACH_PIECE);
        let mut put = |piece: &[u8]| {
            let bytes_of = Bytes::copy_from_slice(piece);
            frame(Piece { number, total, bytes: bytes_of }).append(&mut bytes);
        };
        match state {
            [] => put(&[]),
            state => state.chunks(size).for_each(put),
        }
        self.write(&bytes)?;
        Ok(number)
    }

    /// Gives a state that the program itself has made.
    pub fn restore_own(&mut self, state: &[u8]) -> Result<(), Flaw> {
        let expected = "Restored: the state is one that the program gave";
        self.restore(state)?.map_err(|reason| {
            Flaw::wrong(expected, format!("Failed: {}", shown(reason.as_bytes())))
        })
    }

    pub fn reset(&mut self) -> Result<(), Flaw> {
        self.write(&Frame::Reset.encode())
    }

    pub fn begun(&self) -> Result<Option<u64>, Flaw> {
        self.process.begun()
    }

    /// Whether the program does nothing at this moment.
    pub fn sleeps(&self) -> bool {
        sleeps(self.pid)
    }

    pub fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    /// Waits until the program has ended.
    pub fn end(&mut self, after: &str, within: Duration) -> Result<ExitStatus, Flaw> {
        self.process.end(within).ok_or_else(|| {
            let expected = format!("{after}: the program ends within {within:?}");
            Flaw::wrong(expected, "the program still runs")
        })
    }

    /// Waits until the program has ended with an error.
    pub fn end_in_error(&mut self, after: &str) -> Result<(), Flaw> {
        let status = self.end(after, self.wait)?;
        // A signal would be a crash: other bytes might do worse.
        if status.success() || status.code().is_none() {
            let expected = format!("{after}: the program exits with a status other than 0");
            return Err(Flaw::wrong(expected, status.to_string()));
        }
        Ok(())
    }

    /// Ends the connection. The process goes on.
    pub fn close(&mut self) {
        self.link.close();
    }
}

/// The form of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// In JSON, in the order of all calls.
    Ordered,
    /// In JSON, as a read.
    Read,
    /// In postcard.
    Postcard,
}

fn check(hello: &Hello, process: &Process) -> Result<(), Flaw> {
    if ATTACH.common(hello.speaks).is_none() {
        let expected = format!("Hello with version {ATTACH} of the protocol");
        return Err(Flaw::wrong(expected, format!("version {}", hello.speaks)));
    }
    if hello.token != process.token {
        return Err(Flaw::wrong("Hello with the 32 bytes of $STEADFAST_TOKEN", "other bytes"));
    }
    if hello.group != GROUP {
        let seen = format!("\"{}\"", shown(hello.group.as_bytes()));
        return Err(Flaw::wrong(format!("Hello with the group \"{GROUP}\""), seen));
    }
    let pid = i32::try_from(hello.pid).ok().and_then(rustix::process::Pid::from_raw);
    if pid.is_none_or(|pid| rustix::process::test_kill_process(pid).is_err()) {
        let expected = "Hello with the number of the program's process";
        return Err(Flaw::wrong(expected, format!("{}, which is none", hello.pid)));
    }
    match process.begun()? {
        None | Some(0) => Ok(()),
        Some(other) => {
            Err(Flaw::wrong("0 in $STEADFAST_BEGINS before Hello, or nothing", other.to_string()))
        }
    }
}

/// A frame in words.
pub fn name(frame: &Frame) -> String {
    match frame {
        Frame::Answer(answer) => {
            format!("the answer to command {}: {}", answer.number, told(&answer.outcome))
        }
        Frame::State(piece) => format!("a piece of the state for command {}", piece.number),
        Frame::Failed(failed) => format!("Failed for command {}: {}", failed.number, failed.reason),
        Frame::Restored(number) => format!("Restored for command {number}"),
        Frame::Farewell(reason) => format!("Farewell: {reason}"),
        Frame::Hello(_) => "another Hello".into(),
        _ => "a frame that only a node sends".into(),
    }
}

/// An outcome in words.
pub fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ok(bytes) => format!("the result {}", shown(bytes)),
        Outcome::Error(bytes) => format!("the service's error {}", shown(bytes)),
        Outcome::Refused(refusal, reason) => {
            let number = *refusal as u8;
            format!("refusal {number} ({refusal:?}): {}", shown(reason.as_bytes()))
        }
    }
}

/// Demands this refusal.
pub fn refused(outcome: &Outcome, refusal: Refusal, what: impl Display) -> Result<(), Flaw> {
    match outcome {
        Outcome::Refused(seen, _) if *seen == refusal => Ok(()),
        other => {
            let expected = format!("{what}: refusal {} ({refusal:?})", refusal as u8);
            Err(Flaw::wrong(expected, told(other)))
        }
    }
}
