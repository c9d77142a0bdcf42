//! A request's body whose bytes count against the gateway's budget.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use tonic::Status;

use crate::budget::Held;
use crate::status::Failure;

/// A call's part of the budget, which its body and its handler share.
pub(crate) type Share = Arc<Mutex<Held>>;

/// A body that takes its share as it comes.
#[derive(Debug)]
pub(crate) struct Metered<B> {
    body: Pin<Box<B>>,
    share: Share,
}

impl<B> Metered<B> {
    pub(crate) fn new(body: B, share: Share) -> Metered<B> {
        Metered { body: Box::pin(body), share }
    }
}

impl<B> Body for Metered<B>
where
    B: Body,
    B::Data: Buf,
    B::Error: std::fmt::Display,
{
    type Data = B::Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, Status>>> {
        let frame = match ready!(self.body.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                return Poll::Ready(Some(Err(Status::cancelled(format!("it ends: {error}")))));
            }
            None => return Poll::Ready(None),
        };
        let bytes = frame.data_ref().map_or(0, Buf::remaining);
        let mut share = self.share.lock().unwrap_or_else(PoisonError::into_inner);
        let grown = share.grow(bytes).map_err(|_| Failure::full().to_status());
        Poll::Ready(Some(grown.map(|()| frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
