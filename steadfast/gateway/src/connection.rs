//! One connection: its first bytes say whether it speaks HTTP/2 or HTTP/1.
//!
//! A connection holds a bounded part of the gateway's memory, whatever the other side does. One that
//! does nothing in its first seconds is closed; `keepalive.rs` has the time between calls.

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
use tokio::time::Instant;
use tonic::body::Body;

use crate::keepalive::{Clock, GREETING_WITHIN, Timed};

/// The first bytes of HTTP/2 (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Calls under way on one connection.
const MAX_STREAMS: u32 = 256;

/// Bytes of one connection that wait to be read: of all its calls, and of each.
const CONNECTION_WINDOW: u32 = 1 << 20;
const STREAM_WINDOW: u32 = 256 << 10;

/// Bytes of the headers of one request, as HTTP/2 counts them. More is refused with a reason.
pub(crate) const MAX_HEADERS: usize = 16 << 10;

/// Bytes of headers that are read for that. Of more the library says 431 and nothing else.
const READ_HEADERS: u32 = 64 << 10;

/// Streams that the other side has opened and reset, and that are not cleared away.
const MAX_RESETS: usize = 64;

/// A quiet connection is asked for a sign of life so often, and has to give it so soon: a host that
/// has lost power closes nothing.
const PING: Duration = Duration::from_secs(20);
const PONG_WITHIN: Duration = Duration::from_secs(10);

/// Why a connection ended that did not end well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("nothing came in time")]
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
    let until = Instant::now() + GREETING_WITHIN;
    let greeting = tokio::time::timeout_at(until, Greeted::read(stream)).await;
    let mut greeted = greeting.map_err(|_| Broken::Silent)??;
    if greeted.speaks_http2() {
        let service = hyper::service::service_fn(move |request| {
            let answer = answer(request);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_stream_window_size(STREAM_WINDOW)
            .max_header_list_size(READ_HEADERS)
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
        let clock = Clock::new(until);
        greeted.clock = Some(clock.clone());
        let own = clock.clone();
        let service = hyper::service::service_fn(move |request| {
            own.begin();
            let (answer, own) = (answer(request), own.clone());
            async move { Ok::<_, Infallible>(own.answer(answer.await)) }
        });
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_buf_size(READ_HEADERS as usize)
            .serve_connection(TokioIo::new(greeted), service);
        let mut timed = Timed::new(connection, clock);
        tokio::select! {
            ended = &mut timed => return Ok(ended.ok_or(Broken::Silent)??),
            _ = ends.changed() => timed.connection.as_mut().graceful_shutdown(),
        }
        timed.await.ok_or(Broken::Silent)??;
    }
    Ok(())
}

/// A stream whose first bytes have been read, and come first.
struct Greeted<S> {
    stream: S,
    first: Vec<u8>,
    given: usize,
    /// Told when more bytes come.
    clock: Option<Clock>,
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
        Ok(Greeted { stream, first, given: 0, clock: None })
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
            let before = to.filled().len();
            let read = Pin::new(&mut self.stream).poll_read(cx, to);
            if let Some(clock) = self.clock.as_ref().filter(|_| to.filled().len() > before) {
                clock.heard();
            }
            return read;
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
    use tokio::io::{AsyncWriteExt, DuplexStream};

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

    const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

    /// A connection to a server that answers everything at once.
    fn served() -> (DuplexStream, watch::Sender<()>) {
        let (near, far) = tokio::io::duplex(4096);
        let (ending, ends) = watch::channel(());
        let answer = |_| async { Response::new(Body::empty()) };
        tokio::spawn(async move { serve(far, answer, ends).await });
        (near, ending)
    }

    async fn ask(stream: &mut DuplexStream) -> String {
        stream.write_all(GET).await.expect("it reads");
        let mut told = vec![0; 4096];
        let count = stream.read(&mut told).await.expect("it answers");
        String::from_utf8_lossy(&told[..count]).into_owned()
    }

    /// The time until the other side closes.
    async fn open(stream: &mut DuplexStream) -> Duration {
        let (since, mut rest) = (Instant::now(), Vec::new());
        stream.read_to_end(&mut rest).await.expect("it closes");
        since.elapsed()
    }

    /// The clock of these tests goes on by itself when everybody waits.
    fn near(span: Duration, seconds: u64) -> bool {
        let expected = Duration::from_secs(seconds);
        (expected..expected + Duration::from_millis(10)).contains(&span)
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_first_head_has_to_come_soon() {
        for first in [&b""[..], b"PRI", b"GET / HTTP/1.1\r\nhost"] {
            let (mut stream, _ending) = served();
            stream.write_all(first).await.expect("it reads");
            let open = open(&mut stream).await;
            assert!(near(open, 10), "{open:?}");
        }
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn between_calls_a_connection_stays_open_for_longer_than_it_tells() {
        let (mut stream, _ending) = served();
        for _ in 0..3 {
            let told = ask(&mut stream).await;
            assert!(told.starts_with("HTTP/1.1 200") && told.contains("keep-alive: timeout=75"));
            tokio::time::advance(Duration::from_secs(79)).await;
        }
        ask(&mut stream).await;
        let open = open(&mut stream).await;
        assert!(near(open, 80), "{open:?}");
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_further_head_has_to_come_soon_after_its_first_byte() {
        let (mut stream, _ending) = served();
        ask(&mut stream).await;
        stream.write_all(&GET[..9]).await.expect("it reads");
        let open = open(&mut stream).await;
        assert!(near(open, 10), "{open:?}");
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_long_call_is_not_quiet() {
        let (mut stream, far) = tokio::io::duplex(4096);
        let (_ending, ends) = watch::channel(());
        let answer = |_| async {
            tokio::time::advance(Duration::from_secs(300)).await;
            Response::new(Body::empty())
        };
        tokio::spawn(async move { serve(far, answer, ends).await });
        assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200"));
    }
}
