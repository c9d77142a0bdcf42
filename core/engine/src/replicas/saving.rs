//! A group's state as it is at one place of the order, for whoever keeps it elsewhere (`docs/protocol/backup.md`).
//!
//! The node that was asked orders the wish. Where that is delivered its replica takes its state, as for a transfer; and it is told when
//! the place is held, as a reply at that place would be: what is saved cannot be lost by the group any more.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::{MAX_DEPOSITS, MAX_DEPOSITS_BYTES, MAX_SAVES};
use wire::ordered::{BackupStep, Form, Ordered, Place};
use wire::{Duration, GroupId, Member, RingId, Time};

use crate::api::{Nodes, Output, Restore, RestoreError, SaveError, Saved};
use crate::base::Base;
use crate::ordering::Ordering;
use crate::replicas::restoring::Restoring;
use crate::replicas::{ReplicaHandler, Replicas};

/// Whoever asked for a save hears of it within this time. A large state takes its service a while to tell.
const SAVE_PATIENCE: Duration = Duration::from_secs(60);

/// A save that was asked for here.
pub(crate) struct Saving {
    number: u64,
    until: Time,
    /// The ring on which it was ordered last: on one that ended it may be lost, and what was taken there may be, too.
    asked: Option<RingId>,
    stage: Stage,
}

enum Stage {
    /// It has no place yet.
    Asked,
    /// The replica takes its state, of this place of the order. It is not known yet what the place of a passive group's last
    /// update is, if its primary is ahead.
    Taking { sequence: u64, place: Option<Place> },
    /// The state waits until its place is held.
    Taken { sequence: u64, saved: Saved },
}

/// What this node was asked to save and to restore.
#[derive(Default)]
pub(crate) struct Backups {
    pub(crate) saves: BTreeMap<GroupId, Saving>,
    /// The number of the last one.
    last_save: u64,
    /// States that groups are to begin with.
    pub(crate) restores: BTreeMap<GroupId, Restoring>,
}

impl Backups {
    /// A group's state is to be saved.
    pub(crate) fn save(&mut self, now: Time, group: GroupId) -> Result<(), SaveError> {
        if self.saves.contains_key(&group) {
            return Err(SaveError::UnderWay);
        }
        if self.saves.len() >= MAX_SAVES {
            return Err(SaveError::TooMany);
        }
        self.last_save += 1;
        let (number, until) = (self.last_save, now + SAVE_PATIENCE);
        self.saves.insert(group, Saving { number, until, asked: None, stage: Stage::Asked });
        Ok(())
    }

    /// A group is to begin with a state.
    pub(crate) fn restore(
        &mut self,
        now: Time,
        restore: Restore,
        number: u64,
    ) -> Result<(), RestoreError> {
        let id = GroupId::of(&restore.name);
        if self.restores.contains_key(&id) {
            return Err(RestoreError::UnderWay);
        }
        let bytes: usize = self.restores.values().map(Restoring::size).sum();
        let full = bytes > 0 && bytes + restore.state.len() > MAX_DEPOSITS_BYTES;
        if self.restores.len() >= MAX_DEPOSITS || full {
            return Err(RestoreError::TooMany);
        }
        self.restores.insert(id, Restoring::asked(restore, number, now));
        Ok(())
    }

    /// When somebody waits no longer.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let saves = self.saves.values().map(|saving| saving.until);
        saves.chain(self.restores.values().filter_map(Restoring::until)).min()
    }

    /// Something waits for its place to be held.
    pub(crate) fn any_unheld(&self) -> bool {
        !self.saves.is_empty() || self.restores.values().any(|it| it.until().is_some())
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.saves.len() <= MAX_SAVES, "saves under way are bounded");
        assert!(self.restores.len() <= MAX_DEPOSITS, "states to be restored are bounded");
    }
}

/// What can come of a save.
enum Outlook {
    Over(SaveError),
    Ready,
    Wait,
}

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// Orders the saves that can be ordered, and ends those that are over. True if there was anything to do.
    pub(crate) fn pump_saves(&mut self, now: Time) -> bool {
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

    /// What has come of a save that was ordered on this ring, if it is over.
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
        // Who has lost the state is told so by the next look.
        let able = |hosted: &&super::Hosted| hosted.replica.has_state() && !hosted.spared;
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
