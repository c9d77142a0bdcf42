//! The node's end of a program that serves a replica in a process of its own.
//!
//! The data plane itself reads and writes the program's socket, without ever waiting for it: a
//! command and its answer then wake one process each, as few as with a thread, and the program's
//! death is seen where it matters, by the end of the socket. Commands that the program does not
//! read wait here, within the same limits as for a thread.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

use bytes::{Buf, Bytes, BytesMut};
use engine::{
    Applied, Begun, Changes, Command, Executed, NestedCall, NestedError, ServiceOutcome, Ticket,
};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use supervisor::{Attaching, Tether};
use wire::attach::{Answer, Ask, Execute, Frame, Outcome, Piece, Told};
use wire::client::Refusal;
use wire::limits::ATTACH_PIECE;
use wire::ordered::{MERGE, Style};
use wire::{Duration, GroupId};

use super::guard::cut;
use super::replica::bytes_of;
use super::report::{Asked, Done, News, Report, StateReply, StateReport};
use crate::error::HostError;
use crate::heavy;
use crate::nested::number_of;
use crate::poller::{EventFlags, Poller, Source};

/// Bytes read from a program, and before the others have their turn.
const READ: usize = 64 << 10;

/// Bytes of frames that are made before they are written.
const BATCH: usize = 64 << 10;

/// Bytes written to a program before the others have their turn.
const WRITE: usize = 1 << 20;

const NO_DELTAS: &str = "a program takes whole states: no replica of its group may tell deltas";

/// The next bytes to write.
#[derive(Debug)]
enum Outgoing {
    Frame(Frame),
    State { number: u64, state: Bytes, sent: usize, wrap: fn(Piece) -> Frame },
}

/// An outstanding answer of the program.
enum Expected {
    Execute(Ticket, usize),
    /// The state; how often it had been replaced then.
    Snapshot(Ticket, u64),
    Restore(Ticket),
    /// The change, found from the state; how often the state had been replaced then.
    Change(Ticket, u64),
    /// An update of so many bytes; why it cannot be taken, if that is known already.
    Apply(Ticket, usize, Option<String>),
    /// The state, for the thread that asked.
    State(StateReply),
}

impl Expected {
    fn ticket(&self) -> Option<Ticket> {
        match self {
            Expected::Execute(ticket, _)
            | Expected::Snapshot(ticket, _)
            | Expected::Restore(ticket)
            | Expected::Change(ticket, _)
            | Expected::Apply(ticket, ..) => Some(*ticket),
            Expected::State(_) => None,
        }
    }
}

fn restoring(number: u64, state: Bytes) -> Outgoing {
    Outgoing::State { number, state, sent: 0, wrap: Frame::Restore }
}

pub(crate) struct Process {
    group: GroupId,
    serial: u64,
    stream: UnixStream,
    /// Commands that were not made into bytes yet.
    queue: VecDeque<Outgoing>,
    output: BytesMut,
    input: BytesMut,
    scratch: Box<[u8]>,
    /// The outstanding answers, by the numbers of their commands, which grow.
    expected: VecDeque<(u64, Expected)>,
    /// Answers come in this order. In a stateless group a program may have lanes.
    in_order: bool,
    /// The number of the next command.
    next: u64,
    /// The state that is coming in pieces, and the command that it answers.
    arriving: (u64, Vec<u8>),
    waits_to_write: bool,
    /// Nothing can be written any more: its end is about to be read.
    broken: bool,
    /// Where the program writes which command it begins, if it does.
    begins: Option<File>,
    /// The last message to the program.
    farewell: Option<String>,
    tether: Tether,
    /// In a passive group the program gives and takes whole states; the changes are computed here.
    changes: Option<Changes>,
    /// How often the state was replaced.
    replaced: u64,
    /// It merges states.
    merges: bool,
}

