//! The process as a client of its own cell.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use client::{AsyncClient, Builder, ConnectError, Policy, Tls};
use tokio::sync::OnceCell;
use tokio::time::sleep;
use wire::ClientId;

/// After the node could not be reached, it is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// The way to the cell's own nodes. Clones share the client that follows groups.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    node: SocketAddr,
    builder: Builder,
    client: Arc<OnceCell<AsyncClient>>,
}

impl Own {
    pub fn new(node: SocketAddr, tls: Option<Tls>) -> Own {
        let mut builder = Builder::default().policy(Policy::default()).in_order();
        if let Some(tls) = tls {
            builder = builder.tls(tls);
        }
        Own { node, builder, client: Arc::default() }
    }

    /// The client that follows groups, once the node answers.
    pub async fn client(&self) -> &AsyncClient {
        loop {
            let connect = || self.builder.clone().connect_async([self.node]);
            match self.client.get_or_try_init(connect).await {
                Ok(client) => return client,
                Err(error) => tracing::debug!("the cell's own nodes: {error}"),
            }
            sleep(AGAIN).await;
        }
    }

    /// A client of this session: a caller's, whose calls have numbers already.
    pub async fn session(&self, session: ClientId) -> Result<AsyncClient, ConnectError> {
        self.builder.clone().session(session).connect_async([self.node]).await
    }
}
