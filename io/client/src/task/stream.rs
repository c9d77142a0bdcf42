//! One TCP connection of the task.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use wire::client::Frame;

use crate::Trouble;
use crate::channel::Channel;

type Dial = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

pub(super) enum Stream {
    Dialling { dial: Dial, channel: Channel },
    Open { socket: TcpStream, channel: Channel },
}

impl Stream {
    /// Begins to connect.
    pub fn dial(address: SocketAddr, channel: Channel) -> Stream {
        Stream::Dialling { dial: Box::pin(TcpStream::connect(address)), channel }
    }

    /// Takes a frame; `poll` writes it. False if too much waits already.
    pub fn put(&mut self, frame: &Frame) -> bool {
        match self {
            Stream::Open { channel, .. } => channel.put(frame),
            // The session sends only when it knows of the connection.
            Stream::Dialling { .. } => true,
        }
    }

    /// `Ready(Ok)` once, when the dial has succeeded; `Ready(Err)` when the stream is of no use,
    /// with the trouble if it is not just its end.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        frames: &mut Vec<Frame>,
    ) -> Poll<Result<(), Option<Trouble>>> {
        match self {
            Stream::Dialling { dial, channel } => {
                let dialled = ready!(dial.as_mut().poll(cx));
                let socket = dialled.map_err(|_| None)?;
                socket.set_nodelay(true).map_err(|_| None)?;
                let channel = std::mem::take(channel);
                *self = Stream::Open { socket, channel };
                Poll::Ready(Ok(()))
            }
            Stream::Open { socket, channel } => loop {
                if channel.write(&mut Polled { socket, cx }).is_err() {
                    return Poll::Ready(Err(None));
                }
                let full = channel.wants_to_write();
                let read = poll_read(socket, channel, cx, scratch, frames);
                if let Poll::Ready(trouble) = read {
                    // TLS may have a last word for the node, which is not waited for.
                    let _ = channel.write(&mut Polled { socket, cx });
                    return Poll::Ready(Err(trouble));
                }
                // There may be a handshake's next words, or frames that waited for its end. A
                // socket that was full before wakes the task.
                if full || !channel.wants_to_write() {
                    return Poll::Pending;
                }
            },
        }
    }
}

/// Writing as the channel knows it; the task is woken when a full socket takes more.
struct Polled<'a, 'b, 'c> {
    socket: &'a mut TcpStream,
    cx: &'b mut Context<'c>,
}

impl Write for Polled<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match Pin::new(&mut *self.socket).poll_write_vectored(self.cx, slices) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads all that has come, as far as tokio's budget for one turn goes. `Ready` when the stream has
/// ended, or brings nonsense.
fn poll_read(
    socket: &mut TcpStream,
    channel: &mut Channel,
    cx: &mut Context<'_>,
    scratch: &mut [u8],
    frames: &mut Vec<Frame>,
) -> Poll<Option<Trouble>> {
    loop {
        let mut buffer = ReadBuf::new(scratch);
        if ready!(Pin::new(&mut *socket).poll_read(cx, &mut buffer)).is_err() {
            return Poll::Ready(None);
        }
        if buffer.filled().is_empty() {
            return Poll::Ready(None);
        }
        if let Err(trouble) = channel.receive(buffer.filled(), frames) {
            return Poll::Ready(Some(trouble));
        }
    }
}
