//! Replicas that go and come anew, or stay because nobody else has the group's state.

use wire::{GroupId, Member};

use super::{Change, Directory, State};

impl Directory {
    /// The replica on `member` alone has the state, and its service is to begin anew from what its
    /// node has kept. A joiner that receives the state from it receives it anew.
    pub(crate) fn stay(&mut self, member: Member, id: GroupId) -> Change {
        let Some(group) = self.groups.get_mut(&id) else { return Change::None };
        if group.replicas.len() == 1 {
            return Change::None;
        }
        group.advance();
        let transfer = group.transfer();
        for replica in &mut group.replicas {
            if let State::Unsynced { donor, .. } = replica.state
                && donor == Some(member)
            {
                replica.state = State::Unsynced { transfer, donor };
            }
        }
        Change::View
    }

    /// The replica on `member` goes if another has the state.
    pub(crate) fn part(&mut self, member: Member, id: GroupId) -> Change {
        match self.get(id).is_some_and(|group| group.is_alone(member)) {
            true => Change::None,
            false => self.leave(member, id),
        }
    }

    /// The replica on `member` goes, unless it is needed, and comes anew.
    pub(crate) fn come_anew(&mut self, member: Member, id: GroupId) -> Change {
        let there = self.get(id).is_some_and(|group| group.replica(member).is_some());
        let change = if there { self.leave(member, id) } else { Change::None };
        if change == Change::View
            && let Some(group) = self.groups.get_mut(&id)
        {
            group.await_again(member);
        }
        change
    }

    /// The replica on `member` is taken out: it is not to be relied upon, so it is not asked what
    /// it has.
    pub(crate) fn expel(&mut self, member: Member, id: GroupId) -> Change {
        let Some(group) = self.groups.get_mut(&id) else { return Change::None };
        if group.replica(member).is_none() || group.replicas.len() == 1 {
            return Change::None;
        }
        if group.synced().any(|synced| synced == member) {
            group.floor = group.last;
        }
        group.replicas.retain(|replica| replica.member != member);
        group.await_again(member);
        group.advance();
        group.renew_transfers();
        Change::View
    }
}
