//! The node's admin socket: threads that follow the book there, and threads that have the cell's
//! group order things.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use admin::cell::{HandlerCallEnd, Neighbour};
use admin::{AdminError, Client};
use cells::{Command, End, Made, Refusal, Verdict};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use wire::NodeId;

use crate::inbound::{Inbound, Tell};
use crate::options::CarryError;

/// Orders under way at once. The admin socket takes one after the other of a connection.
const CLERKS: usize = 4;

/// Orders that wait. More are not given: those who want them ask again.
const MAX_WAITING: usize = 1_024;

/// A poll lasts so long. Then the thread looks whether it is still needed.
const POLL: Duration = Duration::from_secs(5);

/// A node that does not answer is asked again after this time.
const AGAIN: Duration = Duration::from_millis(100);

/// The node answers each order within this time, or says that it cannot.
const PATIENCE: Duration = Duration::from_secs(6);

/// Bytes of an answer to a handler: its request at the admin socket has twice as many digits.
const MAX_ANSWER: usize = 96 << 10;

/// Something to say to the node.
#[derive(Debug)]
enum Letter {
    /// The number is that by which the verdict is told, if anybody wants it.
    Order(Option<u64>, Command),
    Neighbours(Vec<Neighbour>),
    Ended(HandlerCallEnd),
}

/// The threads. They end soon after this is dropped.
#[derive(Debug)]
pub(crate) struct Desk {
    letters: SyncSender<Letter>,
}

impl Desk {
    /// Starts the threads, for this node. To be called in a runtime.
    pub fn open(me: NodeId, admin: PathBuf, tell: Tell) -> std::io::Result<Desk> {
        let (letters, waiting) = sync_channel(MAX_WAITING);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..CLERKS {
            let clerk = Clerk {
                admin: admin.clone(),
                waiting: waiting.clone(),
                tell: tell.clone(),
                node: None,
            };
            thread::Builder::new().name("cell orders".into()).spawn(move || clerk.run())?;
        }
        let handlers = Handlers {
            me,
            admin: admin.clone(),
            tell: tell.clone(),
            letters: letters.clone(),
            runtime: Handle::current(),
        };
        thread::Builder::new().name("cell handlers".into()).spawn(move || handlers.run())?;
        thread::Builder::new().name("cell book".into()).spawn(move || follow(&admin, &tell))?;
        Ok(Desk { letters })
    }

    /// Has the cell's group order this. False: too many orders wait.
    pub fn order(&self, ask: Option<u64>, command: Command) -> bool {
        self.send(Letter::Order(ask, command))
    }

    /// Tells the node which links there are.
    pub fn tell_neighbours(&self, neighbours: Vec<Neighbour>) -> bool {
        self.send(Letter::Neighbours(neighbours))
    }

    fn send(&self, letter: Letter) -> bool {
        match self.letters.try_send(letter) {
            Ok(()) => true,
            Err(TrySendError::Full(letter) | TrySendError::Disconnected(letter)) => {
                tracing::warn!(?letter, "the node does not keep up with orders");
                false
            }
        }
    }
}

/// Follows the book until nobody listens.
fn follow(admin: &Path, tell: &Tell) {
    while !tell.is_closed() {
        let why = match Client::connect(admin) {
            Ok(mut node) => watch(&mut node, tell),
            Err(error) => Some(error),
        };
        let Some(why) = why else { return };
        tracing::warn!("the node's admin socket: {why}");
        if tell.blocking_send(Inbound::Blind).is_err() {
            return;
        }
        thread::sleep(AGAIN);
    }
}

/// Tells each change of the book. The reason why there is an end, unless nobody listens any more.
fn watch(node: &mut Client, tell: &Tell) -> Option<AdminError> {
    let mut since = None;
    while !tell.is_closed() {
        let status = match node.cell(since, POLL) {
            Ok(status) => status,
            Err(error) => return Some(error),
        };
        if since == Some(status.version) {
            continue;
        }
        since = Some(status.version);
        let Some(book) = status.book() else {
            return Some(AdminError::Refused(CarryError::Book.to_string()));
        };
        if tell.blocking_send(Inbound::Book(Box::new((status, book)))).is_err() {
            break;
        }
    }
    None
}

