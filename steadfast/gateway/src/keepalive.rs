//! How long a connection of HTTP/1 may be quiet.
//!
//! The head of its first request has to come soon, and each further head soon after its first byte.
//! Between calls a connection stays open for longer than pools of clients keep theirs, and says so.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use tonic::Status;
use tonic::body::Body;

/// TLS, the preface, and the head of a request in HTTP/1 have to come within this time.
pub(crate) const GREETING_WITHIN: Duration = Duration::from_secs(10);

/// A connection is closed that has had no call for so long. Callers are told of a shorter time, so
/// that no call crosses the end.
pub(crate) const IDLE: Duration = Duration::from_secs(80);
const TOLD: HeaderValue = HeaderValue::from_static("timeout=75");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// The work of a connection, and until when it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The head of a request comes.
    Head(Instant),
    /// A call is under way, which has a deadline of its own.
    Call,
    /// Between calls.
    Idle(Instant),
}

/// The phase of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Clock(Arc<Mutex<Phase>>);

impl Clock {
    /// A connection whose first head has to come by then.
    pub(crate) fn new(until: Instant) -> Clock {
        Clock(Arc::new(Mutex::new(Phase::Head(until))))
    }

    /// Bytes have come.
    pub(crate) fn heard(&self) {
        self.change(|phase| match phase {
            Phase::Idle(_) => Phase::Head(Instant::now() + GREETING_WITHIN),
            phase => phase,
        });
    }

    /// A head is complete.
    pub(crate) fn begin(&self) {
        self.change(|_| Phase::Call);
    }

    /// An answer, with whose end the connection is idle.
    pub(crate) fn answer(&self, response: Response<Body>) -> Response<Body> {
        let clock = self.clone();
        let mut response = response.map(|body| Body::new(Answer { body, clock }));
        response.headers_mut().insert(KEEP_ALIVE, TOLD);
        response
    }

    fn end(&self) {
        self.change(|_| Phase::Idle(Instant::now() + IDLE));
    }

    fn until(&self) -> Option<Instant> {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Phase::Head(until) | Phase::Idle(until) => Some(until),
            Phase::Call => None,
        }
    }

    fn change(&self, to: impl FnOnce(Phase) -> Phase) {
        let mut phase = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *phase = to(*phase);
    }
}

/// The body of an answer.
struct Answer {
    body: Body,
    clock: Clock,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.clock.end();
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that ends when it is quiet for too long.
pub(crate) struct Timed<C> {
    pub(crate) connection: Pin<Box<C>>,
    clock: Clock,
    alarm: Pin<Box<Sleep>>,
}

impl<C> Timed<C> {
    pub(crate) fn new(connection: C, clock: Clock) -> Timed<C> {
        let alarm = Box::pin(tokio::time::sleep_until(Instant::now()));
        Timed { connection: Box::pin(connection), clock, alarm }
    }
}

/// `None`: it was quiet for too long.
impl<C: Future> Future for Timed<C> {
    type Output = Option<C::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<C::Output>> {
        if let Poll::Ready(ended) = self.connection.as_mut().poll(cx) {
            return Poll::Ready(Some(ended));
        }
        // All that changes the clock is done by the connection, when it is polled.
        let Some(until) = self.clock.until() else { return Poll::Pending };
        if self.alarm.deadline() != until {
            self.alarm.as_mut().reset(until);
        }
        ready!(self.alarm.as_mut().poll(cx));
        Poll::Ready(None)
    }
}
