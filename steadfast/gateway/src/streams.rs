//! Streams of questions and answers, as xDS and reflection have them.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use prost::Message;
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::codegen::tokio_stream::Stream;
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

/// Answers that wait for a client that does not read.
const WAITING: usize = 4;

/// Bytes of one question.
const MAX_QUESTION: usize = 64 << 10;

/// Where a conversation's answers go.
pub(crate) type Asker<T> = mpsc::Sender<Result<T, Status>>;

/// Serves a stream by a task that reads questions and sends answers. The stream ends with it.
pub(crate) async fn serve<B, Q, A, F, R>(request: Request<B>, converse: F) -> Response<Body>
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    Q: Message + Default + Send + 'static,
    A: Message + Send + 'static,
    F: Fn(Streaming<Q>, Asker<A>) -> R + Clone + Send,
    R: Future<Output = Result<(), Status>> + Send + 'static,
{
    let service = tower::service_fn(move |request: tonic::Request<Streaming<Q>>| {
        let (answers, answered) = mpsc::channel(WAITING);
        let conversation = converse(request.into_inner(), answers.clone());
        tokio::spawn(async move {
            if let Err(status) = conversation.await {
                let _ = answers.send(Err(status)).await;
            }
        });
        async move { Ok::<_, Status>(tonic::Response::new(Answers(answered))) }
    });
    let codec = ProstCodec::<A, Q>::default();
    let mut server = tonic::server::Grpc::new(codec).max_decoding_message_size(MAX_QUESTION);
    server.streaming(service, request).await
}

/// The answers of one stream.
pub(crate) struct Answers<T>(pub(crate) mpsc::Receiver<Result<T, Status>>);

impl<T> Stream for Answers<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}
