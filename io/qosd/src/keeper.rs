//! Holds reserves across restarts of the daemon.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::client::{Client, ClientError};
use crate::message::{Enforced, Wanted};

/// After which a daemon that does not answer is asked again.
const AGAIN: Duration = Duration::from_millis(100);

/// How a reserve stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In force, as the daemon said last. What is not is listed.
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
    wanted: Wanted,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    standing: Option<Standing>,
    /// The open connection, to be ended from outside.
    socket: Option<UnixStream>,
    ended: bool,
}

impl Keeper {
    /// Asks the daemon at this socket, and waits for its first answer.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn start(path: &Path, wanted: Wanted) -> std::io::Result<Keeper> {
        let shared = Arc::new(Shared {
            path: path.into(),
            wanted,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let its = shared.clone();
        let thread =
            thread::Builder::new().name("steadfast keeps".into()).spawn(move || its.keep())?;
        let mut state = shared.lock();
        while state.standing.is_none() {
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        Ok(Keeper { shared, thread: Some(thread) })
    }

    /// How it stands now.
    pub fn standing(&self) -> Standing {
        let state = self.shared.lock();
        state.standing.clone().unwrap_or_else(|| Standing::Absent("not asked yet".into()))
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

    fn keep(&self) {
        loop {
            let mut asked = self.ask();
            let mut state = self.lock();
            let before = state.standing.take();
            let standing = match &asked {
                Ok((_, enforced, degraded)) => Standing::InForce(*enforced, degraded.clone()),
                Err(ClientError::Refused { error, .. }) => Standing::Refused(error.clone()),
                Err(error) => match &before {
                    // The kernel keeps what is in force.
                    Some(in_force @ Standing::InForce(..)) => in_force.clone(),
                    _ => Standing::Absent(error.to_string()),
                },
            };
            if before.as_ref() != Some(&standing) {
                tracing::info!(path = self.wanted.path, ?standing, "reserve");
            }
            state.standing = Some(standing);
            state.socket = asked.as_ref().ok().and_then(|(client, ..)| client.socket().ok());
            self.changed.notify_all();
            if state.ended {
                return;
            }
            drop(state);
            if let Ok((client, ..)) = &mut asked {
                client.wait_for_end();
            }
            let mut state = self.lock();
            state.socket = None;
            if !state.ended {
                state = self
                    .changed
                    .wait_timeout_while(state, AGAIN, |state| !state.ended)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
            if state.ended {
                return;
            }
        }
    }

    fn ask(&self) -> Result<(Client, Enforced, Vec<String>), ClientError> {
        let mut client = Client::connect(&self.path)?;
        let (enforced, degraded) = client.reserve(self.wanted.clone())?;
        Ok((client, enforced, degraded))
    }
}
