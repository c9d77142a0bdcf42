//! The processor time of replicas' threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use monitor::clock::Thread;
use wire::{Duration, GroupId};

/// One for each replica that has a thread of its own. Which executor of the group it is tells who
/// may take it out again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks(Arc<Mutex<BTreeMap<GroupId, (u64, Thread)>>>);

impl Clocks {
    /// The thread that asks runs this replica from here on.
    pub fn enter(&self, group: GroupId, serial: u64) {
        match Thread::current() {
            Ok(thread) => {
                self.lock().insert(group, (serial, thread));
            }
            Err(error) => tracing::debug!(%error, "what a replica uses is not known"),
        }
    }

    /// It has ended.
    pub fn leave(&self, group: GroupId, serial: u64) {
        let mut clocks = self.lock();
        if clocks.get(&group).is_some_and(|(entered, _)| *entered == serial) {
            clocks.remove(&group);
        }
    }

    /// The processor time that each has used so far.
    pub fn read(&self) -> Vec<(GroupId, Duration)> {
        let clocks = self.lock();
        // One that has just ended has nothing to say.
        clocks
            .iter()
            .filter_map(|(group, (_, thread))| Some((*group, thread.used().ok()?)))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupId, (u64, Thread)>> {
        // No code that can panic runs while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replicas_time_is_that_of_its_last_thread() {
        let (clocks, group) = (Clocks::default(), GroupId(1));
        clocks.enter(group, 1);
        let first = clocks.read();
        assert_eq!(first.len(), 1);
        std::thread::scope(|scope| {
            scope.spawn(|| clocks.enter(group, 2)).join().unwrap();
        });
        clocks.leave(group, 1);
        assert_eq!(clocks.lock()[&group].0, 2, "another has taken over");
        clocks.leave(group, 2);
        assert!(clocks.read().is_empty());
    }
}
