//! Promotions, checkpoints and calls of a cold passive group.

use wire::{GroupId, Time};

use super::{Milestone, TRY_AGAIN};
use crate::api::{Checkpoints, Event, LogStatus};
use crate::callers::Call;
use crate::ordering::Ordering;
use crate::replicas::ReplicaHandler;
use crate::replicas::hosted::Hosted;

impl Hosted {
    pub(crate) fn log_status(&self) -> Option<LogStatus> {
        let log = self.replica.log_size()?;
        Some(LogStatus {
            requests: log.requests,
            bytes: log.bytes,
            checkpoint_bytes: log.checkpoint,
            checkpointed: self.cold.checkpointed,
            runs: self.replica.runs(),
        })
    }

    /// When its next checkpoint is due, `now` or later. `None`: it may take none, or needs none.
    pub(crate) fn checkpoint_due(&mut self, now: Time) -> Option<Time> {
        let log = self.replica.log_size()?;
        if log.requests == 0 {
            self.cold.waiting_since = None;
            self.cold.last_one = false;
            return None;
        }
        let since = *self.cold.waiting_since.get_or_insert(now);
        if !self.replica.may_checkpoint() {
            return None;
        }
        let Checkpoints { requests, bytes, interval } = self.cold.checkpoints;
        let full =
            log.requests >= requests || log.bytes >= bytes || log.crowded || self.cold.last_one;
        let due = if full { now } else { since + interval };
        Some(due.max(self.cold.not_before))
    }

    /// As primary of a cold passive group it hands over when a last checkpoint has been taken, or
    /// could not be.
    pub(crate) fn may_hand_over(&self) -> bool {
        !self.replica.has_calls() && !self.cold.last_one && self.replica.is_checkpointed()
    }
}

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// A replica of a cold passive group has come that far.
    pub(crate) fn reached(&mut self, now: Time, group: GroupId, milestone: Milestone) {
        let Some(hosted) = self.replicas.hosted.get_mut(&group) else { return };
        let times = &mut hosted.cold;
        match milestone {
            Milestone::Promoting => times.promotion = Some((now, now)),
            Milestone::Restored => {
                if let Some((_, restored)) = &mut times.promotion {
                    *restored = now;
                }
            }
            Milestone::Replayed(requests) => {
                if let Some((begun, restored)) = times.promotion.take() {
                    let name = hosted.name.clone();
                    let (restore, replay) = (restored.since(begun), now.since(restored));
                    self.base.event(Event::Promoted { group, name, requests, restore, replay });
                }
            }
            Milestone::Checkpointed => {
                times.checkpointed = Some(now);
                times.waiting_since = None;
            }
            Milestone::CheckpointFailed => times.not_before = now + TRY_AGAIN,
        }
    }

    /// This node's replica begins or ceases to run its service. Waiting clients are answered from
    /// the executions after this place, or from those up to it, or not at all.
    pub(crate) fn note_running(&mut self, id: GroupId, before: (bool, bool)) {
        let place = self.base.progress.delivered();
        let Some(hosted) = self.replicas.hosted.get_mut(&id) else { return };
        let after = (hosted.replica.runs(), hosted.replica.is_finishing());
        match (before, after) {
            // Requests in its checkpoint are answered when their clients retry.
            ((false, _), (true, _)) => self.replies().park_unanswered(id, 0),
            ((true, false), (true, true)) => hosted.cold.finishing = place,
            _ => {}
        }
    }

    /// A cold passive group has another primary, with other requests to relay than the last one's.
    pub(crate) fn park_relayed(&mut self, id: GroupId) {
        let Some(hosted) = self.replicas.hosted.get(&id) else { return };
        let after = if hosted.replica.is_finishing() { hosted.cold.finishing } else { 0 };
        self.replies().park_unanswered(id, after);
    }

    /// Whether what is executed here answers this call in a new component, or something has
    /// answered it.
    pub(crate) fn is_answered_here(&self, call: &Call) -> bool {
        let answers =
            self.replicas.hosted.get(&call.0).is_some_and(|hosted| hosted.replica.answers_all());
        answers
            || self
                .replies
                .clients
                .callers
                .get(call)
                .is_some_and(|waiting| waiting.outcome.is_some())
    }
}
