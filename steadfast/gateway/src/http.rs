//! Calls by HTTP with JSON: `POST /v1/groups/GROUP/METHOD`.
//!
//! The body is what `steadfast call` takes: an array of arguments in order, or an object by their
//! names. The answer is the result, or `{"error": ..., "message": ..., "executed": ...}`.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderName, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Version};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Serialize;
use serde_json::value::RawValue;
use tonic::body::Body;
use wire::limits::MAX_BODY;

use crate::budget::Held;
use crate::call::{Asked, BODY_WITHIN, Gateway, checked};
use crate::caller::Caller;
use crate::fit;
use crate::refusals::Kind;
use crate::spans::span;
use crate::status::{EXECUTED, Failure};

/// Where calls are.
pub(crate) const PREFIX: &str = "/v1/groups/";

/// How long a call may take, such as `500ms` or `2s`.
const DEADLINE: &str = "steadfast-deadline";

/// The deadline of a call that sets none.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(10);

/// The service's own error in words, where it stands beside them whole.
const MAX_WORDS: usize = 2 << 10;

/// Bytes of a refused request that are read and thrown away.
const MAX_DRAINED: usize = 16 << 20;

/// Serves one call.
pub(crate) async fn serve(
    gateway: Arc<Gateway>,
    caller: Caller,
    request: Request<Incoming>,
) -> Response<Body> {
    let (head, mut body) = request.into_parts();
    match call(&gateway, &caller, &head, &mut body).await {
        Ok(result) => {
            let mut response = Response::new(full(result));
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            let executed = HeaderName::from_static(EXECUTED);
            response.headers_mut().insert(executed, HeaderValue::from_static("yes"));
            response
        }
        Err(failure) => {
            if failure.kind != Kind::Slow {
                drain(&head, &mut body).await;
            }
            refusal(&failure)
        }
    }
}

/// A client of HTTP/1 that still sends its request reads no answer, and a close would take the
/// answer away. One that waits for leave to send is told at once.
async fn drain(head: &Parts, body: &mut Incoming) {
    if head.version == Version::HTTP_2 || head.headers.contains_key(EXPECT) {
        return;
    }
    let rest = async {
        let mut drained = 0;
        while let Some(Ok(frame)) = body.frame().await {
            drained += frame.data_ref().map_or(0, Bytes::len);
            if drained > MAX_DRAINED {
                return;
            }
        }
    };
    // More would come for ever: then the answer may be lost.
    let _ = tokio::time::timeout(BODY_WITHIN, rest).await;
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Nothing is at this path.
pub(crate) async fn nothing_here(request: Request<Incoming>) -> Response<Body> {
    let (head, mut body) = request.into_parts();
    drain(&head, &mut body).await;
    let kind = head.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if kind.starts_with(b"application/grpc") {
        let why = "gRPC is spoken here, and none of its other forms, such as gRPC-Web";
        return refusal(&Failure::new(Kind::Media, why));
    }
    let why = "nothing is here: POST /v1/groups/GROUP/METHOD with JSON, or call by gRPC";
    refusal(&Failure::new(Kind::NoMethod, why))
}

/// A request says that it is gRPC, and is not.
pub(crate) async fn no_grpc(request: Request<Incoming>) -> Response<Body> {
    let (head, mut body) = request.into_parts();
    drain(&head, &mut body).await;
    let failure = match head.method {
        Method::POST => Failure::new(Kind::Media, "gRPC comes by HTTP/2, and not by HTTP/1"),
        _ => Failure::new(Kind::Verb, "calls by gRPC are POST"),
    };
    refusal(&failure)
}

/// The body of an answer without a result.
#[derive(Serialize)]
struct Told<'a> {
    /// The service's own error as it wrote it: no number in it is read here.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RawValue>,
    executed: &'a str,
    message: &'a str,
}

