//! Large states, which go by streams beside the order (`docs/protocol/group.md`, "State transfer").

use bytes::Bytes;
use wire::ordered::{Ordered, StateDeclined};
use wire::{Payload, Time};

use crate::api::Transfer;
use crate::ordering::Ordering;
use crate::stack::Stack;

impl<O: Ordering> Stack<O> {
    /// The state that this node gives by this transfer, if it gives any. Its bytes are shared.
    pub fn offered(&self, transfer: Transfer) -> Option<Payload> {
        let Transfer { ring, group, view } = transfer;
        if ring != self.base.membership.ring() {
            return None;
        }
        let hosted = self.replicas.hosted.get(&group);
        let own = hosted.and_then(|hosted| hosted.replica.offered(view));
        own.or_else(|| self.replicas.deposit_offered(group, view)).cloned()
    }

    /// An [`Output::Fetch`](crate::Output::Fetch) has ended: with all bytes of the state, or
    /// `None`. Without them, the replica asks for the state in chunks.
    pub fn handle_fetched(&mut self, now: Time, transfer: Transfer, state: Option<Bytes>) {
        let Transfer { ring, group, view } = transfer;
        let joins = |hosted: &crate::replicas::hosted::Hosted| hosted.replica.joins_by(view);
        if ring != self.base.membership.ring()
            || !self.replicas.hosted.get(&group).is_some_and(joins)
        {
            return; // nobody waits for it any more
        }
        match state {
            Some(state) => self.replicas().with_replica(now, group, |replica, effects| {
                replica.fetched(now, view, state, effects);
            }),
            None => {
                let declined = StateDeclined { group, transfer: view };
                self.base.order(now, Ordered::StateDeclined(declined));
            }
        }
        self.settle(now);
    }
}
