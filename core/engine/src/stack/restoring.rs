//! Groups that begin with a state from a file (`docs/protocol/backup.md`).
//!
//! The node that was asked keeps the state, and orders that the group begins with it. From that place on the table says so, and who has it;
//! the group's replicas wait for it as for any transfer, and this node gives it to all of them at once.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::{MAX_DEPOSITS, MAX_DEPOSITS_BYTES, MAX_NAME, STATE_CHUNK};
use wire::ordered::{
    BackupStep, Deposit, Form, GroupOptions, LoggedState, Ordered, StateChunk, Style,
};
use wire::system::is_system;
use wire::{Duration, GroupId, Member, RingId, Time, ViewNumber};

use super::Stack;
use crate::api::{DiscardError, Event, Output, Restore, RestoreError};
use crate::directory::{Change, DepositRefused, Group, State};
use crate::ordering::Ordering;
use crate::style::Conduct;

/// Whoever asked for a restore hears of it within this time.
const RESTORE_PATIENCE: Duration = Duration::from_secs(10);

/// A state that this node was asked to restore.
pub(super) struct Restoring {
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

impl<O: Ordering> Stack<O> {
    /// Has a group begin with a state. The outcome comes as [`Output::Restored`], at once or within some seconds.
    ///
    /// # Errors
    /// No group can have that name; or a restore of this group, or too many of others, were asked for at this node and are not over.
    pub fn restore(&mut self, now: Time, restore: Restore) -> Result<(), RestoreError> {
        let name = &restore.name;
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(RestoreError::Name(name.len()));
        }
        if is_system(name) {
            return Err(RestoreError::System);
        }
        let id = GroupId::of(name);
        if self.wishes.backups.restores.contains_key(&id) {
            return Err(RestoreError::UnderWay);
        }
        let bytes: usize =
            self.wishes.backups.restores.values().map(|it| it.restore.state.len()).sum();
        let full = bytes > 0 && bytes + restore.state.len() > MAX_DEPOSITS_BYTES;
        if self.wishes.backups.restores.len() >= MAX_DEPOSITS || full {
            return Err(RestoreError::TooMany);
        }
        let (number, until) = (self.random.next_u64(), Some(now + RESTORE_PATIENCE));
        let restoring =
            Restoring { restore, number, until, asked: None, refused: None, giving: None };
        self.wishes.backups.restores.insert(id, restoring);
        self.settle(now);
        Ok(())
    }

    /// Has a group that waits for a state begin without, whoever was to give it. A replica that is there begins with its service's
    /// initial state; a group without any is gone.
    ///
    /// # Errors
    /// Groups do not act here, or this one waits for none.
    pub fn discard(&mut self, now: Time, group: GroupId) -> Result<(), DiscardError> {
        if !self.membership.is_active() {
            return Err(DiscardError::NoQuorum);
        }
        let waits = self.directory.get(group).and_then(Group::depositor);
        let Deposit { number, .. } = waits.ok_or(DiscardError::Nothing)?;
        self.order(now, Ordered::Backup(BackupStep::Discard { group, number }));
        self.settle(now);
        Ok(())
    }

    /// Orders what can be ordered, and ends what is over. True if there was anything to do.
    pub(super) fn pump_restores(&mut self, now: Time) -> bool {
        let ids: Vec<GroupId> = self.wishes.backups.restores.keys().copied().collect();
        let mut any = false;
        for id in ids {
            any |= self.pump_restore(now, id);
        }
        any
    }

    fn pump_restore(&mut self, now: Time, id: GroupId) -> bool {
        let until = self.wishes.backups.restores[&id].until;
        match self.restore_outlook(id) {
            Outlook::Over(outcome) => {
                self.wishes.backups.restores.remove(&id);
                self.tell_restored(id, until, outcome);
                true
            }
            Outlook::Waits(view) => {
                let held = self.is_held(id, self.records.changed_at(id));
                if until.is_some() && held {
                    self.wishes
                        .backups
                        .restores
                        .entry(id)
                        .and_modify(|restoring| restoring.until = None);
                    self.tell_restored(id, until, Ok(view));
                }
                self.give_deposit(now, id) || (until.is_some() && held)
            }
            Outlook::Ready | Outlook::Wait if until.is_some_and(|until| now >= until) => {
                self.wishes.backups.restores.remove(&id);
                self.tell_restored(id, until, Err(RestoreError::Late));
                true
            }
            Outlook::Ready => self.order_deposit(now, id),
            Outlook::Wait => false,
        }
    }

    fn tell_restored(
        &mut self,
        group: GroupId,
        until: Option<Time>,
        outcome: Result<ViewNumber, RestoreError>,
    ) {
        if until.is_some() {
            self.outputs.push(Output::Restored { group, outcome });
        }
    }

    fn restore_outlook(&self, id: GroupId) -> Outlook {
        let restoring = &self.wishes.backups.restores[&id];
        if self.membership.is_minority() && restoring.until.is_some() {
            return Outlook::Over(Err(RestoreError::NoQuorum));
        }
        if !self.membership.is_active() {
            return Outlook::Wait;
        }
        if let Some(error) = &restoring.refused {
            return Outlook::Over(Err(error.clone()));
        }
        let group = self.directory.get(id);
        match group.filter(|group| group.is_from(restoring.number)) {
            Some(group) if group.depositor().is_some() => Outlook::Waits(group.view),
            // What is not effective yet may be void: then it is given once more.
            Some(_) if !self.membership.is_effective() => Outlook::Wait,
            Some(group) => Outlook::Over(Ok(group.view)),
            None if restoring.until.is_none() => Outlook::Over(Err(RestoreError::Replaced)),
            None => Outlook::Ready,
        }
    }

