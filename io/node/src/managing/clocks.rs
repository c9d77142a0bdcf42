//! The processor time of replicas' threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use monitor::clock::Thread;
use wire::{Duration, GroupId, Lane};

/// One for each thread of a replica's own, by the executor of the group that it belongs to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks(Arc<Mutex<BTreeMap<GroupId, Threads>>>);

type Threads = BTreeMap<(u64, Lane), Thread>;

impl Clocks {
    /// The thread that asks runs this lane of the replica from here on, and no older executor does.
    pub fn enter(&self, group: GroupId, (serial, lane): (u64, Lane)) {
        match Thread::current() {
            Ok(thread) => {
                let mut clocks = self.lock();
                let threads = clocks.entry(group).or_default();
                threads.retain(|(other, _), _| *other >= serial);
                threads.insert((serial, lane), thread);
            }
            Err(error) => tracing::debug!(%error, "what a replica uses is not known"),
        }
    }

    /// It has ended.
    pub fn leave(&self, group: GroupId, thread: (u64, Lane)) {
        let mut clocks = self.lock();
        let Some(threads) = clocks.get_mut(&group) else { return };
        threads.remove(&thread);
        if threads.is_empty() {
            clocks.remove(&group);
        }
    }

    /// The processor time that each replica's threads have used so far.
    pub fn read(&self) -> Vec<(GroupId, Duration)> {
        let clocks = self.lock();
        let used = |threads: &Threads| {
            // One that has just ended has nothing to say.
            let mut each = threads.values().filter_map(|thread| thread.used().ok()).peekable();
            each.peek()?;
            Some(each.fold(Duration::ZERO, |sum, used| sum + used))
        };
        clocks.iter().filter_map(|(group, threads)| Some((*group, used(threads)?))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupId, Threads>> {
        // No code that can panic runs while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replicas_time_is_that_of_its_last_executors_threads() {
        let (clocks, group) = (Clocks::default(), GroupId(1));
        clocks.enter(group, (1, Lane::Alarm));
        let first = clocks.read();
        assert_eq!(first.len(), 1);
        std::thread::scope(|scope| {
            for lane in [Lane::Normal, Lane::Alarm] {
                let clocks = &clocks;
                scope.spawn(move || clocks.enter(group, (2, lane))).join().unwrap();
            }
        });
        clocks.leave(group, (1, Lane::Alarm));
        let serials: Vec<u64> = clocks.lock()[&group].keys().map(|(serial, _)| *serial).collect();
        assert_eq!(serials, [2, 2], "another has taken over");
        clocks.leave(group, (2, Lane::Normal));
        clocks.leave(group, (2, Lane::Alarm));
        assert!(clocks.read().is_empty());
    }
}
