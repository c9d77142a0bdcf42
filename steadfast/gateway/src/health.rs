//! Health checks of gRPC (`grpc.health.v1`): of the gateway, and of each group.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use client::Followed;
use tokio::sync::{mpsc, watch};
use tonic::codegen::tokio_stream::Stream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::call::{GROUP, Gateway};
use crate::names::group_of;
use crate::refusals::Kind;
use crate::status::Failure;
use crate::streams::Answers;

/// A group that no node tells of within this time is told as unknown.
const ASK_WITHIN: Duration = Duration::from_secs(1);

/// Changes that wait for a client that does not read.
const WAITING: usize = 4;

/// Tells the gateway's health under the empty name, and a group's under its own name or that of its
/// service. Where neither names a group, the channel's target does, as for calls.
#[derive(Clone, Debug)]
pub(crate) struct Checks {
    gateway: Arc<Gateway>,
    /// Closed when the gateway stops.
    ends: watch::Receiver<()>,
}

impl Checks {
    pub(crate) fn server(gateway: Arc<Gateway>, ends: watch::Receiver<()>) -> HealthServer<Checks> {
        HealthServer::new(Checks { gateway, ends })
    }

    /// The gateway's own health. Its sender is dropped when it stops.
    fn own(&self) -> ServingStatus {
        match self.ends.has_changed() {
            Ok(_) => ServingStatus::Serving,
            Err(_) => ServingStatus::NotServing,
        }
    }

    async fn follow(
        &self,
        request: &Request<HealthCheckRequest>,
    ) -> Result<watch::Receiver<Followed>, Status> {
        let named = self.known(&group_of(&request.get_ref().service)).await?;
        let target = request.metadata().get(GROUP).and_then(|group| group.to_str().ok());
        let is_absent = *named.borrow() == Followed::Absent;
        match target.filter(|_| is_absent) {
            Some(target) => self.known(target).await,
            None => Ok(named),
        }
    }

    /// Follows a group, which some node tells of by then, if any does.
    async fn known(&self, group: &str) -> Result<watch::Receiver<Followed>, Status> {
        let followed = self.gateway.follow(group).await;
        let mut followed = followed.map_err(|error| Failure::from(error).to_status())?;
        let known = followed.wait_for(|followed| *followed != Followed::Unknown);
        // Nobody has answered by then: that is its health.
        let _ = tokio::time::timeout(ASK_WITHIN, known).await;
        Ok(followed)
    }
}

/// A group is served if any replica may answer.
fn health(followed: &Followed) -> ServingStatus {
    match followed {
        Followed::Known(targets) if !targets.nodes.is_empty() => ServingStatus::Serving,
        Followed::Known(_) => ServingStatus::NotServing,
        Followed::Absent => ServingStatus::ServiceUnknown,
        Followed::Unknown => ServingStatus::Unknown,
    }
}

fn told(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for Checks {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &request.get_ref().service;
        if service.is_empty() {
            return Ok(Response::new(told(self.own())));
        }
        let followed = self.follow(&request).await?;
        let status = health(&followed.borrow());
        match status {
            ServingStatus::ServiceUnknown => {
                let why = format!("there is no group `{}`", group_of(service));
                Err(Failure::new(Kind::NoGroup, why).to_status())
            }
            status => Ok(Response::new(told(status))),
        }
    }

    type WatchStream =
        Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send + 'static>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let service = &request.get_ref().service;
        let room = self.gateway.stream().map_err(|full| full.to_status())?;
        let (answers, answered) = mpsc::channel(WAITING);
        if service.is_empty() {
            let checks = self.clone();
            tokio::spawn(async move {
                let _room = room;
                let mut ends = checks.ends.clone();
                let serving = answers.send(Ok(told(ServingStatus::Serving))).await;
                tokio::select! {
                    _ = ends.changed(), if serving.is_ok() => {
                        let _ = answers.send(Ok(told(checks.own()))).await;
                    }
                    () = answers.closed() => {}
                }
            });
        } else {
            let mut followed = self.follow(&request).await?;
            tokio::spawn(async move {
                let _room = room;
                let mut before = None;
                loop {
                    let status = health(&followed.borrow_and_update());
                    if before != Some(status) && answers.send(Ok(told(status))).await.is_err() {
                        return;
                    }
                    before = Some(status);
                    tokio::select! {
                        changed = followed.changed() => if changed.is_err() { return },
                        () = answers.closed() => return,
                    }
                }
            });
        }
        Ok(Response::new(Box::pin(Answers(answered))))
    }
}
