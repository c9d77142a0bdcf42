//! States are taken where that is ordered.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::ordered::{BackupStep, Form, Ordered};
use wire::{GroupId, Member, Time};

use super::{Outlook, Saving, Stage};
use crate::api::{Nodes, Output, SaveError, Saved};
use crate::base::Base;
use crate::ordering::Ordering;
use crate::replicas::hosted::Hosted;
use crate::replicas::{ReplicaHandler, Replicas};

impl Replicas {
    fn save_outlook<O: Ordering>(&self, base: &Base<O>, id: GroupId) -> Outlook {
        if base.membership.is_minority() {
            return Outlook::Over(SaveError::NoQuorum);
        }
        if !base.membership.is_active() {
            return Outlook::Wait;
        }
        let Some(group) = base.directory.get(id) else {
            return match self.may_come(base, id) {
                true => Outlook::Wait,
                false => Outlook::Over(SaveError::NoSuchGroup),
            };
        };
        if !group.options.style.has_state() {
            return Outlook::Over(SaveError::Stateless);
        }
        if group.synced().any(|member| member == base.me) {
            return Outlook::Ready;
        }
        let others: Vec<_> = group.synced().map(|member| member.node).collect();
        Outlook::Over(match others.is_empty() {
            true => SaveError::NoPrimary,
            false => SaveError::NotHere(Nodes(others)),
        })
    }
}

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// Orders the saves that can be ordered, and ends those that are over. True if there was
    /// anything to do.
    pub(crate) fn pump_saves(&mut self, now: Time) -> bool {
        if self.replicas.backups.saves.is_empty() {
            return false;
        }
        let saves: Vec<GroupId> = self.replicas.backups.saves.keys().copied().collect();
        let mut any = false;
        for id in saves {
            any |= self.pump_save(now, id);
        }
        any
    }

    pub(crate) fn pump_save(&mut self, now: Time, id: GroupId) -> bool {
        let ring = self.base.membership.ring();
        let saving = &self.replicas.backups.saves[&id];
        let (number, late) = (saving.number, now >= saving.until);
        let anew = saving.asked.is_some_and(|asked| asked != ring);
        let ended = match self.replicas.save_outlook(self.base, id) {
            Outlook::Over(error) => Some(Err(error)),
            Outlook::Wait | Outlook::Ready if late => Some(Err(SaveError::Late)),
            Outlook::Wait => None,
            Outlook::Ready if anew || saving.asked.is_none() => {
                self.forget_save(id);
                let step = BackupStep::Save { group: id, number };
                self.base.order(now, Ordered::Backup(step));
                return true;
            }
            Outlook::Ready => self.save_ended(id),
        };
        let Some(outcome) = ended else { return false };
        self.forget_save(id);
        self.replicas.backups.saves.remove(&id);
        self.base.outputs.push(Output::Saved { group: id, outcome });
        true
    }

    /// Returns the outcome of a save that was ordered on this ring, if it is over.
    pub(crate) fn save_ended(&mut self, id: GroupId) -> Option<Result<Saved, SaveError>> {
        let saving = &self.replicas.backups.saves[&id];
        match &saving.stage {
            Stage::Asked => None,
            Stage::Taking { .. } => {
                let hosted = self.replicas.hosted.get(&id);
                let goes_on = hosted.is_some_and(|it| it.replica.is_saving(saving.number));
                (!goes_on).then_some(Err(SaveError::Lost))
            }
            Stage::Taken { sequence, saved } => {
                self.base.is_held(id, *sequence).then(|| Ok(saved.clone()))
            }
        }
    }

    /// It begins on this ring, or is over: what the replica was asked for it is of no use any more.
    pub(crate) fn forget_save(&mut self, id: GroupId) {
        let ring = self.base.membership.ring();
        let Some(saving) = self.replicas.backups.saves.get_mut(&id) else { return };
        saving.asked = Some(ring);
        saving.stage = Stage::Asked;
        if let Some(hosted) = self.replicas.hosted.get_mut(&id) {
            hosted.replica.give_save_up(saving.number);
        }
    }

    /// A save at its place in the order.
    pub(crate) fn act_on_save(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        (id, number): (GroupId, u64),
    ) {
        let ring = self.base.membership.ring();
        let place = self.base.place(sequence);
        let wanted = |saving: &Saving| {
            let asked = matches!(saving.stage, Stage::Asked) && saving.asked == Some(ring);
            asked && saving.number == number
        };
        if sender != self.base.me || !self.replicas.backups.saves.get(&id).is_some_and(wanted) {
            return;
        }
        // If the state is lost, the next check reports it.
        let able = |hosted: &&Hosted| hosted.replica.has_state() && !hosted.spared;
        let Some(hosted) = self.replicas.hosted.get(&id).filter(able) else { return };
        let place = (!hosted.replica.is_ahead()).then_some(place);
        let sequence = self.base.known_at(id);
        self.replicas
            .backups
            .saves
            .entry(id)
            .and_modify(|saving| saving.stage = Stage::Taking { sequence, place });
        self.with_replica(now, id, |replica, effects| replica.save(number, effects));
    }

    /// The replica's state is there, or cannot be had.
    pub(crate) fn state_saved(&mut self, id: GroupId, taken: Result<(Form, Bytes), String>) {
        let Some((group, hosted)) = self.base.directory.get(id).zip(self.replicas.hosted.get(&id))
        else {
            return;
        };
        let (name, options, reached) = (group.name.clone(), group.options, hosted.taken);
        let Some(saving) = self.replicas.backups.saves.get_mut(&id) else { return };
        let Stage::Taking { sequence, place } = saving.stage else { return };
        match taken {
            Ok((form, state)) => {
                let (place, sequence) = match place {
                    Some(place) => (place, sequence),
                    None => (reached, sequence.max(reached.sequence)),
                };
                let saved = Saved { name, options, place, form, state };
                saving.stage = Stage::Taken { sequence, saved };
            }
            Err(reason) => {
                self.replicas.backups.saves.remove(&id);
                let outcome = Err(SaveError::Service(reason));
                self.base.outputs.push(Output::Saved { group: id, outcome });
            }
        }
    }
}
