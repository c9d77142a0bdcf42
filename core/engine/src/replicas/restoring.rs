//! Groups that begin with a state from a file (`docs/protocol/backup.md`).
//!
//! The node that was asked keeps the state, and orders that the group begins with it. From that place on the table says so, and who has it;
//! the group's replicas wait for it as for any transfer, and this node gives it to all of them at once.

use crate::api::Output;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::STATE_CHUNK;
use wire::ordered::{BackupStep, Deposit, Form, LoggedState, Ordered, StateChunk, Style};
use wire::{Duration, GroupId, Member, RingId, Time, ViewNumber};

use crate::api::{Event, Restore, RestoreError};
use crate::base::Base;
use crate::directory::{DepositRefused, State};
use crate::ordering::Ordering;
use crate::replicas::{ReplicaHandler, Replicas};
use crate::style::Conduct;

/// Whoever asked for a restore hears of it within this time.
const RESTORE_PATIENCE: Duration = Duration::from_secs(10);

/// A state that this node was asked to restore.
pub(crate) struct Restoring {
    restore: Restore,
    number: u64,
    /// Whoever asked waits until then; no more once he was told.
    until: Option<Time>,
    /// Where it was ordered last: on a ring that ended it may be lost.
    asked: Option<RingId>,
    /// It had its place in the order here, and was void.
    refused: Option<RestoreError>,
    giving: Option<Giving>,
}

/// The state on its way to whoever waits for this transfer.
struct Giving {
    transfer: ViewNumber,
    state: Bytes,
    next: u32,
}

/// How it stands with a state that is here.
enum Outlook {
    /// The group does not wait for it.
    Over(Result<ViewNumber, RestoreError>),
    /// The group waits for it.
    Waits(ViewNumber),
    /// It can be ordered.
    Ready,
    /// Groups do not act now.
    Wait,
}

impl Restoring {
    /// A state that somebody brings now.
    pub(crate) fn asked(restore: Restore, number: u64, now: Time) -> Restoring {
        let until = Some(now + RESTORE_PATIENCE);
        Restoring { restore, number, until, asked: None, refused: None, giving: None }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The bytes of the state.
    pub(crate) fn size(&self) -> usize {
        self.restore.state.len()
    }

    /// Until when whoever asked for it waits.
    pub(crate) fn until(&self) -> Option<Time> {
        self.until
    }
}

impl Giving {
    fn chunk(&self, group: GroupId) -> StateChunk {
        let start = self.next as usize * STATE_CHUNK;
        let end = (start + STATE_CHUNK).min(self.state.len());
        StateChunk {
            group,
            transfer: self.transfer,
            index: self.next,
            last: end == self.state.len(),
            bytes: self.state.slice(start..end),
        }
    }
}

/// A state as what a cold passive group begins with: a checkpoint, and nothing behind it.
fn as_checkpoint(state: &Bytes) -> Bytes {
    let (log, ends) = (Vec::new(), Vec::new());
    let (proven, poisoned) = (0, Vec::new());
    LoggedState { logged: 0, cut: 0, proven, poisoned, checkpoint: state.clone(), log, ends }
        .encode()
}

impl<O: Ordering> ReplicaHandler<'_, O> {
    fn tell_restored(
        &mut self,
        group: GroupId,
        until: Option<Time>,
        outcome: Result<ViewNumber, RestoreError>,
    ) {
        if until.is_some() {
            self.base.outputs.push(Output::Restored { group, outcome });
        }
    }

    /// Orders what can be ordered, and ends what is over. True if there was anything to do.
    pub(crate) fn pump_restores(&mut self, now: Time) -> bool {
        let ids: Vec<GroupId> = self.replicas.backups.restores.keys().copied().collect();
        let mut any = false;
        for id in ids {
            any |= self.pump_restore(now, id);
        }
        any
    }

    pub(crate) fn pump_restore(&mut self, now: Time, id: GroupId) -> bool {
        let until = self.replicas.backups.restores[&id].until;
        match self.replicas.restore_outlook(self.base, id) {
            Outlook::Over(outcome) => {
                self.replicas.backups.restores.remove(&id);
                self.tell_restored(id, until, outcome);
                true
            }
            Outlook::Waits(view) => {
                let held = self.base.is_held(id, self.base.records.changed_at(id));
                if until.is_some() && held {
                    self.replicas
                        .backups
                        .restores
                        .entry(id)
                        .and_modify(|restoring| restoring.until = None);
                    self.tell_restored(id, until, Ok(view));
                }
                self.give_deposit(now, id) || (until.is_some() && held)
            }
            Outlook::Ready | Outlook::Wait if until.is_some_and(|until| now >= until) => {
                self.replicas.backups.restores.remove(&id);
                self.tell_restored(id, until, Err(RestoreError::Late));
                true
            }
            Outlook::Ready => self.order_deposit(now, id),
            Outlook::Wait => false,
        }
    }

