//! The node's end of the stream: frames out, frames in, each wait with a bound.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use wire::attach::{Frame, Outcome, Told};
use wire::client::Refusal;
use wire::limits::MAX_REASON;
use wire::{Malformed, NodeId};

/// Why there is no next frame.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("nothing came within {0:?}")]
    Silent(Duration),
    #[error("the program does not read: it took {0} bytes of {1} within {2:?}")]
    Unread(usize, usize, Duration),
    #[error("the connection ended")]
    Ended,
    #[error("malformed bytes ({0})")]
    Malformed(#[from] Malformed),
    #[error("the connection broke ({0})")]
    Io(#[from] std::io::Error),
}

/// A program says how its state is, at any time: frame 128.
#[derive(Debug, PartialEq, Eq)]
pub struct Notice {
    pub code: u8,
    pub text: String,
}

const NOTICE: u8 = 128;
/// The state cannot be given or read back.
pub const FAULT: u8 = 1;
/// Fields of a given state that the program does not know.
pub const DROPPED: u8 = 3;

pub struct Link {
    stream: UnixStream,
    input: BytesMut,
    wait: Duration,
    pub notices: Vec<Notice>,
}

impl Link {
    pub fn new(stream: UnixStream, wait: Duration) -> std::io::Result<Link> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(wait))?;
        Ok(Link { stream, input: BytesMut::new(), wait, notices: Vec::new() })
    }

    /// The longest wait from now on.
    pub fn set_wait(&mut self, wait: Duration) -> std::io::Result<()> {
        self.wait = wait;
        self.stream.set_write_timeout(Some(wait))
    }

    /// Ends both directions. A program that has closed its end already is as it should be.
    pub fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Writes all of it, or says how much the program took.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let mut written = 0;
        let deadline = Instant::now() + self.wait;
        while written < bytes.len() {
            match self.stream.write(&bytes[written..]) {
                Ok(length) => written += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(Broken::Ended),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            if written < bytes.len() && Instant::now() >= deadline {
                return Err(Broken::Unread(written, bytes.len(), self.wait));
            }
        }
        Ok(())
    }

    /// Waits for the next frame. A handler's call of another group is told that there is none.
    pub fn receive(&mut self) -> Result<Frame, Broken> {
        let deadline = Instant::now() + self.wait;
        loop {
            while let Some(notice) = take_notice(&mut self.input)? {
                self.notices.push(notice);
            }
            match Frame::take(&mut self.input)? {
                Some(Frame::Call(ask)) => {
                    let outcome =
                        Outcome::Refused(Refusal::Failed, "there is no such group".into());
                    let told = Told { number: ask.number, error: NO_SUCH_GROUP, outcome };
                    self.write(&Frame::Called(told).encode())?;
                }
                // Its words about its state beside its answers.
                Some(Frame::Notice(_) | Frame::Digested(_)) => {}
                Some(frame) => return Ok(frame),
                None => self.read(deadline)?,
            }
        }
    }

    fn read(&mut self, deadline: Instant) -> Result<(), Broken> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Broken::Silent(self.wait));
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut room = [0; 64 << 10];
        match self.stream.read(&mut room) {
            Ok(0) => Err(Broken::Ended),
            Ok(length) => {
                self.input.put_slice(&room[..length]);
                Ok(())
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(()),
                ErrorKind::ConnectionReset => Err(Broken::Ended),
                _ => Err(error.into()),
            },
        }
    }

    /// Whole frames that the program has written and that nobody has read yet. They stay unread.
    pub fn unread(&self) -> Result<Vec<Frame>, Broken> {
        let mut room = vec![0; 4 << 20];
        let length = match recv(&self.stream, &mut room[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)
        {
            Ok((_, length)) => length,
            Err(rustix::io::Errno::AGAIN) => 0,
            Err(error) => return Err(Broken::Io(error.into())),
        };
        let mut bytes = self.input.clone();
        bytes.put_slice(&room[..length]);
        let mut frames = Vec::new();
        while let Some(frame) = Frame::take(&mut bytes)? {
            frames.push(frame);
        }
        Ok(frames)
    }

    /// Writes as much as the program takes at once.
    pub fn offer(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        match send(&self.stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(length) => Ok(length),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(0),
            Err(error) => Err(Broken::Io(error.into())),
        }
    }
}

/// The notice that comes next in the stream, if one does and is whole.
fn take_notice(input: &mut BytesMut) -> Result<Option<Notice>, Malformed> {
    const HEADER: usize = 8;
    let Some(header) = input.first_chunk::<HEADER>() else { return Ok(None) };
    if header[4] != NOTICE {
        return Ok(None);
    }
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    if !(HEADER..=HEADER + MAX_REASON).contains(&length) {
        return Err(Malformed::Length);
    }
    if input.len() < HEADER + length {
        return Ok(None);
    }
    let body = input.split_to(HEADER + length).split_off(HEADER);
    let (code, text) = (body[0], str::from_utf8(&body[8..]));
    match text {
        Ok(text) if (1..=DROPPED).contains(&code) && body[1..8] == [0; 7] => {
            Ok(Some(Notice { code, text: text.into() }))
        }
        _ => Err(Malformed::Field("notice")),
    }
}

/// The number of that error in [`Told`].
const NO_SUCH_GROUP: u8 = 3;

/// A frame of any kind, also of one that no node sends.
pub fn raw(kind: u8, body: &[u8]) -> Bytes {
    let length = u32::try_from(body.len()).expect("bodies are limited");
    let mut bytes = BytesMut::new();
    bytes.put_slice(&length.to_le_bytes());
    bytes.put_slice(&[kind, 0, 0, 0]);
    bytes.put_slice(body);
    bytes.freeze()
}

/// A welcome as a newer node may write it: with its cluster's length, and an extension behind.
pub fn welcome(ordered: bool, extension: &[u8]) -> Bytes {
    const CLUSTER: &[u8] = b"conform";
    let mut body = vec![1, u8::from(ordered)];
    let length = if extension.is_empty() { 0 } else { CLUSTER.len() as u16 };
    body.extend_from_slice(&length.to_le_bytes());
    body.extend_from_slice(&NodeId(1).0.to_le_bytes());
    body.extend_from_slice(CLUSTER);
    body.extend_from_slice(extension);
    raw(2, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_taken_whole_and_wrong_ones_are_malformed() {
        let body = |code, text: &[u8]| [&[code, 0, 0, 0, 0, 0, 0, 0], text].concat();
        let whole = raw(NOTICE, &body(3, "é".as_bytes()));
        let mut input = BytesMut::from(&whole[..whole.len() - 1]);
        assert_eq!(take_notice(&mut input), Ok(None));
        input.put_slice(&whole[whole.len() - 1..]);
        input.put_slice(&raw(10, b"x"));
        assert_eq!(take_notice(&mut input), Ok(Some(Notice { code: 3, text: "é".into() })));
        assert_eq!(take_notice(&mut input), Ok(None));
        for wrong in [body(4, b""), body(1, b"\xff"), vec![1; 8], vec![1], body(1, &[b'x'; 513])] {
            assert!(take_notice(&mut BytesMut::from(&raw(NOTICE, &wrong)[..])).is_err());
        }
    }

    #[test]
    fn a_welcome_is_understood_with_and_without_an_extension() {
        for extension in [&b""[..], b"newer"] {
            let mut bytes = BytesMut::from(&welcome(true, extension)[..]);
            let Ok(Some(Frame::Welcome(welcome))) = Frame::take(&mut bytes) else {
                panic!("a welcome")
            };
            assert_eq!((welcome.cluster.as_str(), welcome.ordered), ("conform", true));
        }
    }
}
