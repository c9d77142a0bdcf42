//! Short answers by HTTP/2 in one write.
//!
//! An answer is a head, data and trailers. The h2 library copies a frame of data into its buffer if
//! it is short; a longer one it writes from where it is, and the trailers after it. Then the caller
//! is woken twice. So short answers come in pieces that fit.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

/// A longer answer is written as it is: copying costs more than a write.
const LONGEST: usize = 8 << 10;

/// Less than 1,024 bytes: h2 copies them, where a connection does not write vectored.
const PIECE: usize = 1_000;

/// A body that comes in pieces.
pub(crate) struct Pieces {
    body: Body,
    rest: Bytes,
}

impl Pieces {
    pub(crate) fn of(body: Body) -> Body {
        Body::new(Pieces { body, rest: Bytes::new() })
    }

    fn piece(&mut self) -> Frame<Bytes> {
        Frame::data(self.rest.split_to(self.rest.len().min(PIECE)))
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(data) if (PIECE..=LONGEST).contains(&data.len()) => {
                self.rest = data;
                self.piece()
            }
            Ok(data) => Frame::data(data),
            Err(trailers) => trailers,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, Full};

    async fn lengths(length: usize) -> Vec<usize> {
        let whole: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let mut body = Pieces::of(Body::new(Full::new(Bytes::from(whole.clone()))));
        let (mut lengths, mut all) = (Vec::new(), Vec::new());
        while let Some(frame) = body.frame().await {
            let data = frame.expect("a frame").into_data().expect("data");
            lengths.push(data.len());
            all.extend_from_slice(&data);
        }
        assert!(all == whole, "{length} bytes came as others");
        lengths
    }

    #[tokio::test(flavor = "current_thread")]
    async fn short_answers_come_in_pieces_and_long_ones_whole() {
        assert_eq!(lengths(5).await, [5]);
        assert_eq!(lengths(1_030).await, [1_000, 30]);
        assert_eq!(lengths(LONGEST).await.len(), 9);
        assert_eq!(lengths(LONGEST + 1).await, [LONGEST + 1]);
    }
}
