//! The asynchronous driver: one task owns the session and its streams.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use wire::limits::MAX_QUEUED_CALLS;
use wire::{ClientId, MethodId};

use crate::buffers::{Ended, listed};
use crate::session::What;
use crate::{Answer, Builder, CallError, ConnectError, Event, Reading, Replies, Stats};

mod driver;
mod order;
mod stream;

use driver::Task;
use order::{Log, Order, POISONED};

/// An asynchronous client, for any number of tasks; its clones share one session, which ends with
/// the last of them.
///
/// Its timers are tokio's: they fire up to a millisecond late.
#[derive(Clone, Debug)]
pub struct AsyncClient {
    orders: mpsc::Sender<Order>,
    log: Arc<Mutex<Log>>,
    client: ClientId,
}

impl AsyncClient {
    /// Connects to the first of these addresses that answers. One node's is enough; with several,
    /// the client can also start while a node is down.
    ///
    /// # Errors
    /// If none answers: what each did. If this is not within a tokio runtime.
    pub async fn connect<A: ToSocketAddrs>(
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<AsyncClient, ConnectError> {
        AsyncClient::connect_by(addresses, Builder::default()).await
    }

    /// To say more of the client than addresses.
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
        let client = AsyncClient { orders, log: task.log.clone(), client: task.session.client() };
        runtime.spawn(task);
        opening.await.unwrap_or_else(|_| Err(ConnectError::System("the runtime ends".into())))?;
        Ok(client)
    }

    /// Calls a group's method and waits for the answer, for `deadline` at most. Dropping the
    /// future gives the call up; it may be executed all the same.
    ///
    /// # Errors
    /// [`CallError`] says what became of the call.
    pub async fn call(
        &self,
        group: &str,
        method: MethodId,
        json: bool,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Bytes, CallError> {
        self.begin(group, What::call(method, json), body, deadline).await?.0
    }

    /// Asks all replicas of a group at once, and waits for so many `replies`, for `deadline` at most: what each of them says. Replicas
    /// of a group that orders its calls say the same: there it is a call, and the list has one answer.
    ///
    /// # Errors
    /// If no replica says anything else. Of one of several that does not answer the list has the error.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a plain fact of a call, none is optional"
    )]
    pub async fn gather(
        &self,
        group: &str,
        method: MethodId,
        json: bool,
        body: Bytes,
        replies: Replies,
        deadline: Duration,
    ) -> Result<Vec<Answer>, CallError> {
        let what = What { replies: Some(replies), ..What::call(method, json) };
        listed(self.begin(group, what, body, deadline).await?)
    }

    /// The same of a method that changes nothing (`&self` in its service's trait): one replica answers it, without ordering.
    ///
    /// # Errors
    /// [`CallError`] says what became of it; of a method that may change something that it is none ([`Refusal::NotReadOnly`]).
    ///
    /// [`Refusal::NotReadOnly`]: wire::client::Refusal::NotReadOnly
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a plain fact of a call, none is optional"
    )]
    pub async fn read(
        &self,
        group: &str,
        method: MethodId,
        json: bool,
        body: Bytes,
        reading: Reading,
        deadline: Duration,
    ) -> Result<Bytes, CallError> {
        let what = What { access: reading.into(), ..What::call(method, json) };
        self.begin(group, what, body, deadline).await?.0
    }

    async fn begin(
        &self,
        group: &str,
        what: What,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Ended, CallError> {
        if deadline > wire::limits::MAX_DEADLINE {
            return Err(CallError::DeadlineTooLong(deadline));
        }
        let (asker, answered) = oneshot::channel();
        let group = group.to_owned();
        let deadline = Instant::now() + deadline;
        let order = Order { group, what, body, deadline, asker };
        // The task takes orders as fast as they come: what is too much, the session refuses.
        self.orders.send(order).await.map_err(|_| CallError::Closed)?;
        answered.await.map_err(|_| CallError::Closed)
    }

    /// The session's name, as nodes and handlers see it.
    pub fn id(&self) -> ClientId {
        self.client
    }

    /// Counters since the client was made.
    pub fn stats(&self) -> Stats {
        self.log.lock().expect(POISONED).stats
    }

    /// Takes the events since the last time, with the moments at which they were noticed. The
    /// last `MAX_CLIENT_EVENTS` are kept.
    pub fn take_events(&self) -> Vec<(SystemTime, Event)> {
        self.log.lock().expect(POISONED).events.take()
    }
}

impl Builder {
    /// As [`connect`](Builder::connect), for an asynchronous client.
    ///
    /// # Errors
    /// If none answers: what each did. If this is not within a tokio runtime.
    pub async fn connect_async<A: ToSocketAddrs>(
        self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<AsyncClient, ConnectError> {
        AsyncClient::connect_by(addresses, self).await
    }
}