/// A thread that makes calls for handlers at the node.
struct Handlers {
    me: NodeId,
    admin: PathBuf,
    tell: Tell,
    letters: SyncSender<Letter>,
    runtime: Handle,
}

impl Handlers {
    fn run(self) {
        while !self.tell.is_closed() {
            // A failure here is one of the book's, too, and is told there.
            let made = Client::connect(&self.admin).and_then(|mut node| self.serve(&mut node));
            if made.is_ok() {
                return;
            }
            thread::sleep(AGAIN);
        }
    }

    /// Makes what handlers want. Those of before a break come again: under the same names.
    fn serve(&self, node: &mut Client) -> Result<(), AdminError> {
        let mut since = 0;
        while !self.tell.is_closed() {
            for wanted in node.handler_calls(since, POLL)? {
                since = since.max(wanted.number);
                let Some(call) = wanted.call() else { continue };
                let left = Duration::from_micros(wanted.left_us);
                let caller = Some(format!("node-{}", self.me.0));
                let made = Box::new(Made { to: wanted.to, call, left, caller });
                let (done, ended) = oneshot::channel();
                if self.tell.blocking_send(Inbound::Call { made, done }).is_err() {
                    return Ok(());
                }
                let letters = self.letters.clone();
                self.runtime.spawn(async move {
                    let Ok(end) = ended.await else { return };
                    let end = HandlerCallEnd::new(wanted.number, &short(end));
                    if letters.try_send(Letter::Ended(end)).is_err() {
                        tracing::warn!("the node does not keep up: a handler waits in vain");
                    }
                });
            }
        }
        Ok(())
    }
}

/// The end as a handler may have it.
fn short(end: End) -> End {
    match end {
        End::Answer(bytes) | End::Error(bytes) if bytes.len() > MAX_ANSWER => {
            let reason = format!(
                "the answer has {} bytes, and a handler takes {MAX_ANSWER} from another cell: ask \
                 for less at a time",
                bytes.len()
            );
            End::Refused(wire::client::Refusal::TooLarge, reason)
        }
        end => end,
    }
}

/// A thread that says things to the node.
struct Clerk {
    admin: PathBuf,
    waiting: Arc<Mutex<Receiver<Letter>>>,
    tell: Tell,
    node: Option<Client>,
}

impl Clerk {
    fn run(mut self) {
        loop {
            let next = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
            match next {
                Err(_) => return,
                Ok(Letter::Order(ask, command)) => self.order(ask, &command),
                Ok(Letter::Neighbours(all)) => {
                    let _ = self.say(|node| node.tell_neighbours(all.clone()));
                }
                Ok(Letter::Ended(end)) => {
                    let _ = self.say(|node| node.end_handler_call(end.clone()));
                }
            }
        }
    }

    fn order(&mut self, ask: Option<u64>, command: &Command) {
        let said = self.say(|node| node.tell_cell(command));
        if let Ok(Err(refusal)) = &said {
            tracing::warn!(?command, "the cell's book refuses: {refusal}");
        }
        let verdict: Result<Verdict, Option<Refusal>> = match said {
            Ok(verdict) => verdict.map_err(Some),
            Err(error) => {
                tracing::warn!("an order was not taken: {error}");
                Err(None)
            }
        };
        if let Some(ask) = ask {
            // Nobody listens any more: then nobody needs it.
            let _ = self.tell.blocking_send(Inbound::Verdict { ask, verdict });
        }
    }

    /// Says something, by a new connection if the old one has broken.
    fn say<T>(
        &mut self,
        say: impl Fn(&mut Client) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        if let Some(node) = &mut self.node {
            match say(node) {
                Err(AdminError::Refused(why)) => return Err(AdminError::Refused(why)),
                Ok(said) => return Ok(said),
                Err(_) => self.node = None,
            }
        }
        let mut node = Client::connect(&self.admin)?;
        node.set_timeout(Some(PATIENCE))?;
        let said = say(&mut node);
        self.node = Some(node);
        said
    }
}
