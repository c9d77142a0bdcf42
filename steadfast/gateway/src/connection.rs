//! One connection: its first bytes say whether it speaks HTTP/2 or HTTP/1.
//!
//! A connection holds a bounded part of the gateway's memory, whatever the other side does. One that
//! does nothing in its first seconds is closed.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tonic::body::Body;

/// The first bytes of HTTP/2 (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// TLS, the preface, and the head of a request in HTTP/1 have to come within this time.
pub(crate) const GREETING_WITHIN: Duration = Duration::from_secs(10);

/// Calls under way on one connection.
const MAX_STREAMS: u32 = 256;

/// Bytes of one connection that wait to be read: of all its calls, and of each.
const CONNECTION_WINDOW: u32 = 1 << 20;
const STREAM_WINDOW: u32 = 256 << 10;

/// Bytes of the headers of one request.
const MAX_HEADERS: u32 = 16 << 10;

/// Streams that the other side has opened and reset, and that are not cleared away.
const MAX_RESETS: usize = 64;

/// A quiet connection is asked for a sign of life so often, and has to give it so soon: a host that
/// has lost power closes nothing.
const PING: Duration = Duration::from_secs(20);
const PONG_WITHIN: Duration = Duration::from_secs(10);

/// Why a connection ended that did not end well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("nothing came within {GREETING_WITHIN:?}")]
    Silent,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Http(#[from] hyper::Error),
}

/// Serves a connection until it ends.
///
/// When `ends` is closed no new calls are taken; those under way go on.
pub(crate) async fn serve<S, F, R>(
    stream: S,
    answer: F,
    mut ends: watch::Receiver<()>,
) -> Result<(), Broken>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Fn(Request<Incoming>) -> R + Send + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    let greeting = tokio::time::timeout(GREETING_WITHIN, Greeted::read(stream)).await;
    let greeted = greeting.map_err(|_| Broken::Silent)??;
    let service = hyper::service::service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    if greeted.speaks_http2() {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_stream_window_size(STREAM_WINDOW)
            .max_header_list_size(MAX_HEADERS)
            .max_pending_accept_reset_streams(MAX_RESETS)
            .max_local_error_reset_streams(MAX_RESETS)
            .keep_alive_interval(PING)
            .keep_alive_timeout(PONG_WITHIN)
            .serve_connection(TokioIo::new(greeted), service);
        tokio::pin!(connection);
        tokio::select! {
            ended = &mut connection => return Ok(ended?),
            _ = ends.changed() => connection.as_mut().graceful_shutdown(),
        }
        connection.await?;
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(GREETING_WITHIN)
            .max_buf_size(MAX_HEADERS as usize)
            .serve_connection(TokioIo::new(greeted), service);
        tokio::pin!(connection);
        tokio::select! {
            ended = &mut connection => return Ok(ended?),
            _ = ends.changed() => connection.as_mut().graceful_shutdown(),
        }
        connection.await?;
    }
    Ok(())
}

/// A stream whose first bytes have been read, and come first.
struct Greeted<S> {
    stream: S,
    first: Vec<u8>,
    given: usize,
}

impl<S: AsyncRead + Unpin> Greeted<S> {
    /// Reads until it is clear what the other side speaks.
    async fn read(mut stream: S) -> io::Result<Greeted<S>> {
        let mut first = Vec::with_capacity(PREFACE.len());
        while first.len() < PREFACE.len() && PREFACE.starts_with(&first) {
            let mut more = (&mut stream).take((PREFACE.len() - first.len()) as u64);
            if more.read_buf(&mut first).await? == 0 {
                break;
            }
        }
        Ok(Greeted { stream, first, given: 0 })
    }

    fn speaks_http2(&self) -> bool {
        self.first == PREFACE
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Greeted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.first[self.given..];
        if rest.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, to);
        }
        let count = rest.len().min(to.remaining());
        to.put_slice(&rest[..count]);
        self.given += count;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Greeted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    /// Then short answers are one write: `pieces.rs` has the reason.
    fn is_write_vectored(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    /// All that is read of a stream on which these pieces come, and whether it is HTTP/2.
    async fn read(pieces: &[&[u8]]) -> (bool, Vec<u8>) {
        let (mut near, far) = tokio::io::duplex(8);
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
        let writer = tokio::spawn(async move {
            for piece in pieces {
                near.write_all(&piece).await.expect("the other side reads");
            }
        });
        let mut greeted = Greeted::read(far).await.expect("it can be read");
        let mut all = Vec::new();
        greeted.read_to_end(&mut all).await.expect("it can be read");
        writer.await.expect("it writes");
        (greeted.speaks_http2(), all)
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_preface_tells_and_nothing_is_lost() {
        let whole = [PREFACE, b"rest"].concat();
        assert_eq!(read(&[&whole]).await, (true, whole.clone()));
        let bytes: Vec<&[u8]> = whole.chunks(1).collect();
        assert_eq!(read(&bytes).await, (true, whole.clone()));
        let other = b"PRI * HTTP/1.1\r\n\r\n".to_vec();
        assert_eq!(read(&[&other]).await, (false, other.clone()));
        assert_eq!(read(&[b"G", b"ET / HTTP/1.1"]).await, (false, b"GET / HTTP/1.1".to_vec()));
        assert_eq!(read(&[b"PRI"]).await, (false, b"PRI".to_vec()));
    }
}
