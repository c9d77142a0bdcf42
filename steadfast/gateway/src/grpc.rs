//! Calls by gRPC: bytes in, bytes out, whatever the method.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use client::{CallError, Reading};
use http::request::Parts;
use http::{HeaderMap, Request, Response};
use steadfast::contract::MethodContract;
use tokio::time::{Instant, timeout_at};
use tonic::body::Body;
use wire::MethodId;
use wire::limits::MAX_DEADLINE;

use crate::budget::Held;
use crate::call::{Asked, BODY_WITHIN, Gateway, checked};
use crate::caller::Caller;
use crate::proto::Described;
use crate::refusals::Kind;
use crate::status::Failure;
use crate::{message, names};

/// The deadline by gRPC's own rules.
const TIMEOUT: &str = "grpc-timeout";

/// `json`: messages are JSON, whatever the content type says.
const ENCODING: &str = "steadfast-encoding";

/// Whether a request says that it is gRPC: `application/grpc`, or with a word on its messages.
pub(crate) fn is_spoken(headers: &HeaderMap) -> bool {
    let kind = headers.get(http::header::CONTENT_TYPE).map(|value| value.as_bytes());
    let rest = kind.and_then(|kind| kind.strip_prefix(b"application/grpc"));
    rest.is_some_and(|rest| matches!(rest, [] | [b'+' | b';' | b' ', ..]))
}

/// Serves one call.
pub(crate) async fn serve<B>(
    gateway: Arc<Gateway>,
    caller: Caller,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    let (head, body) = request.into_parts();
    let answered = match Call::of(&gateway, caller, &head) {
        Ok((call, held, deadline)) => call.serve(body, held, deadline).await,
        Err(failure) => Err(failure),
    };
    match answered {
        Ok(result) => message::answer(&result),
        Err(failure) => failure.to_status().into_http(),
    }
}

/// One call by gRPC.
struct Call {
    gateway: Arc<Gateway>,
    caller: Caller,
    group: String,
    /// The group that the channel's target names, such as `xds:///counter`. It is called where
    /// there is no other: a service's own file has a package that names no group.
    target: Option<String>,
    method: String,
    asked: Asked,
    is_json: bool,
    /// The service may have been called.
    is_sent: AtomicBool,
}

impl Call {
    /// The call that a request's head describes, its room, and its deadline.
    fn of(
        gateway: &Arc<Gateway>,
        caller: Caller,
        head: &Parts,
    ) -> Result<(Call, Held, Duration), Failure> {
        let held = gateway.room(&caller, head)?;
        let (service, method) = names::split(head.uri.path()).ok_or_else(|| {
            Failure::new(Kind::NoMethod, "call /GROUP.SERVICE/METHOD, or /GROUP/METHOD")
        })?;
        let headers = &head.headers;
        message::check(headers)?;
        let mut asked = Asked::of(headers)?;
        let authority = head.uri.authority().map(|it| it.as_str());
        let target = match asked.group {
            Some(_) => None,
            None => authority.and_then(names::group_of_target),
        };
        let call = Call {
            gateway: gateway.clone(),
            caller,
            group: asked.group.take().unwrap_or_else(|| names::group_of(service)),
            target,
            method: method.to_owned(),
            asked,
            is_json: is_json(headers),
            is_sent: AtomicBool::new(false),
        };
        Ok((call, held, deadline(headers)?))
    }

    async fn serve<B>(self, body: B, mut held: Held, deadline: Duration) -> Result<Bytes, Failure>
    where
        B: http_body::Body,
        B::Error: std::fmt::Display,
    {
        let begun = Instant::now();
        let (until, read_until) = (begun + deadline, begun + deadline.min(BODY_WITHIN));
        let read = timeout_at(read_until, message::read(body, &mut held)).await;
        let slow = || Failure::new(Kind::Slow, "the message did not come in time: call anew");
        let message = read.map_err(|_| slow())??;
        held.enter().map_err(|_| Failure::full())?;
        let made = timeout_at(until, self.make(message, until)).await;
        made.unwrap_or_else(|_| match self.is_sent.load(Ordering::Relaxed) {
            true => Err(CallError::DeadlineExceeded.into()),
            false => {
                let why = "no replica told the contract before the deadline: use a longer one";
                Err(Failure::new(Kind::Unavailable, why))
            }
        })
    }

