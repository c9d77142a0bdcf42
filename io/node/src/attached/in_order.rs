//! A program that executes all commands in order, on one thread. It answers together what came
//! together, and sooner where a handler takes its time.

use std::collections::VecDeque;
use std::env;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use engine::{Command, NestedCall, NestedError, Ticket};
use os::clock::monotonic;
use wire::attach::{BEGINS_VARIABLE, Frame, Piece, Told};
use wire::ordered::{MERGE, Style};
use wire::{ClientId, Duration, GroupId, Lane, Time};

use super::answers::{answer, ask_of, command_of, outcome_of};
use super::connection::{AttachError, Incoming, is_gone};
use crate::executor::{News, Replica};
use crate::service::{Factory, Line};

/// Answers wait for those behind them up to so many bytes, and for at most this long.
const BATCH: usize = 64 << 10;
const HELD_BACK: Duration = Duration::from_micros(50);

/// Introduces the program, once its state has been tried, and serves until the node is gone or needs
/// the replica no more.
pub(super) fn serve(
    node: Incoming,
    group: &str,
    make: Factory,
    begins: Option<File>,
) -> Result<(), AttachError> {
    let (output, waiting) = (BytesMut::new(), VecDeque::new());
    let link = Arc::new(Shared(Mutex::new(Link { node, output, waiting })));
    let replica = Replica::new(GroupId::of(group), 0, make, Style::default(), Some(link.clone()));
    let replica = replica.map_err(AttachError::State)?;
    link.lock().node.introduce(group, replica.merges())?;
    Server { link, replica, arriving: Vec::new(), begins }.serve()
}

/// The file in which its node looks for what it has begun: nothing so far.
pub(super) fn begins() -> Option<File> {
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
        let (number, ask) = (call.ticket.0, ask_of(call)?);
        let mut link = self.lock();
        Frame::Call(ask).append(&mut link.output);
        // A node that is gone takes no answer from the handler either.
        let told = link.told(number).ok().flatten().ok_or(NestedError::Void)?;
        outcome_of(told)
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

    /// Does what a frame asks for; false if it was the last one.
    fn handle(&mut self, frame: Frame) -> Result<bool, AttachError> {
        match frame {
            Frame::Execute(execute) => self.run(execute.number, command_of(execute)),
            Frame::Snapshot(number) => {
                self.run(number, Command::Snapshot { ticket: Ticket(number) })
            }
            Frame::Restore(piece) => {
                if let Some((ticket, state)) = self.take(piece)? {
                    self.run(ticket.0, Command::Restore { ticket, state });
                }
            }
            Frame::Merge(piece) => {
                if let Some((ticket, state)) = self.take(piece)? {
                    self.run(ticket.0, merge(ticket, state));
                }
            }
            Frame::Reset => drop(self.replica.run(Command::Reset)),
            // Without a reason it is as it should be: the node stops, or needs the replica no more.
            Frame::Farewell(reason) if reason.is_empty() => return Ok(false),
            Frame::Farewell(reason) => return Err(AttachError::Dismissed(reason)),
            Frame::Compare(number) => {
                drop(self.replica.run(Command::Digest { number }));
                self.tell();
            }
            Frame::View(view) => drop(self.replica.run(Command::View(view))),
            // A node says nothing of a state; optional frames are skipped.
            Frame::Notice(_) | Frame::Digested(_) => {}
            _ => return Err(wire::Malformed::Field("kind").into()),
        }
        Ok(true)
    }

    /// Takes a piece of a state. With the last one: the number of its command, and the whole.
    fn take(&mut self, piece: Piece) -> Result<Option<(Ticket, Bytes)>, AttachError> {
        self.arriving.extend_from_slice(&piece.bytes);
        let there = self.arriving.len() as u64;
        if there > piece.total {
            return Err(wire::Malformed::Field("total").into());
        }
        let whole = (there == piece.total).then(|| std::mem::take(&mut self.arriving).into());
        Ok(whole.map(|state| (Ticket(piece.number), state)))
    }

    fn run(&mut self, number: u64, command: Command) {
        note_begun(self.begins.as_ref(), number);
        if let Some(done) = self.replica.run(command) {
            let mut link = self.link.lock();
            answer(number, done, |frame| frame.append(&mut link.output));
        }
        if self.replica.has_news() {
            self.tell();
        }
    }

    /// Tells the news of the state. The caller has its answer first: a trial takes its time.
    #[cold]
    fn tell(&mut self) {
        let mut link = self.link.lock();
        // If nobody reads it any more, the next command finds out.
        let _ = link.flush();
        for news in self.replica.take_news() {
            let frame = match news {
                News::Notice(notice) => Frame::Notice(notice),
                News::Digest(digested) => Frame::Digested(digested),
            };
            frame.append(&mut link.output);
        }
    }
}

fn merge(ticket: Ticket, body: Bytes) -> Command {
    Command::Execute {
        ticket,
        method: MERGE,
        json: false,
        read: false,
        body,
        now: Time::ZERO,
        seed: 0,
        client: ClientId(0),
        number: 0,
        lane: Lane::Normal,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

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
}
