//! Reflection: tools such as grpcurl read the contracts of groups as files of protobuf.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{Request, Response};
use steadfast::DESCRIBE;
use tonic::body::Body;
use tonic::{Status, Streaming};
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{
    ErrorResponse, FileDescriptorResponse, ListServiceResponse, ServerReflectionRequest,
    ServerReflectionResponse, ServiceResponse,
};

use crate::call::Gateway;
use crate::caller::Caller;
use crate::names::group_of;
use crate::proto::Described;
use crate::refusals::Kind;
use crate::status::Failure;
use crate::streams::{self, Asker};

/// The paths of the one method. Messages of both versions are the same bytes.
pub(crate) const PATHS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Serves one stream.
pub(crate) async fn serve<B>(
    gateway: Arc<Gateway>,
    caller: Caller,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    streams::serve(request, move |questions, answers| {
        let (gateway, caller) = (gateway.clone(), caller.clone());
        async move {
            let _room = gateway.stream().map_err(|full| full.to_status())?;
            converse(&gateway, &caller, questions, &answers).await
        }
    })
    .await
}

async fn converse(
    gateway: &Gateway,
    caller: &Caller,
    mut questions: Streaming<ServerReflectionRequest>,
    answers: &Asker<ServerReflectionResponse>,
) -> Result<(), Status> {
    while let Some(question) = questions.message().await? {
        let answer = answer(gateway, caller, &question).await.unwrap_or_else(|failure| {
            MessageResponse::ErrorResponse(ErrorResponse {
                error_code: failure.kind.row().code.into(),
                error_message: failure.message,
            })
        });
        let response = ServerReflectionResponse {
            valid_host: question.host.clone(),
            original_request: Some(question),
            message_response: Some(answer),
        };
        if answers.send(Ok(response)).await.is_err() {
            break;
        }
    }
    Ok(())
}

async fn answer(
    gateway: &Gateway,
    caller: &Caller,
    question: &ServerReflectionRequest,
) -> Result<MessageResponse, Failure> {
    let nothing = |what: &str| Failure::new(Kind::NoGroup, format!("there is no {what}"));
    match &question.message_request {
        Some(MessageRequest::ListServices(_)) => {
            let groups = gateway.cluster().borrow().groups.clone();
            // Groups may have one service, by one file.
            let mut names = BTreeSet::new();
            for group in groups {
                if let Ok(described) = described(gateway, caller, &group).await {
                    names.insert(described.service.clone());
                }
            }
            let service = names.into_iter().map(|name| ServiceResponse { name }).collect();
            Ok(MessageResponse::ListServicesResponse(ListServiceResponse { service }))
        }
        Some(MessageRequest::FileContainingSymbol(symbol)) => {
            let found = find(gateway, caller, &group_of(symbol), |it| it.has(symbol)).await;
            found.map(|described| files(&described)).ok_or_else(|| nothing(symbol))
        }
        Some(MessageRequest::FileByFilename(name)) => {
            let group = name.strip_suffix(".proto").unwrap_or(name);
            let found = find(gateway, caller, group, |it| it.has_file(name)).await;
            found.map(|described| files(&described)).ok_or_else(|| nothing(name))
        }
        _ => Err(nothing("extension here")),
    }
}

/// A contract that the caller may see.
async fn described(
    gateway: &Gateway,
    caller: &Caller,
    group: &str,
) -> Result<Arc<Described>, Failure> {
    caller.check(group, DESCRIBE)?;
    gateway.contracts().get(group).await
}

/// The first contract that has it: of the group that its name tells, or else of any other one. A
/// service's own file has a package of its own.
async fn find(
    gateway: &Gateway,
    caller: &Caller,
    group: &str,
    has: impl Fn(&Described) -> bool,
) -> Option<Arc<Described>> {
    let groups = gateway.cluster().borrow().groups.clone();
    let others = groups.iter().map(String::as_str).filter(|other| *other != group);
    for group in std::iter::once(group).chain(others) {
        if let Ok(described) = described(gateway, caller, group).await
            && has(&described)
        {
            return Some(described);
        }
    }
    None
}

fn files(described: &Described) -> MessageResponse {
    let file_descriptor_proto = described.files();
    MessageResponse::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto })
}
