//! The words of a rank that is connected.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;

use bytes::BytesMut;
use os::passing::receive;
use rustix::net::sockopt::{Timeout, set_socket_send_buffer_size, set_socket_timeout};
use wire::rank::{Frame, Hello};
use wire::versions::RANK;

use crate::event::Event;
use crate::link::Link;

/// How long somebody may take to introduce itself.
const HELLO_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

/// Bytes of words that a rank may have yet to read: it reads at safe points.
const UNREAD: usize = 1 << 20;

/// Reports what somebody says, until the stream ends or makes no sense.
pub(crate) fn receive_from(number: u64, stream: &OwnedFd, events: &Sender<Event>) {
    let (mut input, mut files) = (BytesMut::new(), VecDeque::new());
    let _ = set_socket_timeout(stream, Timeout::Recv, Some(HELLO_WITHIN));
    // The system may permit less.
    let _ = set_socket_send_buffer_size(stream, UNREAD);
    let Ok(writer) = stream.try_clone() else { return };
    let link = Link { number, stream: writer, version: RANK.least };
    let refuse = |why: String| link.tell(&Frame::Farewell(why), None);
    let hello = match next(stream, &mut input, &mut files) {
        Ok(Frame::Hello(hello)) => hello,
        Ok(_) => return refuse("a rank begins with its hello".into()),
        Err(None) => return,
        Err(Some(why)) => return refuse(why),
    };
    let Hello { speaks, token } = hello;
    let Some(common) = RANK.common(speaks) else {
        return refuse(format!(
            "the agent speaks version {RANK} of the protocol, the rank version {speaks}: upgrade the \
             older side"
        ));
    };
    let link = Link { version: common.greatest, ..link };
    let _ = set_socket_timeout(stream, Timeout::Recv, None);
    if events.send(Event::Came(link, token)).is_err() {
        return;
    }
    loop {
        let frame = match next(stream, &mut input, &mut files) {
            Ok(frame) => frame,
            Err(why) => {
                if let Some(why) = why {
                    let _ = events.send(Event::Nonsense(number, why));
                }
                return;
            }
        };
        let file = if frame.has_file() { files.pop_front().map(File::from) } else { None };
        if events.send(Event::Said(number, frame, file)).is_err() {
            return;
        }
    }
}

/// The next frame; why it makes no sense, or nothing: the stream has ended.
fn next(
    stream: &OwnedFd,
    input: &mut BytesMut,
    files: &mut VecDeque<OwnedFd>,
) -> Result<Frame, Option<String>> {
    let mut room = vec![0; 64 << 10];
    loop {
        match Frame::take(input) {
            Ok(Some(frame)) => return Ok(frame),
            Ok(None) => {}
            Err(malformed) => return Err(Some(malformed.to_string())),
        }
        match receive(stream, &mut room, files, true) {
            Ok(length) if length > 0 => input.extend_from_slice(&room[..length]),
            _ => return Err(None),
        }
        // Nobody has that many in one frame.
        files.truncate(4);
    }
}