impl Process {
    /// Makes the executor of a program that has shown its token.
    pub fn new(group: GroupId, serial: u64, program: Attaching, style: Style) -> Self {
        let Attaching { stream, input, tether, begins, merges } = program;
        Process {
            group,
            serial,
            stream,
            queue: VecDeque::new(),
            output: BytesMut::with_capacity(BATCH),
            input,
            scratch: vec![0; READ].into(),
            expected: VecDeque::new(),
            in_order: style.has_state(),
            next: 1,
            arriving: (0, Vec::new()),
            waits_to_write: false,
            broken: false,
            begins,
            farewell: None,
            tether,
            changes: (style == Style::WarmPassive).then(Changes::default),
            replaced: 0,
            merges,
        }
    }

    pub fn register(&self, poller: &Poller) -> Result<(), Errno> {
        poller.add(&self.stream, Source::Program(self.serial), EventFlags::IN)
    }

    /// Which start of the program this is.
    pub fn run(&self) -> u64 {
        self.tether.run()
    }

    pub fn tether(&mut self) -> &mut Tether {
        &mut self.tether
    }

    /// The commands that the program has begun, by its own report. The report is trusted, because
    /// the program could claim the same by answering.
    pub fn begun(&self) -> Begun {
        let mut number = [0; 8];
        let told = self.begins.as_ref().map(|file| file.read_exact_at(&mut number, 0));
        if !matches!(told, Some(Ok(()))) {
            return Begun::Any;
        }
        let last = u64::from_le_bytes(number);
        let unbegun = self.expected.iter().filter(|(number, _)| *number > last);
        let first = unbegun.filter_map(|(_, expected)| expected.ticket()).next();
        first.map_or(Begun::Any, Begun::Before)
    }

    /// Sets the message that the program receives when this is dropped.
    pub fn dismiss(&mut self, reason: String) {
        self.farewell = Some(reason);
    }

    /// Its service merges states.
    pub fn merges(&self) -> bool {
        self.merges
    }

    /// The program owes its state to the replica.
    pub fn owes_state(&self) -> bool {
        self.expected.iter().any(|(_, expected)| matches!(expected, Expected::Snapshot(..)))
    }

    /// Queues a command, to be written by [`flush`](Process::flush).
    pub fn give(&mut self, command: Command) {
        let bytes = bytes_of(&command);
        let number = self.next;
        let (outgoing, expected) = match command {
            Command::Execute {
                ticket,
                method,
                json,
                read,
                body,
                now,
                seed,
                client,
                number: call,
                lane,
            } => {
                if let Some(changes) = self.changes.as_mut().filter(|_| !read) {
                    changes.executed();
                }
                let merges = method == MERGE && self.merges;
                // A program that does not merge refuses a method that it does not know, and some look
                // at the encoding first.
                let strange = method == MERGE && !merges;
                let body = if strange { Bytes::from_static(b"[]") } else { body };
                let json = json || strange;
                let outgoing = match merges {
                    true => Outgoing::State { number, state: body, sent: 0, wrap: Frame::Merge },
                    false => Outgoing::Frame(Frame::Execute(Execute {
                        number,
                        now,
                        seed,
                        client,
                        call,
                        method,
                        json,
                        read,
                        lane,
                        body,
                    })),
                };
                (outgoing, Expected::Execute(ticket, bytes))
            }
            Command::Snapshot { ticket } => {
                let expected = Expected::Snapshot(ticket, self.replaced);
                (Outgoing::Frame(Frame::Snapshot(number)), expected)
            }
            Command::Change { ticket } => {
                let expected = Expected::Change(ticket, self.replaced);
                (Outgoing::Frame(Frame::Snapshot(number)), expected)
            }
            Command::Apply { ticket, change } => {
                let applied = self.changes.as_mut().map(|changes| changes.apply(&change));
                let (state, failed) = match applied {
                    Some(Ok(Applied::State(state))) => (state, None),
                    Some(Ok(Applied::Own(_))) => (Bytes::new(), Some(NO_DELTAS.into())),
                    Some(Err(reason)) => (Bytes::new(), Some(reason)),
                    None => (Bytes::new(), Some("the group is not passive".into())),
                };
                let expected = Expected::Apply(ticket, bytes, failed);
                (restoring(number, state), expected)
            }
            Command::Restore { ticket, state } => {
                self.replaced += 1;
                if let Some(changes) = &mut self.changes {
                    changes.restored(state.clone());
                }
                (restoring(number, state), Expected::Restore(ticket))
            }
            // It begins with its initial state.
            Command::Start(style) => {
                self.changes = (style == Style::WarmPassive).then(Changes::default);
                return;
            }
            Command::Stop => return, // its executor ends it
            Command::Style(style) => return self.take_style(style),
            Command::View(view) => {
                return self.queue.push_back(Outgoing::Frame(Frame::View(view)));
            }
            // A program may not know it: no answer is expected.
            Command::Digest { number } => {
                return self.queue.push_back(Outgoing::Frame(Frame::Compare(number)));
            }
            Command::Reset => {
                self.replaced += 1;
                if let Some(changes) = &mut self.changes {
                    changes.reset();
                }
                return self.queue.push_back(Outgoing::Frame(Frame::Reset));
            }
        };
        self.expect(outgoing, expected);
    }

