//! When checkpoints are taken.

use wire::Time;

use crate::groups::GroupHandler;
use crate::ordering::Ordering;

impl<O: Ordering> GroupHandler<'_, O> {
    /// Takes the checkpoints that are due. True if any was.
    pub(crate) fn pump_checkpoints(&mut self, now: Time) -> bool {
        if self.groups.cold.is_empty() {
            self.groups.cold.due = None;
            return false;
        }
        let (mut ready, mut next) = (alloc::vec::Vec::new(), None);
        for id in &self.groups.cold.groups {
            let due =
                self.replicas.hosted.get_mut(id).and_then(|hosted| hosted.checkpoint_due(now));
            match due {
                Some(due) if due <= now => ready.push(*id),
                due => next = next.into_iter().chain(due).min(),
            }
        }
        self.groups.cold.due = next;
        for id in &ready {
            self.replicas.hosted.entry(*id).and_modify(|hosted| hosted.cold.last_one = false);
            self.replicas().with_replica(now, *id, |replica, effects| replica.checkpoint(effects));
        }
        !ready.is_empty()
    }
}
