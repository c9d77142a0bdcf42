//! Reports to the agent's main thread.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::Sender;

use image::{Parent, Place, Root};
use job::{Assignment, Command, End, Key, Taken, Task, Void};
use wire::Member;
use wire::agents::{Kept, Open, Route, Word};
use wire::rank::{Frame, TOKEN};

use crate::images::{RestoreError, Restored};
use crate::link::Link;
use crate::program::{Digested, Stamp};

/// Tells an agent to stop.
#[derive(Clone, Debug)]
pub struct Stop(pub(crate) Sender<Event>);

impl Stop {
    /// It ends its ranks, and then itself.
    pub fn stop(&self) {
        let _ = self.0.send(Event::Stop);
    }
}

/// A report to the main thread.
#[derive(Debug)]
pub(crate) enum Event {
    /// The book wants this.
    Wanted(Assignment),
    /// The book has answered.
    Answer(Command, Result<Taken, Void>),
    /// The node is gone.
    Gone(String),
    /// Somebody has come in, with this token.
    Came(Link, [u8; TOKEN]),
    /// A rank says something, with a file.
    Said(u64, Frame, Option<File>),
    /// A rank says what makes no sense.
    Nonsense(u64, String),
    /// A rank's stream has ended.
    Closed(u64),
    /// A rank's process has ended.
    Ended(Key, End),
    /// An image is written, or not.
    Saved(Place, Option<Parent>, Result<(Root, u64), String>),
    /// A job's program was read, for this start.
    Read(Box<Task>, PathBuf, io::Result<(Stamp, Digested)>),
    /// A state is read, or not.
    Restored(Key, Result<Restored, RestoreError>),
    /// A copy of this image is here, or is not.
    Fetched(Place, Result<Root, String>),
    /// An agent was reached: words may have been lost before.
    Reached(Member),
    /// An agent cannot be reached for long.
    Unreached(Member),
    /// An agent says something about messages.
    Heard(Member, Word),
    /// A log of a rank elsewhere is mirrored here, for a rank that is here; or what was kept of it.
    Mirrored(Open, File),
    /// A log of a rank elsewhere is on the disk here, so far; it came from this agent.
    Keeps(Member, Kept),
    /// A log of this start of a rank here cannot be kept on the disk.
    NotKept(Route, u64),
    /// An image was found damaged.
    Damaged(Place),
    /// The warm process of this job, the one of this number, is ready; or it is of no use, and why.
    Warmed(u64, u64, Result<(), String>),
    /// It is told to stop.
    Stop,
}
