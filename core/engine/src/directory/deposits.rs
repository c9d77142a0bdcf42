//! Groups that begin with a state that somebody has, instead of their service's initial one
//! (`docs/protocol/backup.md`).
//!
//! A deposit is part of its group's history, like a request: who has taken that place has the
//! state. Until a replica has, the group has no primary, however many wait for it.

use alloc::vec::Vec;

use wire::limits::MAX_GROUPS;
use wire::ordered::{Deposit, GroupOptions, Place};
use wire::{GroupId, ViewNumber};

use super::{Change, Directory, Group};

/// Why a deposit is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DepositRefused {
    /// The group has executed calls.
    Lives,
    /// The group's style cannot begin with it.
    Apart,
    /// The table is full, or the name's hash belongs to another group.
    Full,
}

impl Group {
    /// The deposit that the group waits for.
    pub(crate) fn depositor(&self) -> Option<Deposit> {
        self.deposit.filter(|deposit| deposit.pending)
    }

    /// Whether the state came from this deposit, or is to.
    pub(crate) fn is_from(&self, number: u64) -> bool {
        self.deposit.is_some_and(|deposit| deposit.number == number)
    }

    /// A replica has the state: the group goes on with that.
    pub(super) fn take_deposit(&mut self) {
        if let Some(deposit) = &mut self.deposit {
            deposit.pending = false;
        }
    }

    /// A group that waits for its first replica takes the options with which that comes, if they
    /// cannot have become its own.
    pub(super) fn adopt(&mut self, options: GroupOptions) {
        let fits = self.depositor().is_some_and(|deposit| deposit.form.fits(options.style));
        if fits && self.replicas.is_empty() && !self.options.may_have_been(options) {
            self.options = options;
        }
    }
}

impl Directory {
    /// From this place on the group begins with this deposit. Its replicas are out, and come anew.
    pub(crate) fn deposit(
        &mut self,
        (name, options): (&str, GroupOptions),
        deposit: Deposit,
        place: Place,
        replace: bool,
    ) -> Result<(), DepositRefused> {
        let id = GroupId::of(name);
        if let Some(group) = self.groups.get_mut(&id) {
            if group.name != name {
                return Err(DepositRefused::Full);
            }
            let called = group.last != Place::default() && group.depositor().is_none();
            if called && !replace {
                return Err(DepositRefused::Lives);
            }
            if !deposit.form.fits(group.options.style) {
                return Err(DepositRefused::Apart);
            }
            (group.last, group.floor) = (place, place);
            group.replicas.clear();
            group.asleep.clear();
            group.awaited.clear();
            group.deposit = Some(deposit);
            group.advance();
            return Ok(());
        }
        if self.groups.len() >= MAX_GROUPS {
            return Err(DepositRefused::Full);
        }
        if !deposit.form.fits(options.style) {
            return Err(DepositRefused::Apart);
        }
        let before = self.ended.remove(&id).unwrap_or(ViewNumber(0));
        let group = Group {
            name: name.into(),
            options,
            view: ViewNumber(before.0.saturating_add(1)),
            last: place,
            floor: place,
            reign: None,
            replicas: Vec::new(),
            asleep: Vec::new(),
            awaited: Vec::new(),
            deposit: Some(deposit),
            transfers: self.transfers,
        };
        self.groups.insert(id, group);
        Ok(())
    }

    /// A deposit that nobody has taken is given up: the group is as if it had never been called.
    pub(crate) fn discard(&mut self, id: GroupId, number: u64) -> Change {
        let Some(group) = self.groups.get_mut(&id) else { return Change::None };
        if group.depositor().is_none_or(|deposit| deposit.number != number) {
            return Change::None;
        }
        group.deposit = None;
        if group.replicas.is_empty() {
            return self.end(id);
        }
        (group.last, group.floor) = (Place::default(), Place::default());
        group.begin_if_never_called();
        group.advance();
        group.renew_transfers();
        Change::View
    }
}