    async fn make(&self, message: Bytes, until: Instant) -> Result<Bytes, Failure> {
        let Some(target) = self.target.as_deref().filter(|target| *target != self.group) else {
            return self.make_at(&self.group, message, until).await;
        };
        let contracts = self.gateway.contracts();
        // The one that has been called before: else each call would ask for the other first.
        let (one, other) = match contracts.has(target) && !contracts.has(&self.group) {
            true => (target, &*self.group),
            false => (&*self.group, target),
        };
        let made = self.make_at(one, message.clone(), until).await;
        let is_elsewhere = |failure: &Failure| matches!(failure.kind, Kind::NoGroup | Kind::Denied);
        match made {
            Err(first) if is_elsewhere(&first) => {
                let made = self.make_at(other, message, until).await;
                made.map_err(|second| if is_elsewhere(&second) { first } else { second })
            }
            made => made,
        }
    }

    async fn make_at(&self, group: &str, message: Bytes, until: Instant) -> Result<Bytes, Failure> {
        if self.is_json {
            let body = if message.is_empty() { Bytes::from_static(b"[]") } else { message };
            let known = self.gateway.contracts().peek(group);
            let reads = known.is_some_and(|known| known.changes_nothing(&self.method));
            return checked(self.call((group, &self.method), reads, body, until).await?);
        }
        let described = self.described(group).await?;
        let method = described.method(&self.method).ok_or_else(|| {
            let methods: Vec<&str> =
                described.contract.methods.iter().map(|method| &*method.name).collect();
            let (method, all) = (&self.method, methods.join(", "));
            Failure::new(Kind::NoMethod, format!("no method `{method}`: there are {all}"))
        })?;
        let body = method.arguments(message).map_err(Failure::invalid)?;
        let MethodContract { name, reads, .. } = method.contract;
        let result = self.call((group, name), *reads, body, until).await?;
        method.result(&result).map_err(|misfit| {
            let why = format!("the result of {name} is not as its contract says: {misfit}");
            Failure::new(Kind::Failed, why)
        })
    }

    /// The contract, asked for anew if it does not have the method: it may do so now. Rights name
    /// a method as the contract does; a caller who has none is told nothing else.
    async fn described(&self, group: &str) -> Result<Arc<Described>, Failure> {
        let contracts = self.gateway.contracts();
        let described = match contracts.get(group).await {
            Ok(described) if described.method(&self.method).is_none() => {
                contracts.anew(group).await
            }
            described => described,
        };
        let method = described.as_ref().ok().and_then(|it| it.method(&self.method));
        let name = method.map_or(&self.method, |method| &method.contract.name);
        self.caller.check(group, MethodId::of(name))?;
        described
    }

    async fn call(
        &self,
        (group, method): (&str, &str),
        reads: bool,
        body: Bytes,
        until: Instant,
    ) -> Result<Bytes, Failure> {
        let mut asked = self.asked.clone();
        asked.reading = asked.reading.or_else(|| reads.then_some(Reading::Linearizable));
        let deadline = until.saturating_duration_since(Instant::now());
        self.is_sent.store(true, Ordering::Relaxed);
        self.gateway.call(&self.caller, (group, method), &asked, body, deadline).await
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|it| it == value);
    is(ENCODING, "json") || is("content-type", "application/grpc+json")
}

/// At most 8 digits and a unit. Without one, the longest that a call may take.
fn deadline(headers: &HeaderMap) -> Result<Duration, Failure> {
    let Some(value) = headers.get(TIMEOUT) else { return Ok(MAX_DEADLINE) };
    let text = value.to_str().unwrap_or("?");
    let wrong = || Failure::invalid(format!("{TIMEOUT}: `{text}` is no time such as 500m or 2S"));
    let (digits, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let fits = (1..=8).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_digit());
    let count: u64 = digits.parse().ok().filter(|_| fits).ok_or_else(wrong)?;
    Ok(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return Err(wrong()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn of(text: &'static str) -> Result<Duration, Failure> {
        deadline(&HeaderMap::from_iter([(
            http::HeaderName::from_static(TIMEOUT),
            HeaderValue::from_static(text),
        )]))
    }

    #[test]
    fn deadlines_have_a_unit() {
        assert_eq!(of("2S"), Ok(Duration::from_secs(2)));
        assert_eq!(of("500m"), Ok(Duration::from_millis(500)));
        assert_eq!(of("99999999u"), Ok(Duration::from_micros(99_999_999)));
        assert_eq!(of("1H"), Ok(Duration::from_secs(3600)));
        assert_eq!(deadline(&HeaderMap::new()), Ok(MAX_DEADLINE));
        for wrong in ["", "S", "2", "2s", "-1S", "123456789S", "1.5S"] {
            assert_eq!(of(wrong).expect_err(wrong).kind, Kind::Invalid);
        }
    }
}
