//! Calls by gRPC: bytes in, bytes out, whatever the method.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use client::{CallError, Reading};
use http::{HeaderMap, Request, Response};
use steadfast::contract::MethodContract;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Status};
use wire::MethodId;
use wire::limits::{MAX_BODY, MAX_DEADLINE};

use crate::call::{Asked, Gateway};
use crate::caller::Caller;
use crate::metered::{Metered, Share};
use crate::names;
use crate::proto::Described;
use crate::status::{EXECUTED, Failure};

/// The deadline by gRPC's own rules.
const TIMEOUT: &str = "grpc-timeout";

/// `json`: messages are JSON, whatever the content type says.
const ENCODING: &str = "steadfast-encoding";

/// Serves one call.
pub(crate) async fn serve<B>(
    gateway: Arc<Gateway>,
    caller: Caller,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + std::fmt::Display + Send,
    B::Data: Send,
{
    match Call::of(&gateway, caller, &request) {
        Ok((call, deadline)) => call.serve(request, deadline).await,
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
    share: Share,
}

impl Call {
    /// The call that a request's head describes, and its deadline.
    fn of<B>(
        gateway: &Arc<Gateway>,
        caller: Caller,
        request: &Request<B>,
    ) -> Result<(Call, Duration), Failure> {
        let (service, method) = names::split(request.uri().path()).ok_or_else(|| {
            Failure::new(Code::Unimplemented, "call /GROUP.SERVICE/METHOD, or /GROUP/METHOD")
        })?;
        let headers = request.headers();
        let mut asked = Asked::of(headers)?;
        let authority = request.uri().authority().map(|it| it.as_str());
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
            share: Arc::new(Mutex::new(gateway.room()?)),
        };
        Ok((call, deadline(headers)?))
    }

    async fn serve<B>(self, request: Request<B>, deadline: Duration) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + std::fmt::Display + Send,
        B::Data: Send,
    {
        let until = Instant::now() + deadline;
        let request = request.map(|body| Metered::new(body, self.share.clone()));
        let call = Arc::new(self);
        let service = tower::service_fn(move |request: tonic::Request<Bytes>| {
            let call = call.clone();
            async move {
                let result = call.make(request.into_inner(), until).await;
                let mut response = tonic::Response::new(result.map_err(|it| it.to_status())?);
                response.metadata_mut().insert(EXECUTED, "yes".parse().expect("a word"));
                Ok::<_, Status>(response)
            }
        });
        let mut server = tonic::server::Grpc::new(Raw).max_decoding_message_size(MAX_BODY);
        let served = tokio::time::timeout_at(until, server.unary(service, request)).await;
        served
            .unwrap_or_else(|_| Failure::from(CallError::DeadlineExceeded).to_status().into_http())
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
        let is_elsewhere =
            |failure: &Failure| matches!(failure.code, Code::NotFound | Code::PermissionDenied);
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
            return self.call((group, &self.method), reads, body, until).await;
        }
        let described = self.described(group).await?;
        let method = described.method(&self.method).ok_or_else(|| {
            let methods: Vec<&str> =
                described.contract.methods.iter().map(|method| &*method.name).collect();
            let (method, all) = (&self.method, methods.join(", "));
            Failure::new(Code::Unimplemented, format!("no method `{method}`: there are {all}"))
        })?;
        let body = method.arguments(message).map_err(Failure::invalid)?;
        let MethodContract { name, reads, .. } = method.contract;
        let result = self.call((group, name), *reads, body, until).await?;
        method.result(&result).map_err(|misfit| {
            let why = format!("the result of {name} is not as its contract says: {misfit}");
            Failure::new(Code::Internal, why).of_a_call(true)
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

/// Messages as they are.
#[derive(Clone, Copy, Debug, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
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
            assert_eq!(of(wrong).expect_err(wrong).code, Code::InvalidArgument);
        }
    }
}