    /// From here on the primary alone executes, and what has changed is found here; or all do. The
    /// program need not know.
    fn take_style(&mut self, style: Style) {
        if style != Style::WarmPassive {
            self.changes = None;
        } else if self.changes.is_none() {
            self.changes = Some(Changes::default());
        }
    }

    /// Asks for the state, for `reply`.
    pub fn ask_state(&mut self, reply: StateReply) {
        self.expect(Outgoing::Frame(Frame::Snapshot(self.next)), Expected::State(reply));
    }

    fn expect(&mut self, outgoing: Outgoing, expected: Expected) {
        self.queue.push_back(outgoing);
        self.expected.push_back((self.next, expected));
        self.next += 1;
    }

    /// Writes what the socket takes, up to a batch.
    pub fn flush(&mut self, poller: &Poller) {
        let mut written = 0;
        while !self.broken && written < WRITE {
            self.make_bytes();
            if self.output.is_empty() {
                break;
            }
            match send(&self.stream, &self.output, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.output.advance(count);
                    written += count;
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                // The program's last answers are read first, then its end.
                Err(_) => self.broken = true,
            }
        }
        let more = !self.output.is_empty() || !self.queue.is_empty();
        let wants = more && !self.broken;
        if wants != self.waits_to_write {
            let flags = if wants { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            // Epoll knows the socket: only a lack of memory could be told here, and then the next
            // command's turn tries again.
            if poller.modify(&self.stream, Source::Program(self.serial), flags).is_ok() {
                self.waits_to_write = wants;
            }
        }
    }

    /// Makes frames of what is queued, up to a batch.
    fn make_bytes(&mut self) {
        while self.output.len() < BATCH
            && let Some(first) = self.queue.front_mut()
        {
            match first {
                Outgoing::Frame(frame) => frame.append(&mut self.output),
                Outgoing::State { number, state, sent, wrap } => {
                    let (number, total) = (*number, state.len() as u64);
                    let end = state.len().min(*sent + ATTACH_PIECE);
                    let bytes = state.slice(*sent..end);
                    *sent = end;
                    wrap(Piece { number, total, bytes }).append(&mut self.output);
                    if end < state.len() {
                        continue;
                    }
                }
            }
            self.queue.pop_front();
        }
    }

    /// Reads once, and adds what became of commands to `done`. True if there may be more to read.
    ///
    /// # Errors
    /// Why the program serves no more: its connection has ended, or it breaks the protocol.
    pub fn receive(&mut self, done: &mut Vec<Report>) -> Result<bool, String> {
        let length = match recv(&self.stream, &mut *self.scratch, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err("its connection has ended".into()),
            Ok((_, length)) => length,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(error) => return Err(format!("its connection is broken: {error}")),
        };
        self.input.extend_from_slice(&self.scratch[..length]);
        self.take_frames(done)?;
        Ok(true)
    }

    fn take_frames(&mut self, done: &mut Vec<Report>) -> Result<(), String> {
        loop {
            let frame = match Frame::take(&mut self.input) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(malformed) => return Err(format!("what it writes is no frame: {malformed}")),
            };
            match frame {
                Frame::Farewell(reason) => return Err(format!("it says: {reason}")),
                Frame::Call(ask) => done.push(Report::Call(self.asked(ask)?)),
                Frame::Notice(notice) => done.push(self.says(News::Notice(notice))),
                Frame::Digested(digested) => done.push(self.says(News::Digest(digested))),
                frame => done.extend(self.answered(frame)?.map(Report::Done)),
            }
        }
    }

