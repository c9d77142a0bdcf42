//! A rank's way to its agent.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use channel::Notes;
use os::passing::{receive, send};
use rustix::io::Errno;
use wire::rank::{Frame, Hello, TOKEN, Welcome};

/// How long a welcome may take: the agent reads a state meanwhile.
const WELCOME_WITHIN: Duration = Duration::from_secs(600);

/// How long a rank that cannot go on waits for its agent.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

/// Bytes that are read at a time.
const READ: usize = 64 << 10;

/// A stream of frames.
#[derive(Debug)]
pub(crate) struct Link {
    stream: UnixStream,
    input: BytesMut,
    files: VecDeque<OwnedFd>,
}

/// Why there is no link.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// The agent is not there, or has gone.
    Io(io::Error),
    /// It does not let this rank in.
    Refused(String),
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        LinkError::Io(error)
    }
}

impl From<Errno> for LinkError {
    fn from(error: Errno) -> Self {
        LinkError::Io(error.into())
    }
}

impl Link {
    /// Introduces a rank, and waits to be let in; the file of its state, if there is one; what earlier
    /// starts have chosen.
    pub fn open(
        path: &Path,
        token: [u8; TOKEN],
    ) -> Result<(Link, Welcome, Option<File>, Notes), LinkError> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(WELCOME_WITHIN))?;
        let mut link = Link { stream, input: BytesMut::new(), files: VecDeque::new() };
        link.send(&Frame::Hello(Hello::new(token)), None)?;
        match link.wait()? {
            (Frame::Welcome(welcome), file) => {
                let notes = link.notes(welcome.after, welcome.noted)?;
                link.stream.set_read_timeout(None)?;
                Ok((link, welcome, file, notes))
            }
            (Frame::Farewell(reason), _) => Err(LinkError::Refused(reason)),
            (other, _) => Err(broken(&format!("it begins with {other:?}"))),
        }
    }

    /// So many choices of earlier starts, behind this one.
    fn notes(&mut self, after: u64, many: u64) -> Result<Notes, LinkError> {
        let mut notes = Notes { after, choices: Vec::new() };
        while (notes.choices.len() as u64) < many {
            match self.wait()? {
                (Frame::Choices(mut some), _) => notes.choices.append(&mut some.choices),
                (other, _) => return Err(broken(&format!("notes were to come, not {other:?}"))),
            }
        }
        Ok(notes)
    }

    pub fn send(&mut self, frame: &Frame, file: Option<&File>) -> Result<(), LinkError> {
        Ok(send(&self.stream, &frame.encode(), file.map(AsFd::as_fd))?)
    }

    /// Says this, and waits until the agent has heard it: it is to know why this process ends, before
    /// it sees that it has ended.
    pub fn say_last(&mut self, frame: &Frame) {
        let until = Instant::now() + HEARD_WITHIN;
        let timed = self.stream.set_read_timeout(Some(HEARD_WITHIN)).is_ok();
        if self.send(frame, None).is_err() || !timed {
            return;
        }
        while Instant::now() < until {
            if let Ok((Frame::Farewell(_), _)) | Err(_) = self.wait() {
                return;
            }
        }
    }

    /// The next frame, with its file, as soon as it is there.
    pub fn wait(&mut self) -> Result<(Frame, Option<File>), LinkError> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(frame);
            }
            self.read(true)?;
        }
    }

    /// The next frame, if one is there.
    pub fn poll(&mut self) -> Result<Option<(Frame, Option<File>)>, LinkError> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            match self.read(false) {
                Err(LinkError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(None);
                }
                read => read?,
            }
        }
    }

    fn take(&mut self) -> Result<Option<(Frame, Option<File>)>, LinkError> {
        let taken = Frame::take(&mut self.input);
        let Some(frame) = taken.map_err(|malformed| broken(&malformed.to_string()))? else {
            return Ok(None);
        };
        let file = if frame.has_file() { Some(self.file()?) } else { None };
        Ok(Some((frame, file)))
    }

    fn read(&mut self, wait: bool) -> Result<(), LinkError> {
        let mut room = [0; READ];
        match receive(&self.stream, &mut room, &mut self.files, wait)? {
            0 => Err(LinkError::Io(io::ErrorKind::UnexpectedEof.into())),
            length => {
                self.input.extend_from_slice(&room[..length]);
                Ok(())
            }
        }
    }

    fn file(&mut self) -> Result<File, LinkError> {
        let file = self.files.pop_front().map(File::from);
        file.ok_or_else(|| broken("the file of a frame did not come"))
    }
}

fn broken(why: &str) -> LinkError {
    let why = format!("the agent is not understood: {why}; use one version of Steadfast");
    LinkError::Io(io::Error::new(io::ErrorKind::InvalidData, why))
}
