//! Holds reserves across restarts of the daemon.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use os::threads;
use rustix::net::SendFlags;

use crate::client::{Client, ClientError};
use crate::message::{Enforced, Request, Wanted};

/// After which a daemon that does not answer is asked again.
const AGAIN: Duration = Duration::from_millis(100);

/// How long a daemon may take for its first answer: it takes less than a millisecond. One that
/// hangs must not hold up the node.
const FIRST_WITHIN: Duration = Duration::from_secs(1);

/// How a reserve stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In force, as the daemon said last, with a list of parts that are not.
    InForce(Enforced, Vec<String>),
    /// The daemon refuses it: the reason, and the remedy.
    Refused(String),
    /// No daemon has answered yet.
    Absent(String),
}

/// Keeps one reserve for as long as it lives: when the daemon ends, its successor is asked again.
/// The kernel keeps the reserve meanwhile.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    wanted: Wanted,
    standing: Option<Standing>,
    /// The daemons' answers so far.
    answers: u64,
    /// The open connection, to be asked or ended from outside.
    socket: Option<UnixStream>,
    ended: bool,
}

impl Keeper {
    /// Asks the daemon at this socket, and waits for its first answer for a second at most.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn start(path: &Path, wanted: Wanted) -> std::io::Result<Keeper> {
        let shared = Arc::new(Shared {
            path: path.into(),
            state: Mutex::new(State { wanted, ..State::default() }),
            changed: Condvar::new(),
        });
        let its = shared.clone();
        let thread = threads::spawn("steadfast keeps", move || its.keep())?;
        let waits = |state: &mut State| state.standing.is_none();
        let waited = shared.changed.wait_timeout_while(shared.lock(), FIRST_WITHIN, waits);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.standing.get_or_insert_with(|| {
            Standing::Absent(format!("the daemon has not answered in {FIRST_WITHIN:?}"))
        });
        drop(state);
        Ok(Keeper { shared, thread: Some(thread) })
    }

    /// Asks for something else under the same path. If that is refused, what was in force stays, and
    /// [`standing`](Keeper::standing) tells the refusal.
    pub fn change(&self, wanted: Wanted) {
        self.shared.lock().change(wanted);
    }

    /// The same for a real-time thread, with the number of answers so far: a later one is to this.
    /// `None`: the other thread is changing it, so ask again.
    pub fn try_change(&self, wanted: Wanted) -> Option<u64> {
        let mut state = self.shared.state.try_lock().ok()?;
        state.change(wanted);
        Some(state.answers)
    }

    /// How it stands now.
    pub fn standing(&self) -> Standing {
        self.shared.lock().known()
    }

    /// The same with the number of answers so far, or `None` while the other thread changes it: for
    /// a real-time thread, which must not wait for an ordinary one.
    pub fn glance(&self) -> Option<(Standing, u64)> {
        self.shared.state.try_lock().ok().map(|state| (state.known(), state.answers))
    }
}

impl State {
    fn change(&mut self, wanted: Wanted) {
        if self.wanted == wanted {
            return;
        }
        self.wanted = wanted;
        let request = Request::Reserve(self.wanted.clone());
        if let Some(socket) = self.socket.take_if(|socket| !sent_at_once(socket, &request)) {
            // A broken connection is made anew, with this request.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn known(&self) -> Standing {
        self.standing.clone().unwrap_or_else(|| Standing::Absent("not asked yet".into()))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.ended = true;
        if let Some(socket) = state.socket.take() {
            // The other thread sees the end, and goes.
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks one daemon after the other, until the keeper is dropped.
    fn keep(&self) {
        loop {
            match self.ask() {
                // The first answer is to the request of the connection, others to changes.
                Ok(mut client) => {
                    while let Ok(answer) = client.next() {
                        self.stands(answer);
                    }
                }
                Err(error) => self.stands(Err(error)),
            }
            let mut state = self.lock();
            state.socket = None;
            let waited = self.changed.wait_timeout_while(state, AGAIN, |it| !it.ended);
            if waited.unwrap_or_else(PoisonError::into_inner).0.ended {
                return;
            }
        }
    }

    /// The daemon's word, or why there is none.
    fn stands(&self, asked: Result<(Enforced, Vec<String>), ClientError>) {
        let mut state = self.lock();
        let before = state.standing.take();
        state.answers += u64::from(matches!(&asked, Ok(_) | Err(ClientError::Refused { .. })));
        let standing = match asked {
            Ok((enforced, degraded)) => Standing::InForce(enforced, degraded),
            Err(ClientError::Refused { error, .. }) => Standing::Refused(error),
            Err(error) => match &before {
                // The kernel keeps what is in force.
                Some(in_force @ Standing::InForce(..)) => in_force.clone(),
                _ => Standing::Absent(error.to_string()),
            },
        };
        // The owner tells of the first answer.
        let news = before.filter(|before| *before != standing).map(|_| standing.clone());
        let path = news.is_some().then(|| state.wanted.path.clone());
        state.standing = Some(standing);
        self.changed.notify_all();
        drop(state);
        if let (Some(standing), Some(path)) = (news, path) {
            tracing::info!(path, ?standing, "reserve");
        }
    }

    /// Connects, and sends the request.
    fn ask(&self) -> Result<Client, ClientError> {
        let client = Client::connect(&self.path)?;
        let mut state = self.lock();
        let socket = client.socket()?;
        send(&socket, &Request::Reserve(state.wanted.clone()))?;
        // From here on the end of the keeper ends the connection.
        state.socket = Some(socket).filter(|_| !state.ended);
        if state.socket.is_none() {
            return Err(io::Error::from(io::ErrorKind::Interrupted).into());
        }
        Ok(client)
    }
}

/// Whether the socket has taken the whole request without waiting.
fn sent_at_once(socket: &UnixStream, request: &Request) -> bool {
    let Ok(mut line) = serde_json::to_vec(request) else { return false };
    line.push(b'\n');
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::send(socket, &line, flags) == Ok(line.len())
}

fn send(mut socket: &UnixStream, request: &Request) -> Result<(), ClientError> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    Ok(socket.write_all(&line)?)
}
