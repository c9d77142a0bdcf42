//! The sessions of callers in other cells: each is a client of the cell of its own, as in the
//! gateway. Nothing is lost when one is closed: replicas keep replies, and the session is opened
//! anew with the next call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use client::AsyncClient;
use tokio::sync::OnceCell;
use wire::ClientId;

use crate::own::Own;

/// Sessions that one process has open.
pub(crate) const MAX_SESSIONS: usize = 1_024;

/// One without a call for so long is closed.
const IDLE: Duration = Duration::from_secs(60);

type Slot = Arc<OnceCell<AsyncClient>>;

/// The open sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    own: Own,
    open: Mutex<HashMap<ClientId, (Slot, Instant)>>,
}

impl Sessions {
    pub fn new(own: Own) -> Sessions {
        Sessions { own, open: Mutex::default() }
    }

    /// The client of a session, in use as long as the slot is held. `None`: it cannot be had.
    pub async fn client(&self, session: ClientId) -> Option<Slot> {
        let slot = self.slot(session, Instant::now())?;
        match slot.get_or_try_init(|| self.own.session(session)).await {
            Ok(_) => Some(slot),
            Err(error) => {
                tracing::warn!("a call of another cell finds no node: {error}");
                None
            }
        }
    }

    fn slot(&self, session: ClientId, now: Instant) -> Option<Slot> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((slot, used)) = open.get_mut(&session) {
            *used = now;
            return Some(slot.clone());
        }
        let in_use = |slot: &Slot| Arc::strong_count(slot) > 1;
        if open.len() >= MAX_SESSIONS {
            open.retain(|_, (slot, used)| in_use(slot) || now.duration_since(*used) < IDLE);
        }
        if open.len() >= MAX_SESSIONS {
            let idle = open.iter().filter(|(_, (slot, _))| !in_use(slot));
            let oldest = idle.min_by_key(|(_, (_, used))| *used).map(|(session, _)| *session)?;
            open.remove(&oldest);
        }
        let slot = Slot::default();
        open.insert(session, (slot.clone(), now));
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_all_are_open_an_idle_one_gives_way_and_none_that_is_used() {
        let own = Own::new(([127, 0, 0, 1], 1).into(), None);
        let (sessions, now) = (Sessions::new(own), Instant::now());
        let room = |number: usize| sessions.slot(ClientId(number as u64), now);
        let mut used: Vec<_> = (1..MAX_SESSIONS).map(|it| room(it).expect("room")).collect();
        assert!(Arc::ptr_eq(&used[0], &room(1).expect("it is there")));
        drop(room(MAX_SESSIONS).expect("room"));
        used.push(room(MAX_SESSIONS + 1).expect("the idle one gives way"));
        assert!(room(MAX_SESSIONS + 2).is_none());
        assert_eq!(used.len(), MAX_SESSIONS);
    }
}
