//! One call: from names and JSON to its result. What gRPC and HTTP have in common.

use std::time::Duration;

use bytes::Bytes;
use client::{
    AsyncClient, Builder, CallError, ConnectError, Followed, Invocation, Policy, Reading,
};
use http::HeaderMap;
use http::request::Parts;
use serde_json::value::RawValue;
use tokio::sync::watch;
use wire::MethodId;
use wire::limits::MAX_DEADLINE;

use crate::announce::Cluster;
use crate::budget::{Budget, Held, Share};
use crate::caller::Caller;
use crate::connection::MAX_HEADERS;
use crate::contracts::Contracts;
use crate::fit;
use crate::keys::{self, Identity};
use crate::load::Load;
use crate::refusals::Kind;
use crate::sessions::{NoSession, Sessions};
use crate::spans::span;
use crate::status::Failure;

/// Calls under way in one gateway, and their bytes.
const MAX_CALLS: usize = 4096;
const MAX_BYTES: usize = 256 << 20;

/// Streams of xDS, reflection, health and load reports in one gateway.
const MAX_STREAMS: usize = 2048;

/// A message or a body has to come within this time.
pub(crate) const BODY_WITHIN: Duration = Duration::from_secs(10);

/// Bytes that a call holds before its message comes, besides its headers.
const OVERHEAD: usize = 1 << 10;

/// Headers that begin so are for the gateway.
const OURS: &str = "steadfast-";

/// How a read is answered: `linearizable`, or its greatest age such as `500ms`.
const READ: &str = "steadfast-read";

/// From 0 to 255: a busy host refuses less critical calls first.
const PRIORITY: &str = "steadfast-priority";

/// The group, where neither path nor target names it.
pub(crate) const GROUP: &str = "steadfast-group";

/// Calls the cluster for everybody.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// For calls without a key, and for the gateway's own questions.
    own: AsyncClient,
    sessions: Sessions,
    budget: Budget,
    /// Streams of callers that are told of changes.
    streams: Budget,
    cluster: watch::Receiver<Cluster>,
    contracts: Contracts,
    load: Load,
}

/// A call, as its headers describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) group: Option<String>,
    pub(crate) identity: Option<Identity>,
    pub(crate) reading: Option<Reading>,
    pub(crate) priority: Option<u8>,
}

impl Asked {
    /// Reads the headers that gRPC and HTTP share.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Asked, Failure> {
        let ours = headers.keys().filter(|name| name.as_str().starts_with(OURS));
        for name in ours {
            let mut values = headers.get_all(name).iter();
            let is_text = values.next().is_some_and(|value| value.to_str().is_ok());
            if !is_text || values.next().is_some() {
                return Err(Failure::invalid(format!("{name} has one value, of plain ASCII")));
            }
        }
        let identity = keys::identity(headers).map_err(Failure::invalid)?;
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let reading = text(READ).map(reading).transpose()?;
        let priority = text(PRIORITY).map(|text| {
            let wrong = || Failure::invalid(format!("{PRIORITY} is 0 to 255, and not `{text}`"));
            text.parse().map_err(|_| wrong())
        });
        let group = text(GROUP).map(str::to_owned);
        Ok(Asked { group, identity, reading, priority: priority.transpose()? })
    }
}

fn reading(text: &str) -> Result<Reading, Failure> {
    match text {
        "linearizable" => Ok(Reading::Linearizable),
        _ => span(text).map(Reading::Stale).ok_or_else(|| {
            Failure::invalid(format!("{READ} is `linearizable`, or an age such as `500ms` or `2s`"))
        }),
    }
}

impl Gateway {
    /// Connects to the cluster.
    pub(crate) async fn connect(
        options: &crate::Options,
        cluster: watch::Receiver<Cluster>,
    ) -> Result<Gateway, ConnectError> {
        let mut builder = Builder::default().policy(Policy::default());
        if let Some(tls) = &options.tls {
            builder = builder.tls(tls.clone());
        }
        let own = builder.clone().connect_async(options.nodes.clone()).await?;
        let sessions = Sessions::new(options.nodes.clone(), cluster.clone(), builder);
        Ok(Gateway::new(own, sessions, cluster))
    }

    /// Calls by a client that is there, for calls without keys.
    pub(crate) fn over(own: AsyncClient) -> Gateway {
        let cluster = watch::channel(Cluster::default()).1;
        let sessions = Sessions::new(Vec::new(), cluster.clone(), Builder::default());
        Gateway::new(own, sessions, cluster)
    }

    fn new(own: AsyncClient, sessions: Sessions, cluster: watch::Receiver<Cluster>) -> Gateway {
        let (contracts, budget) = (Contracts::new(own.clone()), Budget::new(MAX_CALLS, MAX_BYTES));
        let streams = Budget::new(MAX_STREAMS, 0);
        Gateway { own, sessions, budget, streams, cluster, contracts, load: Load::default() }
    }

    /// The client for calls without a key.
    pub(crate) fn own(&self) -> &AsyncClient {
        &self.own
    }

    /// Room for a call that begins. It takes a place when its message has come: see
    /// [`Held::enter`].
    pub(crate) fn room(&self, caller: &Caller, head: &Parts) -> Result<Held, Failure> {
        let size = fit::size(&head.headers) + head.uri.path().len();
        if size > MAX_HEADERS {
            let why = format!("headers of {size} bytes, and {MAX_HEADERS} at most: send less");
            return Err(Failure::new(Kind::Headers, why));
        }
        let mut held = self.budget.hold(&caller.share);
        held.grow(size + OVERHEAD).map_err(|_| Failure::full())?;
        Ok(held)
    }

