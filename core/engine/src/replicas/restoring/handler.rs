//! States are given where that is ordered.

use alloc::vec::Vec;

use wire::ordered::{BackupStep, Deposit, Form, Ordered, StateChunk, StateDeclined, Style};
use wire::{GroupId, Member, Payload, Time, ViewNumber};

use super::{Outlook, as_checkpoint};
use crate::api::{Event, Output, Restore, RestoreError};
use crate::base::Base;
use crate::directory::{DepositRefused, State};
use crate::ordering::Ordering;
use crate::outgoing::{Outgoing, Step};
use crate::replicas::{ReplicaHandler, Replicas};
use crate::style::StyleRules;

impl Replicas {
    /// The deposit of this node that is given by this transfer.
    pub(crate) fn deposit_offered(&self, id: GroupId, transfer: ViewNumber) -> Option<&Payload> {
        let giving = self.backups.restores.get(&id)?.giving.as_ref()?;
        (giving.transfer() == transfer).then(|| giving.state())
    }

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
            // A component that is not effective yet may be void; the state is then given once more.
            Some(_) if !base.membership.is_effective() => Outlook::Wait,
            Some(group) => Outlook::Over(Ok(group.view)),
            None if restoring.until.is_none() => Outlook::Over(Err(RestoreError::Replaced)),
            None => Outlook::Ready,
        }
    }
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
        if self.replicas.backups.restores.is_empty() {
            return false;
        }
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
        if restoring.giving.as_ref().is_some_and(|giving| giving.transfer() == transfer) {
            return false;
        }
        let Restore { form, state, .. } = &restoring.restore;
        let state = match (form, logs) {
            (Form::State, true) => as_checkpoint(state),
            _ => state.clone().into(),
        };
        let (giving, first) = Outgoing::begin(id, transfer, state, self.base.streamed);
        restoring.giving = Some(giving);
        self.base.event(Event::TransferStarted { group: id, to });
        self.base.order(now, first);
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
        let Some(giving) = &mut restoring.giving else { return };
        if let Step::Next(next) = giving.delivered(chunk) {
            self.base.order(now, next);
        }
    }

    /// A replica could not fetch a deposit of this node.
    pub(crate) fn deposit_declined(&mut self, now: Time, declined: StateDeclined) {
        let restoring = self.replicas.backups.restores.get_mut(&declined.group);
        let giving = restoring.and_then(|restoring| restoring.giving.as_mut());
        if let Some(first) = giving.and_then(|giving| giving.declined(declined.transfer)) {
            self.base.order(now, first);
        }
    }
}
