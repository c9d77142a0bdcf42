//! What a node knows, for people.

use alloc::vec::Vec;

use super::{Hosted, Stack};
use crate::api::{GroupStatus, ReplicaStatus, RingStatus, Status};
use crate::directory::State;
use crate::ordering::Ordering;

impl<O: Ordering> Stack<O> {
    /// What this node knows, for people.
    pub fn status(&self) -> Status {
        let groups = self.directory.iter().map(|(id, group)| {
            let hosted = self.hosted.get(&id).filter(|hosted| hosted.replica.has_state());
            GroupStatus {
                name: group.name.clone(),
                options: group.options,
                view: group.view,
                primary: group.primary(),
                replicas: group
                    .replicas
                    .iter()
                    .map(|replica| ReplicaStatus {
                        member: replica.member,
                        synced: replica.state == State::Synced,
                    })
                    .collect(),
                sessions: hosted.and_then(|hosted| hosted.replica.sessions()),
                executed: hosted.and_then(|hosted| hosted.replica.executed()),
                hung: self.hangs.is_hung(id),
                depositor: group.depositor().map(|deposit| deposit.holder),
                log: hosted.and_then(Hosted::log_status),
                journal: hosted.and_then(|hosted| Some(hosted.program.journal.as_ref()?.status())),
            }
        });
        let mut groups: Vec<GroupStatus> = groups.collect();
        groups.sort_by(|a, b| a.name.cmp(&b.name));
        Status {
            me: self.me,
            ring: self.ring_status(),
            groups,
            keys: self.keys.status(&self.present()),
            nested: self.calls.between.status(),
        }
    }

    /// The part of [`status`](Stack::status) that tells of the ring.
    pub fn ring_status(&self) -> RingStatus {
        RingStatus {
            state: self.outbox.ordering.state_name(),
            id: self.outbox.ordering.id(),
            members: self.outbox.ordering.members().to_vec(),
            quorate: self.membership.quorate(),
            epoch: self.membership.epoch(),
            delivered: self.progress.delivered(),
            buffers: self.outbox.ordering.buffers(),
            rotations: self.outbox.ordering.rotations(),
        }
    }
}
