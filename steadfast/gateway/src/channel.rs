//! A group as the channel of generated tonic stubs, in a client's own process.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use client::AsyncClient;
use http::{HeaderValue, Request, Response};
use tonic::body::Body;

use crate::call::{GROUP, Gateway};
use crate::caller::Caller;
use crate::grpc;

/// A [`tower::Service`] under generated tonic stubs: their calls go to a group, exactly once, with
/// all that [`AsyncClient`] does when replicas fail. No gateway is needed.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # struct CounterClient(steadfast_gateway::Channel);
/// # impl CounterClient { fn new(channel: steadfast_gateway::Channel) -> Self { Self(channel) } }
/// let client = steadfast::AsyncClient::connect(["10.0.0.1:7100", "10.0.0.2:7100"]).await?;
/// let channel = steadfast_gateway::Channel::new(&client, "counter")?;
/// // Of `steadfast describe counter --proto`, by tonic-prost-build.
/// let counter = CounterClient::new(channel);
/// # drop(counter);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Channel {
    gateway: Arc<Gateway>,
    group: HeaderValue,
}

/// A group's name has characters that no header can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` has characters that no header of HTTP can have: rename the group")]
pub struct UnfitName(String);

impl Channel {
    /// A channel to this group.
    ///
    /// # Errors
    /// The name cannot stand in a header: it is not of visible ASCII.
    pub fn new(client: &AsyncClient, group: &str) -> Result<Channel, UnfitName> {
        let group = HeaderValue::from_str(group).map_err(|_| UnfitName(group.into()))?;
        Ok(Channel { gateway: Arc::new(Gateway::over(client.clone())), group })
    }
}

impl<B> tower::Service<Request<B>> for Channel
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + std::fmt::Display + Send,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.headers_mut().insert(GROUP, self.group.clone());
        let gateway = self.gateway.clone();
        Box::pin(async move { Ok(grpc::serve(gateway, Caller::default(), request).await) })
    }
}
