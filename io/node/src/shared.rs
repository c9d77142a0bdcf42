//! The state of this node's replica of one of the cluster's own groups, for other threads to look
//! into and to wait for. Whether that is the group's state, the table of groups says.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use wire::Duration;

/// One end of many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared<T>(Arc<Inside<T>>);

#[derive(Debug, Default)]
struct Inside<T> {
    held: Mutex<Held<T>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Held<T> {
    state: Arc<T>,
    /// How often there was something new to look at.
    nudges: u64,
    stopped: bool,
}

impl<T: Clone> Shared<T> {
    fn held(&self) -> MutexGuard<'_, Held<T>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present state.
    pub fn get(&self) -> Arc<T> {
        self.held().state.clone()
    }

    /// How often there was something new to look at.
    pub fn nudges(&self) -> u64 {
        self.held().nudges
    }

    /// Something has changed in the cluster.
    pub fn nudge(&self) {
        self.held().nudges += 1;
        self.0.changed.notify_all();
    }

    /// Nobody waits any more.
    pub fn stop(&self) {
        self.held().stopped = true;
        self.0.changed.notify_all();
    }

    /// Waits until there has been another number of nudges than `seen`, or for so long: how many
    /// there were; `None`: it has stopped.
    pub fn wait(&self, seen: u64, timeout: Duration) -> Option<u64> {
        let nothing = |held: &mut Held<T>| held.nudges == seen && !held.stopped;
        let waited = self.0.changed.wait_timeout_while(self.held(), timeout, nothing);
        let (held, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!held.stopped).then_some(held.nudges)
    }

    /// Waits while this is so, or for so long: whether it is still so and may be waited for once
    /// more.
    pub fn wait_while(&self, timeout: Duration, same: impl Fn(&T) -> bool) -> bool {
        let nothing = |held: &mut Held<T>| same(&held.state) && !held.stopped;
        let waited = self.0.changed.wait_timeout_while(self.held(), timeout, nothing);
        let (held, _) = waited.unwrap_or_else(PoisonError::into_inner);
        same(&held.state) && !held.stopped
    }

    /// Changes the state.
    pub fn change<A>(&self, change: impl FnOnce(&mut T) -> A) -> A {
        let mut held = self.held();
        // Readers of the old one keep it; without any, nothing is copied.
        let done = change(Arc::make_mut(&mut held.state));
        held.nudges += 1;
        self.0.changed.notify_all();
        done
    }
}
