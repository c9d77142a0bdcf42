//! Programs that serve replicas in processes of their own.
//!
//! One thread of the node's (`steadfast programs`) starts them, takes in those who show their token at the
//! socket, writes their output to the log, and starts anew those who end. Commands and answers do not
//! pass here: a program that has been let in belongs to the data plane (`executor/process.rs`).
//!
//! - here: the thread's other end, and what it is told
//! - `programs/desk.rs`: the thread; `programs/running.rs`: one program there
//! - `programs/starter.rs`: programs with a real-time priority
//! - `programs/minder.rs`: when a program is started and ended, a pure machine
//! - `programs/door.rs`: the socket at which programs attach
//! - `programs/child.rs`: a process and its pipes; `programs/lines.rs`: its output

mod child;
mod desk;
mod door;
mod lines;
mod minder;
mod running;
mod starter;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use admin::status::ProgramStatus;
use config::ProgramConfig;
use os::waker::Waker;
use wire::{Duration, Member};

use crate::error::ProgramError;
use crate::plane::Order;

use desk::Desk;
pub(crate) use minder::CRASH_LOOP;

/// The longest that a clean stop waits for programs: for each to leave, then to obey SIGTERM, and
/// SIGKILL after that.
const END_WITHIN: Duration = Duration::from_secs(10);

/// The thread answers in microseconds, but for what is waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(40);

/// What the thread is told. The queue is not bounded, but what is in it is: a request for each admin
/// connection and thread that waits for an answer, and four words at most of each attached program.
enum Notice {
    /// Start this, and answer when it serves, or has failed to. Then it is not kept.
    Run { config: ProgramConfig, reply: SyncSender<Result<ProgramStatus, ProgramError>> },
    /// Start this, and go on trying.
    Keep(ProgramConfig),
    /// Have these run that are deployed here, and no others of that kind, but for groups of which nobody else has the state.
    Deploy { programs: Vec<ProgramConfig>, periods: BTreeMap<String, Duration>, alone: Vec<String> },
    /// How do those stand that are deployed here?
    Deployed { reply: SyncSender<Vec<Deployed>> },
    /// Have it end, and answer when it has.
    Stop { group: String, reply: SyncSender<Result<(), ProgramError>> },
    /// How do all stand?
    Status { reply: SyncSender<Vec<ProgramStatus>> },
    /// The data plane has taken in this start of a program.
    Hosted(u64),
    /// Its replica is in its group.
    Joined(u64),
    /// It has answered a call.
    Served(u64),
    /// Its replica's service is to run, and its program does not.
    Wanted(u64),
    /// Its replica's service is to run no more.
    Released(u64),
    /// It was hung, and its replica is out of its group.
    Hung(u64),
    /// The data plane has let it go; the reason, if the program did not go by itself.
    Detached(u64, Option<String>),
    /// Have all end, start none, and let go of `done` when that has happened.
    End { done: SyncSender<()> },
}

/// A program that is deployed here.
#[derive(Clone, Debug)]
pub(crate) struct Deployed {
    pub config: ProgramConfig,
    /// Its replica is in its group.
    pub joined: bool,
    /// How often it has ended in a row.
    pub ends_in_a_row: u32,
}

/// The thread's other end.
#[derive(Debug)]
pub(crate) struct Programs {
    teller: Teller,
}

impl Programs {
    /// Starts the thread. The socket comes to be with the first program, in a folder beside `admin`. `top`: the highest
    /// real-time priority of a program; 0: none has any.
    pub fn start(
        admin: &Path,
        (me, cluster): (Member, &str),
        top: u8,
        orders: SyncSender<Order>,
        plane: Arc<Waker>,
    ) -> std::io::Result<Programs> {
        let (sender, notices) = channel();
        let waker = Arc::new(Waker::new()?);
        let mut folder = admin.as_os_str().to_owned();
        folder.push(".d");
        let teller = Teller { notices: sender, waker };
        let desk =
            Desk::new(folder.into(), (me, cluster.into()), top, (orders, plane), teller.clone());
        let body = move || desk.run(&notices);
        thread::Builder::new().name("steadfast programs".into()).spawn(body)?;
        Ok(Programs { teller })
    }

