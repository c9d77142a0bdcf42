//! Cold passive groups: when the primary takes a checkpoint, how long a promotion takes, and whom a reply is brought to
//! (`docs/protocol/group.md`, "Cold passive").

use alloc::collections::BTreeSet;

use wire::ordered::Relay;
use wire::{Duration, GroupId, Member, Time};

use super::{Hosted, Stack};
use crate::api::{Checkpoints, Event, LogStatus};
use crate::callers::{Call, Stage};
use crate::ordering::Ordering;
use crate::session::kept;

/// After a checkpoint that could not be taken, the next is tried no sooner than this.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// What a node knows of the times of its replica of a cold passive group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ColdTimes {
    /// When it takes checkpoints as primary.
    checkpoints: Checkpoints,
    /// When the first request came that is in no checkpoint.
    waiting_since: Option<Time>,
    /// When the last checkpoint was there.
    checkpointed: Option<Time>,
    /// No checkpoint is tried before.
    not_before: Time,
    /// It is to hand over, after a checkpoint.
    pub(super) last_one: bool,
    /// Its promotion began then, and its service had the checkpoint then.
    promotion: Option<(Time, Time)>,
    /// It is primary no more, and answers what was ordered up to this place of the component.
    pub(super) finishing: u64,
}

/// Cold passive groups that have a replica here.
#[derive(Debug, Default)]
pub(super) struct ColdGroups {
    groups: BTreeSet<GroupId>,
    /// When the next checkpoint of one is due.
    due: Option<Time>,
}

impl ColdGroups {
    pub(super) fn insert(&mut self, group: GroupId) {
        self.groups.insert(group);
    }

    pub(super) fn remove(&mut self, group: GroupId) {
        self.groups.remove(&group);
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.due
    }

    fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

/// What a replica asks for that has to do with time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Milestone {
    Promoting,
    Restored,
    Replayed(u64),
    Checkpointed,
    CheckpointFailed,
}

impl Hosted {
    pub(super) fn log_status(&self) -> Option<LogStatus> {
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
    fn checkpoint_due(&mut self, now: Time) -> Option<Time> {
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

    /// As primary of a cold passive group it hands over when a last checkpoint has been taken, or could not be.
    pub(super) fn may_hand_over(&self) -> bool {
        !self.replica.has_calls() && !self.cold.last_one && self.replica.is_checkpointed()
    }
}

impl<O: Ordering> Stack<O> {
    /// When this node's replica takes checkpoints, while it is primary of a cold passive group. Nobody else need do the same.
    pub fn set_checkpoints(&mut self, now: Time, group: GroupId, checkpoints: Checkpoints) {
        if let Some(hosted) = self.hosted.get_mut(&group) {
            hosted.cold.checkpoints = checkpoints;
            self.settle(now);
        }
    }

    /// Has the checkpoints taken that are due. True if any was.
    pub(super) fn pump_checkpoints(&mut self, now: Time) -> bool {
        if self.cold.is_empty() {
            self.cold.due = None;
            return false;
        }
        let (mut ready, mut next) = (alloc::vec::Vec::new(), None);
        for id in &self.cold.groups {
            let due = self.hosted.get_mut(id).and_then(|hosted| hosted.checkpoint_due(now));
            match due {
                Some(due) if due <= now => ready.push(*id),
                due => next = next.into_iter().chain(due).min(),
            }
        }
        self.cold.due = next;
        for id in &ready {
            self.hosted.entry(*id).and_modify(|hosted| hosted.cold.last_one = false);
            self.with_replica(now, *id, |replica, effects| replica.checkpoint(effects));
        }
        !ready.is_empty()
    }

    /// A replica of a cold passive group has come that far.
    pub(super) fn reached(&mut self, now: Time, group: GroupId, milestone: Milestone) {
        let Some(hosted) = self.hosted.get_mut(&group) else { return };
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
                    self.event(Event::Promoted { group, name, requests, restore, replay });
                }
            }
            Milestone::Checkpointed => {
                times.checkpointed = Some(now);
                times.waiting_since = None;
            }
            Milestone::CheckpointFailed => times.not_before = now + TRY_AGAIN,
        }
    }

    /// This node's replica begins or ceases to run its service: those who wait here are answered by what it executes from
    /// here on, up to here, or not at all.
    pub(super) fn note_running(&mut self, id: GroupId, before: (bool, bool)) {
        let place = self.progress.delivered();
        let Some(hosted) = self.hosted.get_mut(&id) else { return };
        let after = (hosted.replica.runs(), hosted.replica.is_finishing());
        match (before, after) {
            // What its checkpoint has in it is answered to whoever asks anew.
            ((false, _), (true, _)) => self.park_unanswered(id, 0),
            ((true, false), (true, true)) => hosted.cold.finishing = place,
            _ => {}
        }
    }

    /// Calls that were delivered after this place and have no outcome begin anew.
    pub(super) fn park_unanswered(&mut self, id: GroupId, after: u64) {
        for call in self.clients.callers.of_group(id) {
            let unanswered = self.clients.callers.get(&call).is_some_and(|waiting| {
                let delivered =
                    matches!(waiting.stage, Stage::Delivered { sequence } if sequence > after);
                delivered && waiting.outcome.is_none()
            });
            if unanswered {
                self.clients.callers.park(&call);
            }
        }
    }

    /// Another is primary of a cold passive group: what it is told to relay is not what the one before was.
    pub(super) fn park_relayed(&mut self, id: GroupId) {
        let Some(hosted) = self.hosted.get(&id) else { return };
        let after = if hosted.replica.is_finishing() { hosted.cold.finishing } else { 0 };
        self.park_unanswered(id, after);
    }

    /// Whether what is executed here answers this call in a new component, or something has answered it.
    pub(super) fn is_answered_here(&self, call: &Call) -> bool {
        let answers = self.hosted.get(&call.0).is_some_and(|hosted| hosted.replica.answers_all());
        answers || self.clients.callers.get(call).is_some_and(|waiting| waiting.outcome.is_some())
    }

    /// A request found no room in the log: whoever waits for it here has it ordered again when there may be some.
    pub(super) fn unplaced(&mut self, now: Time, call: Call) {
        if self.clients.callers.get(&call).is_some() {
            self.clients.callers.park(&call);
            self.clients.callers.order_later(&call, now + self.clients.retry_after(1));
        }
    }

    /// A cold passive group's primary answers a call that this node may have had ordered.
    pub(super) fn act_on_relay(&mut self, sender: Member, relay: Relay) {
        let Relay { group, since, client, number, reply } = relay;
        if sender == self.me || !self.directory.reigns(group, sender, since) {
            return;
        }
        let call = (group, client, number);
        self.clients.callers.delivered(&call, self.progress.delivered());
        self.answer(call, kept(reply));
    }
}