    /// Room for one more stream, as long as this is held.
    pub(crate) fn stream(&self) -> Result<Held, Failure> {
        let mut held = self.streams.hold(&Share::default());
        held.enter().map_err(|_| Failure::full())?;
        Ok(held)
    }

    /// Waits until no call is under way.
    pub(crate) async fn idle(&self) {
        self.budget.idle().await;
    }

    /// The gateways and groups of the cluster.
    pub(crate) fn cluster(&self) -> watch::Receiver<Cluster> {
        self.cluster.clone()
    }

    /// The contracts of the cluster's groups.
    pub(crate) fn contracts(&self) -> &Contracts {
        &self.contracts
    }

    /// The calls so far.
    pub(crate) fn load(&self) -> &Load {
        &self.load
    }

    /// A group's targets, and each change of them.
    pub(crate) async fn follow(&self, group: &str) -> Result<watch::Receiver<Followed>, CallError> {
        self.own.follow(group).await
    }

    /// Makes a call. Arguments and result are JSON.
    pub(crate) async fn call(
        &self,
        caller: &Caller,
        (group, method): (&str, &str),
        asked: &Asked,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Bytes, Failure> {
        let id = MethodId::of(method);
        caller.check(group, id)?;
        let deadline = deadline.min(MAX_DEADLINE);
        let mut invocation = Invocation::new(group, id).json().body(body).within(deadline);
        invocation.reading = asked.reading;
        invocation.priority = asked.priority;
        let result = match asked.identity {
            None => self.own.call(invocation).await,
            Some((session, key)) => {
                let connecting = self.sessions.client(session);
                let client = match tokio::time::timeout(deadline, connecting).await {
                    Ok(client) => client?,
                    Err(_) => return Err(CallError::NoReplica.into()),
                };
                let client = client.get().expect("a session's client is connected");
                let keyed = invocation.keyed(key);
                match client.call(keyed.clone()).await {
                    Err(CallError::NumberTaken(_)) => {
                        let other = self.sessions.call_apart(session, keyed);
                        let late = Err(CallError::DeadlineExceeded.into());
                        let other = tokio::time::timeout(deadline, other).await;
                        self.load.add(other.as_ref().is_ok_and(Result::is_ok));
                        return other.unwrap_or(late);
                    }
                    result => result,
                }
            }
        };
        self.load.add(result.is_ok());
        result.map_err(Failure::from)
    }
}

/// A result that callers get as it is: it has to be JSON.
pub(crate) fn checked(result: Bytes) -> Result<Bytes, Failure> {
    match serde_json::from_slice::<&RawValue>(&result) {
        Ok(_) => Ok(result),
        Err(error) => {
            Err(Failure::new(Kind::Failed, format!("executed, but its result is no JSON: {error}")))
        }
    }
}

impl From<NoSession> for Failure {
    fn from(none: NoSession) -> Failure {
        match none {
            NoSession::Full => Failure::full(),
            NoSession::Unreachable(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn asked(pairs: &[(&'static str, &'static str)]) -> Result<Asked, Failure> {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        Asked::of(&pairs.iter().map(pair).collect())
    }

    #[test]
    fn headers_say_how_a_call_is_made() {
        let all = asked(&[(GROUP, "a"), (READ, "500ms"), (PRIORITY, "200")]).expect("good");
        assert_eq!(all.group.as_deref(), Some("a"));
        let seconds = asked(&[(READ, "2s")]).expect("good").reading;
        assert_eq!(seconds, Some(Reading::Stale(Duration::from_secs(2))));
        assert_eq!(all.reading, Some(Reading::Stale(Duration::from_millis(500))));
        assert_eq!(all.priority, Some(200));
        let read = asked(&[(READ, "linearizable")]).expect("good");
        assert_eq!(read.reading, Some(Reading::Linearizable));
        assert_eq!(asked(&[]).expect("nothing is needed").identity, None);
    }

    #[test]
    fn a_result_that_is_no_json_is_not_passed_on() {
        let whole = Bytes::from_static(b" [1234567890123456789012345]");
        assert_eq!(checked(whole.clone()), Ok(whole));
        for wrong in [&b"\"\xff\xfe\""[..], b"[1", b"", b"NaN", b"1 2"] {
            let refused = checked(Bytes::copy_from_slice(wrong)).expect_err("no JSON");
            assert_eq!(refused.kind, Kind::Failed);
        }
    }

    #[test]
    fn headers_that_make_no_sense_are_refused() {
        for pair in [(READ, "soon"), (READ, "-1ms"), (PRIORITY, "256"), (keys::CALL, "1")] {
            let refused = asked(&[pair]).expect_err("nonsense");
            assert!(refused.message.contains(pair.0), "{}", refused.message);
        }
        // One of them would be ignored.
        let twice = [(HeaderName::from_static(GROUP), "a"), (HeaderName::from_static(GROUP), "b")];
        let mut headers = HeaderMap::new();
        for (name, value) in twice {
            headers.append(name, HeaderValue::from_static(value));
        }
        assert!(Asked::of(&headers).expect_err("two groups").message.contains(GROUP));
    }
}
