//! The asynchronous driver: one task owns the session and its streams.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use bytes::Bytes;
use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use wire::ClientId;
use wire::limits::MAX_QUEUED_CALLS;

use crate::buffers::{Ended, listed};
use crate::{
    Answer, Builder, CallError, ConnectError, DEFAULT_DEADLINE, Event, Followed, Invocation, Stats,
};

mod driver;
mod order;
mod stream;

use driver::Task;
use order::{Follower, Log, Order, POISONED};

/// An asynchronous client, for any number of tasks. Its clones share one session, which ends with
/// the last of them.
///
/// The client uses tokio's timers, which fire up to a millisecond late.
///
/// ```no_run
/// use steadfast_client::{AsyncClient, Invocation};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = AsyncClient::connect(["192.0.2.1:7100", "192.0.2.2:7100"]).await?;
/// let add = Invocation::new("counter", "add").json().body("[5]");
/// let sum = client.call(add).await?;
/// # let _ = sum;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AsyncClient {
    orders: mpsc::Sender<Order>,
    log: Arc<Mutex<Log>>,
    client: ClientId,
}

impl AsyncClient {
    /// Connects to the first of these addresses that answers.
    ///
    /// The address of one node is enough. With several, the client can start while a node is down.
    ///
    /// # Errors
    /// [`ConnectError`] tells what each address did, or that no tokio
    /// runtime is there.
    pub async fn connect<A: ToSocketAddrs>(
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<AsyncClient, ConnectError> {
        AsyncClient::connect_by(addresses, Builder::default()).await
    }

    /// Makes a builder, for a client that needs more than addresses.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) async fn connect_by<A: ToSocketAddrs>(
        addresses: impl IntoIterator<Item = A>,
        builder: Builder,
    ) -> Result<AsyncClient, ConnectError> {
        let runtime =
            Handle::try_current().map_err(|error| ConnectError::System(error.to_string()))?;
        let mut resolved: Vec<SocketAddr> = Vec::new();
        for address in addresses {
            let found = lookup_host(address).await;
            resolved.extend(found.map_err(|error| ConnectError::Resolve(error.to_string()))?);
        }
        let (orders, inbound) = mpsc::channel(MAX_QUEUED_CALLS);
        let (opened, opening) = oneshot::channel();
        let task = Task::new(builder.config(resolved)?, builder.tls, inbound, opened);
        let client =
            AsyncClient { orders, log: task.log.clone(), client: task.sessions.home().client() };
        runtime.spawn(task);
        opening.await.unwrap_or_else(|_| Err(ConnectError::System("the runtime ends".into())))?;
        Ok(client)
    }

    /// Makes a call, or a read, and waits for its answer until the deadline.
    ///
    /// If the future is dropped, the client gives the call up. A replica may still execute it.
    ///
    /// # Errors
    /// [`CallError`] tells why the call has no result, and whether it was executed.
    pub async fn call(&self, invocation: Invocation<'_>) -> Result<Bytes, CallError> {
        self.begin(invocation).await?.0
    }

    /// Makes a call to all replicas at once, and tells what each of them says.
    ///
    /// It waits for all replicas, or for as many replies as [`Invocation::balancing()`] says. The
    /// replicas of a group that orders its calls say the same, so its list has one answer.
    ///
    /// # Errors
    /// [`CallError`], if no replica says anything else. If only some replicas do not answer, the
    /// list has their errors.
    pub async fn gather(&self, invocation: Invocation<'_>) -> Result<Vec<Answer>, CallError> {
        listed(self.begin(invocation.for_all()).await?)
    }

    async fn begin(&self, invocation: Invocation<'_>) -> Result<Ended, CallError> {
        let deadline = invocation.deadline.unwrap_or(DEFAULT_DEADLINE);
        if deadline > wire::limits::MAX_DEADLINE {
            return Err(CallError::DeadlineTooLong(deadline));
        }
        let (asker, answered) = oneshot::channel();
        let (invocation, deadline) = (invocation.into_owned(), Instant::now() + deadline);
        let order = Order::Call { invocation, deadline, asker };
        // The task takes orders as fast as they come: what is too much, the session refuses.
        self.orders.send(order).await.map_err(|_| CallError::Closed)?;
        answered.await.map_err(|_| CallError::Closed)
    }

    /// Keeps a group's targets known, and tells each change, until the receiver is dropped.
    ///
    /// # Errors
    /// [`CallError::Closed`] if the client's task has ended. A name that no group can have, and one
    /// group too many, stay [`Followed::Unknown`].
    pub async fn follow(
        &self,
        group: impl Into<String>,
    ) -> Result<watch::Receiver<Followed>, CallError> {
        let (told, follower) = watch::channel(Followed::default());
        let order = Order::Follow(Follower { group: group.into(), told });
        self.orders.send(order).await.map_err(|_| CallError::Closed)?;
        Ok(follower)
    }

    /// The name of the session, as nodes and handlers see it.
    pub fn id(&self) -> ClientId {
        self.client
    }

    /// The counters since the client was made.
    pub fn stats(&self) -> Stats {
        self.log.lock().expect(POISONED).stats
    }

    /// Takes the events since the last time, with the moments at which the client noticed them.
    ///
    /// The client keeps the last [`MAX_CLIENT_EVENTS`](wire::limits::MAX_CLIENT_EVENTS).
    pub fn take_events(&self) -> Vec<(SystemTime, Event)> {
        self.log.lock().expect(POISONED).events.take()
    }
}

impl Builder {
    /// Connects an asynchronous client to the first of these addresses that answers.
    ///
    /// # Errors
    /// [`ConnectError`] tells what each address did, or that no tokio
    /// runtime is there.
    pub async fn connect_async<A: ToSocketAddrs>(
        self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<AsyncClient, ConnectError> {
        AsyncClient::connect_by(addresses, self).await
    }
}