    /// The program says something about its state.
    fn says(&self, news: News) -> Report {
        Report::State(StateReport { group: self.group, serial: self.serial, news })
    }

    /// A handler of the program calls another group.
    fn asked(&self, ask: Ask) -> Result<Asked, String> {
        let at = self.position(ask.number);
        let Some((_, Expected::Execute(ticket, _))) = at.map(|at| &self.expected[at]) else {
            return Err(format!("it calls a group for {}, which it does not execute", ask.number));
        };
        let call = NestedCall {
            ticket: *ticket,
            callee: ask.group,
            method: ask.method,
            json: ask.json,
            body: ask.body,
            timeout: Duration::from_micros(ask.timeout_us.into()),
        };
        Ok(Asked { group: self.group, serial: self.serial, call, reply: None })
    }

    /// Tells the program what came of its handler's call.
    pub fn resume(&mut self, ticket: Ticket, outcome: Result<Bytes, NestedError>) {
        let is_it = |(_, expected): &&(u64, Expected)| matches!(expected, Expected::Execute(given, _) if *given == ticket);
        let Some(number) = self.expected.iter().find(is_it).map(|(number, _)| *number) else {
            return;
        };
        let outcome = match outcome {
            Ok(body) => Outcome::Ok(body),
            Err(NestedError::Service(body)) => Outcome::Error(body),
            Err(NestedError::Refused(refusal, reason)) => Outcome::Refused(refusal, reason),
            Err(error) => return self.tell_failed(number, error),
        };
        self.put_first(Frame::Called(Told { number, error: 0, outcome }));
    }

    fn tell_failed(&mut self, number: u64, error: NestedError) {
        let outcome = Outcome::Refused(Refusal::Failed, cut(error.to_string()));
        let told = Told { number, error: number_of(&error), outcome };
        self.put_first(Frame::Called(told));
    }

    /// The place of an outstanding answer that may come now.
    fn position(&self, number: u64) -> Option<usize> {
        let at = self.expected.binary_search_by_key(&number, |(number, _)| *number).ok();
        at.filter(|at| *at == 0 || !self.in_order)
    }

    /// Ahead of the commands that wait: the program's handler does.
    fn put_first(&mut self, frame: Frame) {
        let begun = matches!(self.queue.front(), Some(Outgoing::State { sent, .. }) if *sent > 0);
        self.queue.insert(usize::from(begun), Outgoing::Frame(frame));
    }

    /// Matches an answer to its command.
    fn answered(&mut self, frame: Frame) -> Result<Option<Done>, String> {
        let number = match &frame {
            Frame::Answer(answer) => answer.number,
            Frame::State(piece) => piece.number,
            Frame::Failed(failed) => failed.number,
            Frame::Restored(number) => *number,
            _ => return Err("it writes frames that only a node writes".into()),
        };
        let Some(at) = self.position(number) else {
            return Err(format!("it answers {number}, which is not the next that was asked"));
        };
        if let Frame::State(piece) = frame {
            return self.take_piece(at, piece);
        }
        let Some((_, expected)) = self.expected.remove(at) else { return Ok(None) };
        match (expected, frame) {
            (Expected::Execute(ticket, bytes), Frame::Answer(answer)) => {
                Ok(Some(self.executed(ticket, bytes, answer)))
            }
            (Expected::Snapshot(ticket, _), Frame::Failed(failed)) => {
                Ok(Some(self.done(ticket, Executed::Snapshot(Err(failed.reason)))))
            }
            (Expected::Restore(ticket), Frame::Failed(failed)) => {
                Ok(Some(self.done(ticket, Executed::Restored(Err(failed.reason)))))
            }
            (Expected::Restore(ticket), Frame::Restored(_)) => {
                Ok(Some(self.done(ticket, Executed::Restored(Ok(())))))
            }
            (Expected::Change(ticket, _), Frame::Failed(failed)) => {
                Ok(Some(self.done(ticket, Executed::Change(Err(failed.reason)))))
            }
            (Expected::Apply(ticket, bytes, known), Frame::Failed(failed)) => {
                let executed = Executed::Applied(Err(known.unwrap_or(failed.reason)));
                Ok(Some(Done { bytes, ..self.done(ticket, executed) }))
            }
            (Expected::Apply(ticket, bytes, known), Frame::Restored(_)) => {
                // A backup of a passive group does nothing else, and is of use.
                self.tether.served();
                let executed = Executed::Applied(known.map_or(Ok(()), Err));
                Ok(Some(Done { bytes, ..self.done(ticket, executed) }))
            }
            (Expected::State(reply), Frame::Failed(failed)) => {
                // The asker may have given up.
                let _ = reply.try_send(Err(HostError::Snapshot(failed.reason)));
                Ok(None)
            }
            _ => Err(format!("its answer to {number} is none to what was asked")),
        }
    }

