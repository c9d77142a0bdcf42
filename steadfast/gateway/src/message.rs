//! The one message of a call by gRPC, and that of its answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use tonic::body::Body;
use wire::limits::MAX_BODY;

use crate::budget::Held;
use crate::refusals::Kind;
use crate::status::{EXECUTED, Failure};

/// Before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// How the messages of a call are compressed.
const ENCODING: &str = "grpc-encoding";

/// Refuses a call whose head says that its message is compressed.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), Failure> {
    match headers.get(ENCODING) {
        Some(encoding) if encoding != "identity" => Err(compressed()),
        _ => Ok(()),
    }
}

fn compressed() -> Failure {
    Failure::new(Kind::Media, "messages are not compressed here: send without compression")
}

/// Reads a body that has to be one message.
pub(crate) async fn read<B>(body: B, held: &mut Held) -> Result<Bytes, Failure>
where
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    let mut body = std::pin::pin!(body);
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::invalid(format!("the call ends: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        held.grow(data.remaining()).map_err(|_| Failure::full())?;
        bytes.put(data);
        if let Some(length) = length(&bytes)?
            && bytes.len() > PREFIX + length
        {
            return Err(Failure::invalid("more than one message: a call has one"));
        }
    }
    match length(&bytes)? {
        Some(length) if bytes.len() == PREFIX + length => Ok(bytes.split_off(PREFIX).freeze()),
        _ if bytes.is_empty() => Err(Failure::invalid("no message: a call has one")),
        _ => Err(Failure::invalid("the message ends before its length")),
    }
}

/// The length of the message, as soon as its prefix has come.
fn length(bytes: &[u8]) -> Result<Option<usize>, Failure> {
    let Some((prefix, _)) = bytes.split_first_chunk::<PREFIX>() else { return Ok(None) };
    let [flag, length @ ..] = *prefix;
    match flag {
        0 => {}
        1 => return Err(compressed()),
        _ => return Err(Failure::invalid("the body is no message of gRPC")),
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_BODY {
        let why = format!("a message of {length} bytes, and {MAX_BODY} at most: send it in parts");
        return Err(Failure::new(Kind::Large, why));
    }
    Ok(Some(length))
}

/// The answer to a call that was executed.
pub(crate) fn answer(message: &[u8]) -> Response<Body> {
    let mut framed = BytesMut::with_capacity(PREFIX + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).expect("a result has a limit"));
    framed.put(message);
    let trailers = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
    let answer =
        Answer { message: Some(framed.freeze()), trailers: Some(HeaderMap::from_iter([trailers])) };
    let mut response = Response::new(Body::new(answer));
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(HeaderName::from_static(EXECUTED), HeaderValue::from_static("yes"));
    response
}

/// One message, and the trailers.
struct Answer {
    message: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let message = self.message.take().map(Frame::data);
        Poll::Ready(message.or_else(|| self.trailers.take().map(Frame::trailers)).map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && self.trailers.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Share};
    use http_body_util::{Full, StreamBody};
    use tonic::codegen::tokio_stream;

    fn held() -> Held {
        Budget::new(1, 8 << 20).hold(&Share::default())
    }

    async fn in_pieces(bytes: &[u8], length: usize) -> Result<Bytes, Failure> {
        let pieces = bytes.chunks(length).map(Bytes::copy_from_slice).map(Frame::data);
        let pieces: Vec<Result<_, Infallible>> = pieces.map(Ok).collect();
        read(StreamBody::new(tokio_stream::iter(pieces)), &mut held()).await
    }

    fn framed(flag: u8, length: usize, bytes: &[u8]) -> Vec<u8> {
        let length = u32::try_from(length).expect("a short one").to_be_bytes();
        [&[flag], &length[..], bytes].concat()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_message_comes_whole_in_whatever_pieces() {
        for message in [&b""[..], b"x", b"a longer message"] {
            let framed = framed(0, message.len(), message);
            for length in 1..=framed.len() {
                assert_eq!(in_pieces(&framed, length).await.as_deref(), Ok(message));
            }
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_not_one_message_is_refused_by_its_kind() {
        let two = [framed(0, 1, b"x"), framed(0, 1, b"y")].concat();
        for (bytes, kind, why) in [
            (Vec::new(), Kind::Invalid, "no message"),
            (two, Kind::Invalid, "more than one"),
            (framed(0, 5, b"x"), Kind::Invalid, "ends before"),
            (vec![0, 0], Kind::Invalid, "ends before"),
            (framed(7, 1, b"x"), Kind::Invalid, "no message of gRPC"),
            (framed(1, 1, b"x"), Kind::Media, "compress"),
            (framed(0, MAX_BODY + 1, b"x"), Kind::Large, "in parts"),
        ] {
            let refused = in_pieces(&bytes, 3).await.expect_err(why);
            assert!(refused.kind == kind && refused.message.contains(why), "{refused:?}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_answer_is_a_message_and_a_status() {
        let response = answer(b"five");
        let body = response.into_body().collect().await.expect("it has all");
        assert_eq!(body.trailers().expect("there are some")["grpc-status"], "0");
        assert_eq!(body.to_bytes(), framed(0, 4, b"five"));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_message_without_room_is_refused() {
        let share = Share::default();
        let mut held = Budget::new(1, 4).hold(&share);
        let body = Full::new(Bytes::from(framed(0, 1, b"x")));
        assert_eq!(read(body, &mut held).await.expect_err("it is full").kind, Kind::Full);
    }
}
