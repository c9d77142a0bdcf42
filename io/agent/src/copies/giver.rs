//! Gives copies away. Each part is verified as it is read: a copy that has rotted is found, and told.

use std::fs::File;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use image::{Damage, Manifest, Place, Root, root_of};
use os::unix_socket::{Unheard, listen_at};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use tls::{Role, SecureStream, Server, Visitor};

use super::{ASK, SILENT, Stream, asked, tcp};
use crate::images::{data_of, folder_of, manifest_of};

/// Streams at a time. Others wait to be accepted.
const STREAMS: usize = 8;

/// How long the door rests where there are that many.
const REST: std::time::Duration = std::time::Duration::from_millis(20);

/// Where copies are asked for.
#[derive(Clone, Debug)]
pub enum Door {
    /// A socket on this machine, for agents of the same user.
    Socket(PathBuf),
    /// A port, for nodes of the cluster, by their certificates.
    Port(SocketAddr, Server),
}

/// Gives away the images in a folder.
#[derive(Clone)]
pub struct Giver {
    folder: PathBuf,
    /// Told of each image that is found damaged.
    damaged: Arc<dyn Fn(Place) + Send + Sync>,
    streams: Arc<AtomicUsize>,
}

impl Giver {
    /// Gives away the images of this folder. `damaged` is told of each image that is found damaged.
    pub fn new(folder: &Path, damaged: impl Fn(Place) + Send + Sync + 'static) -> Giver {
        Giver { folder: folder.into(), damaged: Arc::new(damaged), streams: Arc::default() }
    }

    /// Begins to give, from threads of its own.
    ///
    /// # Errors
    /// The system refuses socket, port or thread.
    pub fn open(self, door: Door) -> io::Result<()> {
        match door {
            Door::Socket(path) => {
                let listener = listen_at(&path, 0o600).map_err(|unheard| match unheard {
                    Unheard::Io(error) => error,
                    Unheard::NotASocket | Unheard::Served => io::ErrorKind::AddrInUse.into(),
                })?;
                self.accept(move || {
                    let (stream, _) = listener.accept()?;
                    stream.set_read_timeout(Some(SILENT))?;
                    stream.set_write_timeout(Some(SILENT))?;
                    Ok(move || ours(stream))
                })
            }
            Door::Port(address, server) => {
                let listener = TcpListener::bind(address)?;
                self.accept(move || {
                    let (stream, _) = listener.accept()?;
                    tcp(&stream)?;
                    let server = server.clone();
                    Ok(move || {
                        let records = server.accept().map_err(io::Error::other)?;
                        let stream = SecureStream::open(stream, records)?;
                        match server.admit(stream.records()) {
                            Visitor::Welcome(who) if matches!(who.role, Role::Node(_)) => {
                                Ok(stream)
                            }
                            Visitor::Welcome(who) => {
                                let why = format!("{who} is no node, and gets no image");
                                Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
                            }
                            Visitor::Refused(why) => {
                                Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
                            }
                        }
                    })
                })
            }
        }
    }

    /// `next` waits for a stream; what it returns opens it, on the stream's own thread.
    fn accept<S: Stream, O: FnOnce() -> io::Result<S> + Send + 'static>(
        self,
        mut next: impl FnMut() -> io::Result<O> + Send + 'static,
    ) -> io::Result<()> {
        let body = move || loop {
            while self.streams.load(Ordering::Relaxed) >= STREAMS {
                thread::sleep(REST);
            }
            let begun = next().and_then(|open| self.clone().serve(open));
            if let Err(error) = begun {
                tracing::debug!(%error, "nobody could ask for a copy");
                thread::sleep(REST);
            }
        };
        thread::Builder::new().name("steadfast copies".into()).spawn(body).map(drop)
    }

    fn serve<S: Stream, O: FnOnce() -> io::Result<S> + Send + 'static>(
        self,
        open: O,
    ) -> io::Result<()> {
        let streams = self.streams.clone();
        let body = move || {
            if let Err(error) = open().and_then(|stream| self.give(stream)) {
                tracing::info!(%error, "a copy was not given away");
            }
            self.streams.fetch_sub(1, Ordering::Relaxed);
        };
        streams.fetch_add(1, Ordering::Relaxed);
        let spawned = thread::Builder::new().name("steadfast copy".into()).spawn(body);
        if spawned.is_err() {
            streams.fetch_sub(1, Ordering::Relaxed);
        }
        spawned.map(drop)
    }

    fn give(&self, mut stream: impl Stream) -> io::Result<()> {
        let mut request = [0; ASK];
        stream.read_exact(&mut request)?;
        let Some((place, root)) = asked(&request) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it asks for no image"));
        };
        let given = self.send(place, root, &mut stream);
        if given.as_ref().is_err_and(|error| error.get_ref().is_some_and(|it| it.is::<Damage>())) {
            (self.damaged)(place);
        }
        given
    }

    fn send(&self, place: Place, root: Root, stream: &mut impl Write) -> io::Result<()> {
        let folder = folder_of(&self.folder, place.job, place.rank);
        let bad = |damage: Damage| io::Error::new(io::ErrorKind::InvalidData, damage);
        let read = std::fs::read(manifest_of(&folder, place));
        let (manifest, file) = match (read, File::open(data_of(&folder, place))) {
            (Ok(manifest), Ok(file)) => (manifest, file),
            (Err(error), _) | (_, Err(error)) => {
                stream.write_all(&[0; 16]).and_then(|()| stream.flush())?;
                // The book may have it here, and then nobody would get it.
                let gone = error.kind() == io::ErrorKind::NotFound;
                return if gone { Err(bad(Damage::Missing(place))) } else { Ok(()) };
            }
        };
        let parts = Manifest::decode(&manifest).map_err(bad)?;
        if parts.place != place {
            return Err(bad(Damage::Misplaced { wanted: place, found: parts.place }));
        }
        // Another one by this name is asked for: that says nothing of the one that is here.
        if root_of(&manifest) != root {
            return stream.write_all(&[0; 16]).and_then(|()| stream.flush());
        }
        let end = parts.end();
        stream.write_all(&(manifest.len() as u64).to_le_bytes())?;
        stream.write_all(&end.to_le_bytes())?;
        stream.write_all(&manifest)?;
        let mut room = Vec::new();
        let mut begin = 0;
        for part in &parts.parts {
            // Between two parts there are zeros, up to the next page.
            let gap = (part.at - begin) as usize;
            room.clear();
            room.resize(gap + part.length as usize, 0);
            let bytes = &mut room[gap..];
            match file.read_exact_at(bytes, part.at) {
                // It is cut short, which is told as any other damage.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => bytes.fill(0),
                read => read?,
            }
            if place.check(part.array, part.offset, bytes) != part.check {
                return Err(bad(Damage::Part {
                    place,
                    array: parts.arrays[part.array as usize].name.clone(),
                    offset: part.offset,
                    length: part.length,
                }));
            }
            stream.write_all(&room)?;
            begin = part.at + u64::from(part.length);
        }
        stream.flush()
    }
}

/// Only agents of the same user may ask at a socket.
fn ours(stream: UnixStream) -> io::Result<UnixStream> {
    match socket_peercred(&stream)?.uid == geteuid() {
        true => Ok(stream),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}
