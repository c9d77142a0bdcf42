//! The memory that calls may hold here, whoever makes them.
//!
//! One connection holds at most as many places and bytes as are left for all others. So a few that
//! take all they can leave room for the rest, and one alone has half.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Calls and their bytes that are under way.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    /// Calls at a time.
    most: usize,
    free: Mutex<Amount>,
    /// Told when no call is under way.
    idle: Notify,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    calls: usize,
    bytes: usize,
}

/// All that one connection holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share(Arc<Mutex<Amount>>);

/// A call's part of the budget, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    pool: Arc<Pool>,
    share: Share,
    own: Amount,
}

/// There is no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spent;

impl Budget {
    pub(crate) fn new(calls: usize, bytes: usize) -> Budget {
        let free = Mutex::new(Amount { calls, bytes });
        Budget(Arc::new(Pool { most: calls, free, idle: Notify::new() }))
    }

    /// Waits until no call has a place.
    pub(crate) async fn idle(&self) {
        loop {
            let told = self.0.idle.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if lock(&self.0.free).calls == self.0.most {
                return;
            }
            told.await;
        }
    }

    /// The part of a call that has yet to come: its bytes count, and it has no place.
    pub(crate) fn hold(&self, share: &Share) -> Held {
        Held { pool: self.0.clone(), share: share.clone(), own: Amount::default() }
    }
}

impl Held {
    /// Room for more bytes of this call.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Spent> {
        self.take(Amount { calls: 0, bytes })
    }

    /// A place: the call has come.
    pub(crate) fn enter(&mut self) -> Result<(), Spent> {
        self.take(Amount { calls: 1, bytes: 0 })
    }

    fn take(&mut self, more: Amount) -> Result<(), Spent> {
        let (mut free, mut share) = (lock(&self.pool.free), lock(&self.share.0));
        let fits = |more: usize, held: usize, free: usize| more == 0 || held + more <= free;
        let is_room =
            fits(more.calls, share.calls, free.calls) && fits(more.bytes, share.bytes, free.bytes);
        if !is_room {
            return Err(Spent);
        }
        for held in [&mut *share, &mut self.own] {
            held.calls += more.calls;
            held.bytes += more.bytes;
        }
        free.calls -= more.calls;
        free.bytes -= more.bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (mut free, mut share) = (lock(&self.pool.free), lock(&self.share.0));
        share.calls -= self.own.calls;
        share.bytes -= self.own.bytes;
        free.calls += self.own.calls;
        free.bytes += self.own.bytes;
        if free.calls == self.pool.most {
            self.pool.idle.notify_waiters();
        }
    }
}

fn lock(amount: &Mutex<Amount>) -> MutexGuard<'_, Amount> {
    amount.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_limited_and_comes_back() {
        let budget = Budget::new(2, 10);
        let call = || {
            let mut held = budget.hold(&Share::default());
            held.enter().map(|()| held)
        };
        let (mut first, mut second) = (call().expect("room"), call().expect("room"));
        assert_eq!(call().err(), Some(Spent));
        assert_eq!(first.grow(6), Ok(()));
        assert_eq!(second.grow(5), Err(Spent));
        assert_eq!(second.grow(4), Ok(()));
        drop(first);
        assert!(call().is_ok());
        assert_eq!(second.grow(1), Ok(()));
    }

    #[test]
    fn few_connections_that_take_all_they_can_leave_room_for_others() {
        let budget = Budget::new(4096, 256 << 20);
        let greedy: Vec<Share> = (0..17).map(|_| Share::default()).collect();
        let mut taken = Vec::new();
        for share in greedy.iter().cycle().take(17 * 256) {
            let mut held = budget.hold(share);
            if held.enter().is_ok() && held.grow(64 << 10).is_ok() {
                taken.push(held);
            }
        }
        assert!(taken.len() > 3000, "{} places are in use", taken.len());
        let modest = Share::default();
        let calls = (0..100).map(|_| {
            let mut held = budget.hold(&modest);
            held.grow(1 << 10).and_then(|()| held.enter()).map(|()| held)
        });
        assert!(calls.collect::<Result<Vec<_>, _>>().is_ok());
    }

    #[test]
    fn one_connection_alone_has_half() {
        let budget = Budget::new(100, 1000);
        let share = Share::default();
        let call = || {
            let mut held = budget.hold(&share);
            held.enter().map(|()| held)
        };
        let taken: Vec<Held> = std::iter::from_fn(|| call().ok()).collect();
        assert_eq!(taken.len(), 50);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_last_call_that_ends_is_waited_for() {
        let budget = Budget::new(2, 10);
        let share = Share::default();
        let (mut first, mut waits) = (budget.hold(&share), budget.hold(&share));
        assert_eq!(first.enter(), Ok(()));
        assert_eq!(waits.grow(1), Ok(()));
        let idle = budget.idle();
        tokio::pin!(idle);
        tokio::select! {
            biased;
            () = &mut idle => panic!("a call is under way"),
            () = std::future::ready(()) => {}
        }
        drop(first);
        idle.await;
    }
}
