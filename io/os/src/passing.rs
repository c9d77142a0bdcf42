//! Open files that pass through a Unix socket with the bytes.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, Result};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Files that may come with one read.
pub const FILES: usize = 4;

/// Writes all bytes to a stream, with this file at the first of them.
///
/// # Errors
/// The system's own: the other end is gone, or does not read.
pub fn send(stream: impl AsFd, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> Result<()> {
    send_by(stream, bytes, file.as_slice(), SendFlags::NOSIGNAL)
}

/// The same without waiting.
///
/// # Errors
/// As [`send`]; [`Errno::AGAIN`] if there is no room for all: some may have been written.
pub fn send_now(stream: impl AsFd, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> Result<()> {
    send_all_now(stream, bytes, file.as_slice())
}

/// The same with several files, [`FILES`] at most.
///
/// # Errors
/// As [`send_now`].
pub fn send_all_now(stream: impl AsFd, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Result<()> {
    send_by(stream, bytes, files, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

fn send_by(
    stream: impl AsFd,
    bytes: &[u8],
    files: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> Result<()> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut sent = 0;
    while sent < bytes.len() {
        let mut control = SendAncillaryBuffer::new(&mut room);
        if sent == 0 && !files.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(files));
        }
        let part = [IoSlice::new(&bytes[sent..])];
        match sendmsg(&stream, &part, &mut control, flags) {
            Ok(length) => sent += length,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads once, up to so many bytes as there is room for: how many came; 0: the other end has closed.
/// Files are added in the order in which they come.
///
/// # Errors
/// The system's own; [`Errno::AGAIN`] if nothing is there and `wait` is not said; [`Errno::MFILE`] if a
/// file was lost because this process may have no more.
pub fn receive(
    stream: impl AsFd,
    bytes: &mut [u8],
    files: &mut VecDeque<OwnedFd>,
    wait: bool,
) -> Result<usize> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let flags = if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        let mut parts = [IoSliceMut::new(bytes)];
        match recvmsg(&stream, &mut parts, &mut control, flags) {
            Err(Errno::INTR) => {}
            result => break result?,
        }
    };
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Errno::MFILE);
    }
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(these) = message {
            files.extend(these);
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_file_arrives_with_its_bytes() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut written = tempfile::tempfile().unwrap();
        written.write_all(b"inside").unwrap();
        let (mut files, mut bytes) = (VecDeque::new(), [0; 16]);
        assert_eq!(receive(&other, &mut bytes, &mut files, false), Err(Errno::AGAIN));
        send(&one, b"first", None).unwrap();
        send(&one, b"second", Some(written.as_fd())).unwrap();
        let mut seen = Vec::new();
        while seen.len() < 11 {
            let length = receive(&other, &mut bytes, &mut files, true).unwrap();
            seen.extend_from_slice(&bytes[..length]);
        }
        assert_eq!(seen, b"firstsecond");
        let mut file = File::from(files.pop_front().unwrap());
        assert!(files.is_empty());
        let mut text = String::new();
        // The place in a file is one for both ends.
        std::io::Seek::rewind(&mut file).unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "inside");
        drop(one);
        assert_eq!(receive(&other, &mut bytes, &mut files, true), Ok(0));
    }
}
