//! The socket at which ranks come in.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use os::unix_socket::{Unheard, listen_at};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use crate::error::AgentError;
use crate::event::Event;
use crate::listener::receive_from;

/// The socket's name in the agent's runtime folder.
const NAME: &str = "ranks";

/// How long the door rests where the system has no descriptor or thread left.
const REST: Duration = Duration::from_millis(100);

/// Makes the folder, which is for the agent's user alone.
pub(crate) fn private(folder: &Path) -> Result<(), AgentError> {
    let failed = |source| AgentError::Folder { path: folder.into(), source };
    let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(folder);
    made.map_err(failed)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(failed)
}

/// Listens in this folder. Each rank that comes in has a thread that reports what it says.
pub(crate) fn open(folder: &Path, events: Sender<Event>) -> Result<PathBuf, AgentError> {
    let path = folder.join(NAME);
    let listener = listen_at(&path, 0o600).map_err(|unheard| AgentError::Socket {
        path: path.clone(),
        why: match unheard {
            Unheard::NotASocket => "a file has this name".into(),
            Unheard::Served => "another agent serves it".into(),
            Unheard::Io(error) => error.to_string(),
        },
    })?;
    let body = move || accept(&listener, &events);
    thread::Builder::new().name("steadfast door".into()).spawn(body).map_err(AgentError::Thread)?;
    Ok(path)
}

fn accept(listener: &UnixListener, events: &Sender<Event>) {
    let mut number = 0;
    loop {
        number += 1;
        let entered = listener.accept().and_then(|(stream, _)| enter(number, stream, events));
        if let Err(error) = entered {
            tracing::warn!(%error, "a rank could not come in");
            thread::sleep(REST);
        }
    }
}

fn enter(number: u64, stream: UnixStream, events: &Sender<Event>) -> io::Result<()> {
    let peer = socket_peercred(&stream)?;
    if peer.uid != geteuid() {
        return Ok(());
    }
    let events = events.clone();
    let body = move || {
        receive_from(number, &OwnedFd::from(stream), &events);
        let _ = events.send(Event::Closed(number));
    };
    thread::Builder::new().name("steadfast rank".into()).spawn(body).map(drop)
}