    /// Orders it, once on each ring.
    fn order_deposit(&mut self, now: Time, id: GroupId) -> bool {
        let ring = self.membership.ring();
        let Some(restoring) = self.wishes.backups.restores.get_mut(&id) else { return false };
        if restoring.asked == Some(ring) {
            return false;
        }
        restoring.asked = Some(ring);
        let Restore { name, options, form, replace, .. } = &restoring.restore;
        let (name, options, form, replace) = (name.clone(), *options, *form, *replace);
        let number = restoring.number;
        let step = BackupStep::Deposit { name, options, form, number, replace };
        self.order(now, Ordered::Backup(step));
        true
    }

    /// A step of a save or of a restore, at its place in the order.
    pub(super) fn act_on_backup(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        step: BackupStep,
    ) {
        match step {
            BackupStep::Save { group, number } => {
                self.act_on_save(now, sender, sequence, (group, number));
            }
            BackupStep::Deposit { name, options, form, number, replace } => {
                let deposit = Deposit { holder: sender, number, form, pending: true };
                self.act_on_deposit(now, sequence, (name, options), (deposit, replace));
            }
            BackupStep::Discard { group, number } => {
                let before = self.directory.get(group).cloned();
                let change = self.directory.discard(group, number);
                if let Some(before) = before.filter(|_| change == Change::Removed) {
                    self.note_gone(group, before);
                }
                self.changed(now, group, change);
            }
        }
    }

    fn act_on_deposit(
        &mut self,
        now: Time,
        sequence: u64,
        (name, options): (String, GroupOptions),
        (deposit, replace): (Deposit, bool),
    ) {
        let id = GroupId::of(&name);
        let (holder, number) = (deposit.holder, deposit.number);
        let known = self.directory.get(id);
        if known.is_some_and(|group| group.is_from(number)) {
            return; // it was ordered twice, and has been taken
        }
        let style = known.map_or(options.style, |group| group.options.style);
        let replaced = known.is_some_and(|group| group.primary().is_some());
        let place = self.place(sequence);
        if let Err(refused) = self.directory.deposit((&name, options), deposit, place, replace) {
            return self.deposit_refused(id, deposit, refused, style);
        }
        // Of what it was called before nobody has anything any more.
        self.votes.forget(id);
        self.clients.callers.of_group(id).iter().for_each(|call| self.clients.callers.park(call));
        let view = self.directory.get(id).map_or(ViewNumber(0), |group| group.view);
        self.event(Event::Deposited { group: id, name, holder, replaced, view });
        self.changed(now, id, Change::View);
        if holder == self.me
            && self.wishes.backups.restores.get(&id).is_none_or(|it| it.number != number)
        {
            // Nobody waited for it any more.
            self.order(now, Ordered::Backup(BackupStep::Discard { group: id, number }));
        }
    }

    fn deposit_refused(
        &mut self,
        id: GroupId,
        deposit: Deposit,
        refused: DepositRefused,
        style: Style,
    ) {
        let Some(restoring) = self.wishes.backups.restores.get_mut(&id) else { return };
        if deposit.holder != self.me || restoring.number != deposit.number {
            return;
        }
        restoring.refused = Some(match refused {
            DepositRefused::Lives => RestoreError::Lives,
            DepositRefused::Apart => RestoreError::Apart { form: deposit.form, style },
            DepositRefused::Full => RestoreError::Full,
        });
    }

    /// Begins to give the state to those who wait for it, unless it is on its way to them.
    fn give_deposit(&mut self, now: Time, id: GroupId) -> bool {
        let Some(group) = self.directory.get(id) else { return false };
        let waiting = group.replicas.iter().find_map(|replica| match replica.state {
            State::Unsynced { transfer, .. } => Some((transfer, replica.member)),
            State::Synced => None,
        });
        let logs = group.options.style.logs();
        let Some((transfer, to)) = waiting else { return false };
        let Some(restoring) = self.wishes.backups.restores.get_mut(&id) else { return false };
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
        self.event(Event::TransferStarted { group: id, to });
        self.order(now, Ordered::StateChunk(first));
        true
    }

    /// A piece of a state is delivered: if it is of a deposit of this node, the next follows.
    pub(super) fn deposit_chunk(&mut self, now: Time, sender: Member, chunk: &StateChunk) {
        let id = chunk.group;
        let Some(restoring) =
            self.wishes.backups.restores.get_mut(&id).filter(|_| sender == self.me)
        else {
            return;
        };
        let sent = |giving: &&mut Giving| {
            giving.transfer == chunk.transfer && giving.next == chunk.index && !chunk.last
        };
        let Some(giving) = restoring.giving.as_mut().filter(sent) else { return };
        giving.next += 1;
        let next = giving.chunk(id);
        self.order(now, Ordered::StateChunk(next));
    }
}

impl Restoring {
    /// Until when whoever asked for it waits.
    pub(super) fn until(&self) -> Option<Time> {
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