    fn take_piece(&mut self, at: usize, piece: Piece) -> Result<Option<Done>, String> {
        let asked = |expected: &Expected| {
            matches!(expected, Expected::Snapshot(..) | Expected::State(_) | Expected::Change(..))
        };
        if !asked(&self.expected[at].1) {
            return Err(format!("it gives a state, which {} did not ask for", piece.number));
        }
        let (number, arriving) = &mut self.arriving;
        if *number != piece.number && !arriving.is_empty() {
            return Err(format!("it mixes its states for {number} and {}", piece.number));
        }
        *number = piece.number;
        arriving.extend_from_slice(&piece.bytes);
        let (there, total) = (arriving.len() as u64, piece.total);
        if there > total {
            return Err(format!("its state has {there} bytes, and {total} were told"));
        }
        if there < total {
            return Ok(None);
        }
        let state = std::mem::take(arriving);
        match self.expected.remove(at).map(|(_, expected)| expected) {
            Some(Expected::Change(ticket, replaced)) => {
                let changes = self.changes.as_mut().filter(|_| replaced == self.replaced);
                let change = changes.map(|changes| changes.take(None, || Ok(state)));
                // The stack was told to forget this request, together with the state.
                let change = change.unwrap_or_else(|| Err("the state was replaced".into()));
                Ok(Some(self.done(ticket, Executed::Change(change))))
            }
            Some(Expected::Snapshot(ticket, replaced)) => {
                // A state that is to be merged is asked for just before another is given.
                let changes = self.changes.as_ref().filter(|_| replaced == self.replaced);
                let current = changes.and_then(Changes::current).cloned();
                let state = current.unwrap_or_else(|| heavy::bytes(state));
                Ok(Some(self.done(ticket, Executed::Snapshot(Ok(state)))))
            }
            Some(Expected::State(reply)) => {
                let _ = reply.try_send(Ok(state));
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn executed(&mut self, ticket: Ticket, bytes: usize, answer: Answer) -> Done {
        self.tether.served();
        let outcome = match answer.outcome {
            Outcome::Ok(body) => ServiceOutcome::Ok(body),
            Outcome::Error(body) => ServiceOutcome::Error(body),
            Outcome::Refused(refusal, reason) => ServiceOutcome::Refused(refusal, reason),
        };
        let executed = Executed::Reply(super::replica::limited(outcome));
        Done { panicked: answer.panicked, bytes, ..self.done(ticket, executed) }
    }

    fn done(&self, ticket: Ticket, executed: Executed) -> Done {
        let (group, serial) = (self.group, self.serial);
        Done { group, serial, ticket, executed, panicked: false, bytes: 0 }
    }
}

/// The program is told why it is needed no more, if its socket takes that at once: without a
/// reason, because all is as it should be. The end of the connection says the same.
impl Drop for Process {
    fn drop(&mut self) {
        let reason = self.farewell.take();
        let words = Frame::Farewell(cut(reason.clone().unwrap_or_default())).encode();
        if self.output.is_empty() && !self.broken {
            let _ = send(&self.stream, &words, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
        self.tether.detached(reason);
    }
}
