//! The socket at which programs attach: in a folder that only the node's user may enter, and for
//! those alone who show a token that this node gave out and that was not shown yet.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use bytes::BytesMut;
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::geteuid;
use wire::attach::{Frame, Hello};
use wire::limits::MAX_VISITORS;
use wire::versions::ATTACH;
use wire::{Duration, Time};

/// The socket's name in its folder.
const NAME: &str = "attach";

/// Bytes that a program may send before it is let in.
const MAX_HELLO: usize = 1_024;

/// How long it may take to introduce itself.
const HELLO_WITHIN: Duration = Duration::from_secs(10);

/// How long the listener rests where the system has no descriptors left.
const REST: Duration = Duration::from_millis(100);

/// Somebody who has not shown a token yet.
struct Visitor {
    number: u64,
    stream: UnixStream,
    input: BytesMut,
    until: Time,
}

/// Somebody who has introduced itself.
pub(crate) struct Guest {
    pub stream: UnixStream,
    /// Bytes that came behind its introduction.
    pub input: BytesMut,
    pub hello: Hello,
    /// The version that both speak.
    pub version: u8,
}

impl Guest {
    /// Says something, if the socket takes it at once: it is empty.
    pub fn say(&self, frame: &Frame) {
        say(&self.stream, frame);
    }
}

pub(crate) struct Door {
    path: PathBuf,
    listener: UnixListener,
    rests_until: Time,
    visitors: Vec<Visitor>,
    next: u64,
}

impl Door {
    /// Makes the folder and the socket. A socket from an earlier life of the node is replaced: the
    /// admin socket beside it shows that no other node lives here.
    pub fn open(folder: &Path) -> io::Result<Door> {
        let path = folder.join(NAME);
        let listener = listen(folder, &path)?;
        Ok(Door { path, listener, rests_until: Time::ZERO, visitors: Vec::new(), next: 0 })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptors to poll: the listener, and each visitor by its number.
    pub fn fds(&self, now: Time) -> impl Iterator<Item = (Option<u64>, BorrowedFd<'_>)> {
        let listener = (self.rests_until <= now).then(|| (None, self.listener.as_fd()));
        let visitor = |visitor: &'_ Visitor| -> u64 { visitor.number };
        let visitors = self.visitors.iter().map(move |it| (Some(visitor(it)), it.stream.as_fd()));
        listener.into_iter().chain(visitors)
    }

    pub fn next_timeout(&self, now: Time) -> Time {
        let rest = if self.rests_until > now { self.rests_until } else { Time::FAR };
        self.visitors.iter().map(|visitor| visitor.until).fold(rest, Time::min)
    }

    /// Sends those away who do not introduce themselves.
    pub fn handle_timeout(&mut self, now: Time) {
        self.visitors.retain(|visitor| visitor.until > now);
    }

    /// Takes in who has come: processes of the node's own user only.
    pub fn accept(&mut self, now: Time) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.receive(now, stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.rests_until = now + REST;
                    return;
                }
            }
        }
    }

    fn receive(&mut self, now: Time, stream: UnixStream) {
        match socket_peercred(&stream) {
            Ok(peer) if peer.uid == geteuid() => {}
            peer => {
                let uid = peer.ok().map(|peer| peer.uid.as_raw());
                tracing::warn!(uid, "a process of another user was at the programs' socket");
                return;
            }
        }
        if self.visitors.len() >= MAX_VISITORS {
            self.visitors.remove(0);
        }
        self.next += 1;
        let (number, input, until) = (self.next, BytesMut::new(), now + HELLO_WITHIN);
        self.visitors.push(Visitor { number, stream, input, until });
    }

    /// Reads what a visitor says, and gives it when it has introduced itself.
    pub fn read(&mut self, number: u64) -> Option<Guest> {
        let index = self.visitors.iter().position(|visitor| visitor.number == number)?;
        let visitor = &mut self.visitors[index];
        let mut room = [0; MAX_HELLO];
        let length = match recv(&visitor.stream, &mut room[..], RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => return None,
            Ok((_, length)) if length > 0 => length,
            _ => {
                self.visitors.remove(index);
                return None;
            }
        };
        visitor.input.extend_from_slice(&room[..length]);
        let refusal = match Frame::take(&mut visitor.input) {
            Ok(None) if visitor.input.len() < MAX_HELLO => return None,
            Ok(Some(Frame::Hello(hello))) => match ATTACH.common(hello.speaks) {
                Some(common) => {
                    let Visitor { stream, input, .. } = self.visitors.remove(index);
                    return Some(Guest { stream, input, hello, version: common.greatest });
                }
                None => format!(
                    "this node speaks version {ATTACH} of the protocol, the program version {}: \
                     upgrade the older side",
                    hello.speaks
                ),
            },
            Ok(_) => "a program begins with its hello".into(),
            Err(malformed) => malformed.to_string(),
        };
        tracing::warn!(refusal, "a program was turned away at the programs' socket");
        say(&visitor.stream, &Frame::Farewell(refusal));
        self.visitors.remove(index);
        None
    }
}

/// A clean stop leaves nothing behind.
impl Drop for Door {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        if let Some(folder) = self.path.parent() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Makes the folder, if need be, and a socket in it. One of an earlier life of the node is replaced.
pub(crate) fn listen(folder: &Path, path: &Path) -> io::Result<UnixListener> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => keep_private(folder)?,
        made => made?,
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Whether the process at the other end is one of the node's own user.
pub(crate) fn is_own(stream: &UnixStream) -> bool {
    socket_peercred(stream).is_ok_and(|peer| peer.uid == geteuid())
}

fn say(stream: &UnixStream, frame: &Frame) {
    let _ = send(stream, &frame.encode(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// A folder that is there already must be the node's own, and closed to others.
fn keep_private(folder: &Path) -> io::Result<()> {
    let data = fs::symlink_metadata(folder)?;
    if !data.is_dir() || data.uid() != geteuid().as_raw() {
        let words = "it is no folder of the node's own user: remove it";
        return Err(io::Error::new(ErrorKind::PermissionDenied, words));
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}
