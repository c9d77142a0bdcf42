//! xDS for gRPC clients: who serves a group, best first, pushed at each change.
//!
//! A client of `xds:///counter` asks for the resources of the group `counter`. The gateways of the
//! cluster stand in the order of the group's targets, each with a priority of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use client::Followed;
use http::{Request, Response};
use tokio::sync::watch;
use tonic::Streaming;
use tonic::body::Body;

use crate::announce::Cluster;
use crate::call::Gateway;
use crate::status::Failure;
use crate::streams::{self, Asker};

mod feed;
mod proto;
mod resources;

use feed::Feed;
pub(crate) use proto::Span;
use proto::{DiscoveryRequest, DiscoveryResponse};
use resources::Knowledge;
pub(crate) use resources::Peer;

/// The path of the one method.
pub(crate) const PATH: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

/// Serves one stream.
pub(crate) async fn serve<B>(gateway: Arc<Gateway>, request: Request<B>) -> Response<Body>
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    streams::serve(request, move |requests, answers| {
        let gateway = gateway.clone();
        async move {
            let _room = gateway.stream().map_err(|full| full.to_status())?;
            let ended = converse(&gateway, requests, &answers).await;
            ended.map_err(|why| Failure::invalid(why).to_status())
        }
    })
    .await
}

/// Everything that one stream follows. A change of any of it wakes the stream.
struct Followers {
    groups: BTreeMap<String, watch::Receiver<Followed>>,
    cluster: watch::Receiver<Cluster>,
    contracts: watch::Receiver<u64>,
}

impl Followers {
    /// Ready when something has changed.
    async fn changed(&mut self) {
        let Followers { groups, cluster, contracts } = self;
        let mut groups: Vec<_> =
            groups.values_mut().map(|group| Box::pin(group.changed())).collect();
        let one = std::future::poll_fn(|cx| {
            let one = groups.iter_mut().any(|group| group.as_mut().poll(cx).is_ready());
            if one { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::select! {
            () = one => {}
            _ = cluster.changed() => {}
            _ = contracts.changed() => {}
        }
    }
}

async fn converse(
    gateway: &Gateway,
    mut requests: Streaming<DiscoveryRequest>,
    answers: &Asker<DiscoveryResponse>,
) -> Result<(), String> {
    let mut feed = Feed::default();
    let mut followers = Followers {
        groups: BTreeMap::new(),
        cluster: gateway.cluster(),
        contracts: gateway.contracts().news(),
    };
    loop {
        tokio::select! {
            request = requests.message() => {
                let Ok(Some(request)) = request else { return Ok(()) };
                if let Some(objection) = feed.handle_request(request)? {
                    tracing::warn!(
                        kind = ?objection.kind,
                        "an xDS client refuses what it was sent: {}",
                        objection.reason
                    );
                }
            }
            () = followers.changed() => {}
            () = answers.closed() => return Ok(()),
        }
        follow(gateway, &feed, &mut followers).await?;
        for (group, followed) in &mut followers.groups {
            let followed = followed.borrow_and_update().clone();
            let peers = followers.cluster.borrow_and_update().peers.clone();
            followers.contracts.mark_unchanged();
            // A contract that comes later changes the routes then: nothing waits for it.
            let reads = gateway.contracts().reads(group);
            feed.learn(Knowledge { group: group.clone(), followed, peers, reads });
        }
        while let Some(response) = feed.poll_response() {
            if answers.send(Ok(response)).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Follows just the groups that the client asks for.
async fn follow(gateway: &Gateway, feed: &Feed, followers: &mut Followers) -> Result<(), String> {
    let wanted = feed.wanted();
    followers.groups.retain(|group, _| wanted.contains(group.as_str()));
    for group in wanted {
        if !followers.groups.contains_key(group) {
            let followed = gateway.follow(group).await.map_err(|error| error.to_string())?;
            followers.groups.insert(group.to_owned(), followed);
        }
    }
    Ok(())
}
