//! Replicas that are out of their groups because their services were hung: what hangs is ended
//! where that can be done, and another takes its place (`docs/protocol/hung.md`).

use wire::limits::MAX_STUCK;
use wire::{GroupId, Time};

use super::replicas::Hosting;

impl Hosting<'_> {
    /// A program is ended, and its supervisor starts it again. A thread cannot be ended: the node
    /// goes on beside it, with another.
    pub fn replace(&mut self, now: Time, group: GroupId) {
        self.counters.replicas_hung += 1;
        let Some(mut executor) = self.replicas.remove(group) else { return };
        if let Some(process) = executor.process() {
            process.tether().hung();
            process.dismiss("it was hung: it missed the deadlines of its calls".into());
            return;
        }
        self.replicas.stuck.retain(|thread| thread.strong_count() > 0);
        self.replicas.stuck.extend(executor.thread());
        if self.replicas.stuck.len() > MAX_STUCK {
            tracing::error!(%group, "too many hung threads are left behind: the replica is not hosted again before the node is restarted");
            return;
        }
        match executor.anew() {
            Some(Ok((name, options, executor))) => {
                tracing::warn!(%group, "the service begins anew in another thread; the hung one is left behind");
                self.attach(now, name, options, executor);
            }
            Some(Err(error)) => {
                tracing::error!(%group, %error, "no thread can be had for the replica")
            }
            None => {}
        }
    }
}
