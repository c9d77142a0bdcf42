//! The memory that calls may hold here, whoever makes them.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Calls and their bytes that are under way.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    calls: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// Calls at a time.
    most: usize,
}

/// A call's part of the budget, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: Arc<Semaphore>,
    _call: OwnedSemaphorePermit,
    held: Option<OwnedSemaphorePermit>,
}

/// There is no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spent;

impl Budget {
    pub(crate) fn new(calls: usize, bytes: usize) -> Budget {
        let (most, calls) = (calls, Arc::new(Semaphore::new(calls)));
        Budget { calls, bytes: Arc::new(Semaphore::new(bytes)), most }
    }

    /// Waits until no call has room.
    pub(crate) async fn idle(&self) {
        let all = u32::try_from(self.most).unwrap_or(u32::MAX);
        // Nobody closes it.
        let _ = self.calls.acquire_many(all).await;
    }

    /// Room for one more call, without its bytes.
    pub(crate) fn call(&self) -> Result<Held, Spent> {
        let call = self.calls.clone().try_acquire_owned().map_err(|_| Spent)?;
        Ok(Held { bytes: self.bytes.clone(), _call: call, held: None })
    }
}

impl Held {
    /// Room for more bytes of this call.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Spent> {
        let bytes = u32::try_from(bytes).map_err(|_| Spent)?;
        let more = self.bytes.clone().try_acquire_many_owned(bytes).map_err(|_| Spent)?;
        match &mut self.held {
            Some(held) => held.merge(more),
            None => self.held = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_limited_and_comes_back() {
        let budget = Budget::new(2, 10);
        let mut first = budget.call().expect("room for two");
        let mut second = budget.call().expect("room for two");
        assert_eq!(budget.call().err(), Some(Spent));
        assert_eq!(first.grow(6), Ok(()));
        assert_eq!(second.grow(5), Err(Spent));
        assert_eq!(first.grow(4), Ok(()));
        drop(first);
        assert_eq!(second.grow(10), Ok(()));
        assert!(budget.call().is_ok());
    }
}
