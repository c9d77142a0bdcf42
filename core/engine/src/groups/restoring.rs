//! States that are handed to groups, at their place in the order.

use alloc::string::String;

use wire::ordered::{BackupStep, Deposit, GroupOptions, Ordered};
use wire::{GroupId, Member, Time, ViewNumber};

use crate::api::Event;
use crate::directory::Change;
use crate::groups::GroupHandler;
use crate::ordering::Ordering;

impl<O: Ordering> GroupHandler<'_, O> {
    /// A step of a save or of a restore, at its place in the order.
    pub(crate) fn act_on_backup(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        step: BackupStep,
    ) {
        match step {
            BackupStep::Save { group, number } => {
                self.replicas().act_on_save(now, sender, sequence, (group, number));
            }
            BackupStep::Deposit { name, options, form, number, replace } => {
                let deposit = Deposit { holder: sender, number, form, pending: true };
                self.act_on_deposit(now, sequence, (name, options), (deposit, replace));
            }
            BackupStep::Discard { group, number } => {
                let before = self.base.directory.get(group).cloned();
                let change = self.base.directory.discard(group, number);
                if let Some(before) = before.filter(|_| change == Change::Removed) {
                    self.base.note_gone(group, before);
                }
                self.changed(now, group, change);
            }
        }
    }

    pub(crate) fn act_on_deposit(
        &mut self,
        now: Time,
        sequence: u64,
        (name, options): (String, GroupOptions),
        (deposit, replace): (Deposit, bool),
    ) {
        let id = GroupId::of(&name);
        let (holder, number) = (deposit.holder, deposit.number);
        let known = self.base.directory.get(id);
        if known.is_some_and(|group| group.is_from(number)) {
            return; // it was ordered twice, and has been taken
        }
        let style = known.map_or(options.style, |group| group.options.style);
        let replaced = known.is_some_and(|group| group.primary().is_some());
        let place = self.base.place(sequence);
        if let Err(refused) = self.base.directory.deposit((&name, options), deposit, place, replace)
        {
            return self.replicas().deposit_refused(id, deposit, refused, style);
        }
        // The deposit replaces all earlier calls of the group.
        self.replicas.votes.forget(id);
        self.replies
            .clients
            .callers
            .of_group(id)
            .iter()
            .for_each(|call| self.replies.clients.callers.park(call));
        let view = self.base.directory.get(id).map_or(ViewNumber(0), |group| group.view);
        self.base.event(Event::Deposited { group: id, name, holder, replaced, view });
        self.changed(now, id, Change::View);
        if holder == self.base.me
            && self.replicas.backups.restores.get(&id).is_none_or(|it| it.number() != number)
        {
            // No requester waits for the state any more.
            self.base.order(now, Ordered::Backup(BackupStep::Discard { group: id, number }));
        }
    }
}
