//! The sessions of callers with keys: each is a client of the cluster of its own.
//!
//! A node knows one session by connection. So a caller's session has connections of its own, as if
//! the caller were a client itself. Nothing is lost when one is closed: replies are kept by
//! replicas, and the session is opened anew with the next call.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use client::{AsyncClient, Builder, ConnectError, Invocation};
use tokio::sync::{OnceCell, Semaphore, watch};
use wire::ClientId;
use wire::limits::MAX_ADDRESSES;

use crate::announce::Cluster;
use crate::status::Failure;

/// Sessions that one gateway has open.
pub(crate) const MAX_SESSIONS: usize = 1024;

/// Clients of their own for calls whose key this gateway has used for another call.
const MAX_APART: usize = 16;

/// One without a call for so long is closed.
const IDLE: Duration = Duration::from_secs(60);

/// The open sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    nodes: Vec<SocketAddr>,
    cluster: watch::Receiver<Cluster>,
    builder: Builder,
    open: Mutex<HashMap<ClientId, Open>>,
    apart: Semaphore,
}

#[derive(Debug)]
struct Open {
    client: Arc<OnceCell<AsyncClient>>,
    used: Instant,
}

/// Why a session cannot be had.
#[derive(Debug)]
pub(crate) enum NoSession {
    /// All are in use.
    Full,
    Unreachable(ConnectError),
}

impl Sessions {
    pub(crate) fn new(
        nodes: Vec<SocketAddr>,
        cluster: watch::Receiver<Cluster>,
        builder: Builder,
    ) -> Sessions {
        let (builder, apart) = (builder.in_order(), Semaphore::new(MAX_APART));
        Sessions { nodes, cluster, builder, open: Mutex::default(), apart }
    }

    /// The gateway's own node first, then all that are known.
    fn nodes(&self) -> Vec<SocketAddr> {
        let mut nodes = self.nodes.clone();
        for peer in self.cluster.borrow().peers.iter() {
            if nodes.len() < MAX_ADDRESSES && !nodes.contains(&peer.client) {
                nodes.push(peer.client);
            }
        }
        nodes
    }

    /// The client of a session. It is in use as long as the cell is held.
    pub(crate) async fn client(
        &self,
        session: ClientId,
    ) -> Result<Arc<OnceCell<AsyncClient>>, NoSession> {
        let cell = self.cell(session, Instant::now()).ok_or(NoSession::Full)?;
        let connect = || {
            let builder = self.builder.clone().session(session);
            builder.connect_async(self.nodes())
        };
        cell.get_or_try_init(connect).await.map_err(NoSession::Unreachable)?;
        Ok(cell)
    }

    /// Makes a call whose key the session's client has used for another one: by a client of its own,
    /// where no late reply can be taken for the other's. The group says which of them counts.
    pub(crate) async fn call_apart(
        &self,
        session: ClientId,
        invocation: Invocation<'_>,
    ) -> Result<Bytes, Failure> {
        let _place = self.apart.try_acquire().map_err(|_| Failure::full())?;
        let builder = self.builder.clone().session(session);
        let client = builder.connect_async(self.nodes()).await?;
        client.call(invocation).await.map_err(Failure::from)
    }

    fn cell(&self, session: ClientId, now: Instant) -> Option<Arc<OnceCell<AsyncClient>>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = open.get_mut(&session) {
            known.used = now;
            return Some(known.client.clone());
        }
        let in_use = |open: &Open| Arc::strong_count(&open.client) > 1;
        open.retain(|_, open| in_use(open) || now.duration_since(open.used) < IDLE);
        if open.len() >= MAX_SESSIONS {
            let idle = open.iter().filter(|(_, open)| !in_use(open));
            let oldest = idle.min_by_key(|(_, open)| open.used).map(|(session, _)| *session)?;
            open.remove(&oldest);
        }
        let client = Arc::default();
        open.insert(session, Open { client: Arc::clone(&client), used: now });
        Some(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions() -> Sessions {
        Sessions::new(Vec::new(), watch::channel(Cluster::default()).1, Builder::default())
    }

    #[test]
    fn a_session_is_opened_once_and_closed_when_idle() {
        let (sessions, now) = (sessions(), Instant::now());
        let first = sessions.cell(ClientId(1), now).expect("room");
        assert!(Arc::ptr_eq(&first, &sessions.cell(ClientId(1), now).expect("room")));
        let later = now + IDLE;
        sessions.cell(ClientId(2), later).expect("room");
        assert!(Arc::ptr_eq(&first, &sessions.cell(ClientId(1), later).expect("it is in use")));
        let held = Arc::downgrade(&first);
        drop(first);
        sessions.cell(ClientId(3), later + IDLE).expect("room");
        assert!(held.upgrade().is_none(), "nobody used it for a minute");
    }

    #[test]
    fn where_all_are_open_the_idle_one_gives_way_and_none_that_is_used() {
        let (sessions, now) = (sessions(), Instant::now());
        let room = |number: usize| sessions.cell(ClientId(number as u64), now);
        let mut used: Vec<_> = (1..MAX_SESSIONS).map(|it| room(it).expect("room")).collect();
        drop(room(MAX_SESSIONS).expect("room"));
        used.push(room(MAX_SESSIONS + 1).expect("the idle one gives way"));
        assert!(room(MAX_SESSIONS + 2).is_none());
        assert_eq!(used.len(), MAX_SESSIONS);
    }
}