fn refusal(failure: &Failure) -> Response<Body> {
    let error = failure.error.as_deref().and_then(|json| serde_json::from_slice(json).ok());
    let words = match &error {
        Some(_) if failure.message.len() > MAX_WORDS => fit::beginning(&failure.message, MAX_WORDS),
        _ => failure.message.clone(),
    };
    let told = Told { error, executed: failure.executed_word(), message: &words };
    let told = serde_json::to_vec(&told).expect("texts have a form");
    let mut response = Response::new(full(told.into()));
    *response.status_mut() = failure.kind.row().http;
    response.headers_mut().extend(failure.headers());
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

fn full(bytes: Bytes) -> Body {
    Body::new(http_body_util::Full::new(bytes))
}

async fn call(
    gateway: &Gateway,
    caller: &Caller,
    head: &Parts,
    body: &mut Incoming,
) -> Result<Bytes, Failure> {
    let mut held = gateway.room(caller, head)?;
    let (group, method) = target(head.uri.path())?;
    check(head)?;
    let mut asked = Asked::of(&head.headers)?;
    if head.method == Method::GET {
        // It changes nothing, so the service's method must not either.
        asked.reading = asked.reading.or(Some(client::Reading::Linearizable));
    }
    let within = deadline(&head.headers)?;
    let read = tokio::time::timeout(BODY_WITHIN, collect(body, &mut held)).await;
    let body = read.map_err(|_| {
        Failure::new(Kind::Slow, format!("the body did not come within {BODY_WITHIN:?}: send anew"))
    })??;
    held.enter().map_err(|_| Failure::full())?;
    let body = if body.is_empty() { Bytes::from_static(b"[]") } else { body };
    checked(gateway.call(caller, (&group, &method), &asked, body, within).await?)
}

/// Refuses a request of another form than calls have.
fn check(head: &Parts) -> Result<(), Failure> {
    let header = |name: HeaderName| head.headers.get(name);
    if header(ORIGIN).is_some() {
        return Err(Failure::invalid("a page of another site may not call: this is for programs"));
    }
    match head.method {
        // A page of a browser needs leave to send JSON elsewhere, and has none here.
        Method::POST if header(CONTENT_TYPE).is_some_and(is_json) => {}
        Method::POST => {
            return Err(Failure::new(Kind::Media, "send content-type: application/json"));
        }
        Method::GET => {}
        _ => {
            let why = "call by POST, or by GET what changes nothing";
            return Err(Failure::new(Kind::Verb, why));
        }
    }
    if header(CONTENT_ENCODING).is_some_and(|it| !it.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Failure::new(
            Kind::Media,
            "bodies are not compressed here: send JSON as it is",
        ));
    }
    if head.uri.query().is_some() {
        return Err(Failure::invalid("arguments stand in the body, and not behind a `?`"));
    }
    Ok(())
}

fn is_json(value: &HeaderValue) -> bool {
    let kind = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// Group and method of a path, without the percent signs that URLs need.
fn target(path: &str) -> Result<(String, String), Failure> {
    let parts = path.strip_prefix(PREFIX).and_then(|rest| rest.split_once('/'));
    let wrong = || Failure::new(Kind::NoMethod, format!("call {PREFIX}GROUP/METHOD"));
    let (group, method) = parts.ok_or_else(wrong)?;
    let fits = !group.is_empty() && !method.is_empty() && !method.contains('/');
    let names = decoded(group).zip(decoded(method)).filter(|_| fits);
    names.ok_or_else(wrong)
}

fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        bytes.push(match byte {
            b'%' => {
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high << 4 | low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn deadline(headers: &HeaderMap) -> Result<Duration, Failure> {
    let Some(value) = headers.get(DEADLINE) else { return Ok(DEFAULT_DEADLINE) };
    let text = value.to_str().unwrap_or("?");
    let wrong = || format!("{DEADLINE} is a time such as 500ms or 2s, and not `{text}`");
    span(text).filter(|span| !span.is_zero()).ok_or_else(|| Failure::invalid(wrong()))
}

async fn collect(body: &mut Incoming, held: &mut Held) -> Result<Bytes, Failure> {
    let too_large =
        || Failure::new(Kind::Large, format!("more than {MAX_BODY} bytes: send them in parts"));
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(too_large());
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::invalid(format!("the body ends: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > MAX_BODY {
            return Err(too_large());
        }
        held.grow(data.len()).map_err(|_| Failure::full())?;
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_group_and_a_method() {
        let found = |path| target(path).ok();
        let names = |group: &str, method: &str| Some((group.to_owned(), method.to_owned()));
        assert_eq!(found("/v1/groups/counter/add"), names("counter", "add"));
        assert_eq!(found("/v1/groups/line%2Da/shut%20down"), names("line-a", "shut down"));
        for wrong in [
            "/v1/groups/counter",
            "/v1/groups//add",
            "/v1/groups/a/",
            "/v1/groups/a/b/c",
            "/v1/groups/%2/b",
            "/v1/groups/%ff/b",
        ] {
            assert_eq!(found(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn deadlines_are_milliseconds_or_seconds() {
        let of = |text| {
            let name = HeaderName::from_static(DEADLINE);
            deadline(&HeaderMap::from_iter([(name, HeaderValue::from_static(text))]))
        };
        assert_eq!(of("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(of("2s"), Ok(Duration::from_secs(2)));
        for wrong in ["", "2", "0ms", "-1s", "2m", "1.5s"] {
            assert!(of(wrong).expect_err(wrong).message.contains(DEADLINE));
        }
    }
}
