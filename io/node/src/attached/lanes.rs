//! A program that executes the calls of each lane on a thread of its own: for stateless groups.
//!
//! The program's first thread reads commands and hands them to the lanes. A lane answers for
//! itself. While its handler waits for another group, it waits for what the first thread brings.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use engine::{Command, NestedCall, NestedError, Ticket};
use wire::attach::{Frame, Told};
use wire::ordered::Style;
use wire::{GroupId, Lane};

use super::answers::{answer, ask_of, command_of, outcome_of};
use super::connection::{AttachError, Incoming};
use crate::executor::Replica;
use crate::service::{Factory, Line};

/// The way to the node, for all lanes.
struct Outward(Mutex<Writing>);

struct Writing {
    stream: UnixStream,
    /// The lanes whose handlers wait for another group, by their commands.
    waiting: BTreeMap<u64, Sender<Told>>,
    /// The node answers nothing any more.
    gone: bool,
}

impl Outward {
    fn lock(&self) -> MutexGuard<'_, Writing> {
        // A frame is whole before anything that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Outward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the way to the node")
    }
}

impl Writing {
    /// A node that is gone reads nothing: the first thread sees the end.
    fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }
}

impl Line for Outward {
    fn call(&self, call: NestedCall) -> Result<Bytes, NestedError> {
        let number = call.ticket.0;
        let ask = ask_of(call)?;
        let (tell, told) = channel();
        let mut writing = self.lock();
        if writing.gone {
            return Err(NestedError::Void);
        }
        writing.waiting.insert(number, tell);
        writing.write(&Frame::Call(ask).encode());
        drop(writing);
        // The sender is gone with the node, which takes no answer from the handler either.
        outcome_of(told.recv().map_err(|_| NestedError::Void)?)
    }
}

/// Serves in lanes until the node is gone, or needs the replica no more.
pub(super) fn serve(
    mut node: Incoming,
    group: GroupId,
    make: impl Fn() -> Factory,
) -> Result<(), AttachError> {
    let writing =
        Writing { stream: node.stream.try_clone()?, waiting: BTreeMap::new(), gone: false };
    let outward = Arc::new(Outward(Mutex::new(writing)));
    let (mut lanes, mut threads) = (BTreeMap::new(), Vec::new());
    for lane in Lane::ALL {
        let line = outward.clone();
        let replica = Replica::new(group, 0, make(), Style::Stateless, Some(line.clone()));
        let replica = replica.expect("no state is tried here");
        let (give, queue) = channel();
        let body = move || work(replica, &queue, &line);
        threads.push(os::threads::spawn(format!("lane {lane:?}"), body)?);
        lanes.insert(lane, give);
    }
    let ended = hand_out(&mut node, &outward, |lane, job| {
        // A lane ends only after its sender.
        let _ = lanes[&lane].send(job);
    });
    let mut writing = outward.lock();
    (writing.gone, writing.waiting) = (true, BTreeMap::new());
    drop(writing);
    drop(lanes);
    for thread in threads {
        // A panic in it has been printed already.
        let _ = thread.join();
    }
    ended
}

/// Reads what the node sends, until the end.
fn hand_out(
    node: &mut Incoming,
    outward: &Outward,
    give: impl Fn(Lane, (u64, Command)),
) -> Result<(), AttachError> {
    while let Some(frame) = node.receive()? {
        match frame {
            Frame::Execute(execute) => {
                let (lane, number) = (execute.lane, execute.number);
                give(lane, (number, command_of(execute)));
            }
            Frame::Snapshot(number) => {
                give(Lane::Normal, (number, Command::Snapshot { ticket: Ticket(number) }));
            }
            Frame::Reset => Lane::ALL.into_iter().for_each(|lane| give(lane, (0, Command::Reset))),
            Frame::View(view) => {
                Lane::ALL.into_iter().for_each(|lane| give(lane, (0, Command::View(view.clone()))));
            }
            Frame::Called(told) => {
                if let Some(waits) = outward.lock().waiting.remove(&told.number) {
                    let _ = waits.send(told);
                }
            }
            Frame::Farewell(reason) if reason.is_empty() => return Ok(()),
            Frame::Farewell(reason) => return Err(AttachError::Dismissed(reason)),
            Frame::Notice(_) | Frame::Compare(_) | Frame::Digested(_) => {}
            _ => return Err(wire::Malformed::Field("kind").into()),
        }
    }
    Ok(())
}

/// A lane: its commands in order.
fn work(mut replica: Replica, queue: &Receiver<(u64, Command)>, outward: &Outward) {
    let mut output = BytesMut::new();
    for (number, command) in queue {
        // Others have been given the calls that wait here.
        if outward.lock().gone {
            return;
        }
        if let Some(done) = replica.run(command) {
            answer(number, done, |frame| frame.append(&mut output));
            outward.lock().write(&output);
            output.clear();
        }
    }
}