    /// Orders it, once on each ring.
    pub(crate) fn order_deposit(&mut self, now: Time, id: GroupId) -> bool {
        let ring = self.base.membership.ring();
        let Some(restoring) = self.replicas.backups.restores.get_mut(&id) else { return false };
        if restoring.asked == Some(ring) {
            return false;
        }
        restoring.asked = Some(ring);
        let Restore { name, options, form, replace, .. } = &restoring.restore;
        let (name, options, form, replace) = (name.clone(), *options, *form, *replace);
        let number = restoring.number;
        let step = BackupStep::Deposit { name, options, form, number, replace };
        self.base.order(now, Ordered::Backup(step));
        true
    }

    pub(crate) fn deposit_refused(
        &mut self,
        id: GroupId,
        deposit: Deposit,
        refused: DepositRefused,
        style: Style,
    ) {
        let Some(restoring) = self.replicas.backups.restores.get_mut(&id) else { return };
        if deposit.holder != self.base.me || restoring.number != deposit.number {
            return;
        }
        restoring.refused = Some(match refused {
            DepositRefused::Lives => RestoreError::Lives,
            DepositRefused::Apart => RestoreError::Apart { form: deposit.form, style },
            DepositRefused::Full => RestoreError::Full,
        });
    }

    /// Begins to give the state to those who wait for it, unless it is on its way to them.
    pub(crate) fn give_deposit(&mut self, now: Time, id: GroupId) -> bool {
        let Some(group) = self.base.directory.get(id) else { return false };
        let waiting = group.replicas.iter().find_map(|replica| match replica.state {
            State::Unsynced { transfer, .. } => Some((transfer, replica.member)),
            State::Synced => None,
        });
        let logs = group.options.style.logs();
        let Some((transfer, to)) = waiting else { return false };
        let Some(restoring) = self.replicas.backups.restores.get_mut(&id) else { return false };
        if restoring.giving.as_ref().is_some_and(|giving| giving.transfer == transfer) {
            return false;
        }
        let Restore { form, state, .. } = &restoring.restore;
        let state = match (form, logs) {
            (Form::State, true) => as_checkpoint(state),
            _ => state.clone(),
        };
        let giving = Giving { transfer, state, next: 0 };
        let first = giving.chunk(id);
        restoring.giving = Some(giving);
        self.base.event(Event::TransferStarted { group: id, to });
        self.base.order(now, Ordered::StateChunk(first));
        true
    }

    /// A piece of a state is delivered: if it is of a deposit of this node, the next follows.
    pub(crate) fn deposit_chunk(&mut self, now: Time, sender: Member, chunk: &StateChunk) {
        let id = chunk.group;
        let Some(restoring) =
            self.replicas.backups.restores.get_mut(&id).filter(|_| sender == self.base.me)
        else {
            return;
        };
        let sent = |giving: &&mut Giving| {
            giving.transfer == chunk.transfer && giving.next == chunk.index && !chunk.last
        };
        let Some(giving) = restoring.giving.as_mut().filter(sent) else { return };
        giving.next += 1;
        let next = giving.chunk(id);
        self.base.order(now, Ordered::StateChunk(next));
    }
}

impl Replicas {
    fn restore_outlook<O: Ordering>(&self, base: &Base<O>, id: GroupId) -> Outlook {
        let restoring = &self.backups.restores[&id];
        if base.membership.is_minority() && restoring.until.is_some() {
            return Outlook::Over(Err(RestoreError::NoQuorum));
        }
        if !base.membership.is_active() {
            return Outlook::Wait;
        }
        if let Some(error) = &restoring.refused {
            return Outlook::Over(Err(error.clone()));
        }
        let group = base.directory.get(id);
        match group.filter(|group| group.is_from(restoring.number)) {
            Some(group) if group.depositor().is_some() => Outlook::Waits(group.view),
            // What is not effective yet may be void: then it is given once more.
            Some(_) if !base.membership.is_effective() => Outlook::Wait,
            Some(group) => Outlook::Over(Ok(group.view)),
            None if restoring.until.is_none() => Outlook::Over(Err(RestoreError::Replaced)),
            None => Outlook::Ready,
        }
    }
}