    fn ask<T>(&self, notice: impl FnOnce(SyncSender<T>) -> Notice) -> Result<T, ProgramError> {
        let (reply, answer) = sync_channel(1);
        self.teller.tell(notice(reply));
        answer.recv_timeout(ANSWER_WITHIN).map_err(|_| ProgramError::Stopped)
    }

    /// Starts a program, and waits until it serves or has failed to.
    pub fn run(&self, config: ProgramConfig) -> Result<ProgramStatus, ProgramError> {
        config.check()?;
        self.ask(|reply| Notice::Run { config, reply })?
    }

    /// Starts a program of the node's configuration: it is tried again and again.
    pub fn keep(&self, config: ProgramConfig) {
        self.teller.tell(Notice::Keep(config));
    }

    /// Has these programs run that are deployed here; those that were and are not any more end. Of groups of which this node `alone` has the
    /// state the replica stays as it is. `periods`: how often those are called of which that is known.
    pub fn deploy(
        &self,
        programs: Vec<ProgramConfig>,
        periods: BTreeMap<String, Duration>,
        alone: Vec<String>,
    ) {
        self.teller.tell(Notice::Deploy { programs, periods, alone });
    }

    /// Those that are deployed here.
    pub fn deployed(&self) -> Vec<Deployed> {
        self.ask(|reply| Notice::Deployed { reply }).unwrap_or_default()
    }

    /// Ends a program, and waits until it has ended.
    pub fn stop(&self, group: &str) -> Result<(), ProgramError> {
        self.ask(|reply| Notice::Stop { group: group.into(), reply })?
    }

    /// All programs, in order of their groups' names.
    pub fn status(&self) -> Vec<ProgramStatus> {
        self.ask(|reply| Notice::Status { reply }).unwrap_or_default()
    }

    /// Begins to end all of them; what is given back ends when the last one has.
    pub fn end(&self) -> Ending {
        let (done, ended) = sync_channel(1);
        self.teller.tell(Notice::End { done });
        Ending(ended)
    }
}

/// Programs on their way out.
pub(crate) struct Ending(Receiver<()>);

impl Ending {
    /// Waits until all have ended, within bounds.
    pub fn wait(&self) {
        // The thread lets go of the other end: nothing is sent.
        let _ = self.0.recv_timeout(END_WITHIN);
    }
}

/// How the thread is told something.
#[derive(Clone, Debug)]
struct Teller {
    notices: Sender<Notice>,
    waker: Arc<Waker>,
}

impl Teller {
    fn tell(&self, notice: Notice) {
        // The thread ends with the node.
        let _ = self.notices.send(notice);
        self.waker.wake();
    }
}

/// What ties an attached program to the thread that minds it.
pub(crate) struct Tether {
    run: u64,
    joined: bool,
    served: bool,
    teller: Teller,
}

impl Tether {
    /// Which start of all programs this is.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The data plane has taken it in.
    pub fn hosted(&self) {
        self.teller.tell(Notice::Hosted(self.run));
    }

    /// Its replica is in its group.
    pub fn joined(&mut self) {
        if !std::mem::replace(&mut self.joined, true) {
            self.teller.tell(Notice::Joined(self.run));
        }
    }

    /// It has answered a call.
    pub fn served(&mut self) {
        if !std::mem::replace(&mut self.served, true) {
            self.teller.tell(Notice::Served(self.run));
        }
    }

    /// The program is to be started.
    pub fn wanted(&self) {
        self.teller.tell(Notice::Wanted(self.run));
    }

    /// It is not needed any more.
    pub fn released(&self) {
        self.teller.tell(Notice::Released(self.run));
    }

    /// It is hung, and to be ended at once.
    pub fn hung(&self) {
        self.teller.tell(Notice::Hung(self.run));
    }

    /// For the same program, when this start of it is over.
    pub fn again(&self) -> Tether {
        Tether { run: self.run, joined: true, served: true, teller: self.teller.clone() }
    }

    /// The data plane has let it go.
    pub fn detached(&self, reason: Option<String>) {
        self.teller.tell(Notice::Detached(self.run, reason));
    }
}
