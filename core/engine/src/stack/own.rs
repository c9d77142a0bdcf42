//! Calls that this node makes in its own name, of a group that it hosts: its part in the manager's group
//! (`docs/protocol/deployment.md`).
//!
//! The node is a client like any other, but without a connection: its calls have a session, are ordered, held and answered as
//! others are. A replica here that has the state orders them at once, primary or not.

use alloc::collections::BTreeMap;

use bytes::Bytes;
use wire::client::{Access, Bound, Frame, Outcome, Reply, Request};
use wire::system::MANAGER_ID;
use wire::{Caller, ClientId, Duration, GroupId, Member, MethodId, Time, ViewNumber, fnv1a};

use super::Stack;
use crate::api::Output;
use crate::callers::OWN;
use crate::ordering::Ordering;

/// The calls under way.
#[derive(Default)]
pub(super) struct Own {
    last: u64,
    /// Each until when it is waited for.
    open: BTreeMap<u64, Time>,
}

/// The session of this life of a node.
fn client(me: Member) -> ClientId {
    let mut name = [0; 12];
    name[..4].copy_from_slice(&me.node.0.to_le_bytes());
    name[4..].copy_from_slice(&me.incarnation.0.to_le_bytes());
    ClientId(fnv1a(&name))
}

impl<O: Ordering> Stack<O> {
    /// Calls a group in this node's own name. What comes of it within `patience` is told by [`Output::Own`] with the number that is
    /// given back; if nothing does, nobody knows whether it was executed.
    pub fn call(
        &mut self,
        now: Time,
        wall: Time,
        (group, method): (GroupId, MethodId),
        body: Bytes,
        patience: Duration,
    ) -> u64 {
        let client = client(self.me);
        if self.calls.own.last == 0 {
            self.clients.callers.welcome(OWN, client);
        }
        self.calls.own.last += 1;
        let number = self.calls.own.last;
        self.calls.own.open.retain(|_, until| *until > now);
        self.calls.own.open.insert(number, now + patience);
        let unanswered = self.calls.own.open.keys().next().copied().unwrap_or(number);
        let view = self.directory.get(group).map_or(ViewNumber(0), |group| group.view);
        let patience_us = u32::try_from(patience.as_micros()).unwrap_or(u32::MAX);
        let request = Request {
            group,
            client,
            number,
            unanswered,
            view,
            method,
            patience_us,
            json: false,
            beside: false,
            access: Access::Change,
            criticality: u8::MAX,
            body,
        };
        self.request(now, wall, OWN, request);
        self.outputs.crowd(now);
        number
    }

    /// A call of this node's own has ended.
    pub(super) fn own_ended(&mut self, reply: Reply) {
        self.calls.own.open.remove(&reply.number);
        self.outputs.push(Output::Own { number: reply.number, outcome: reply.outcome });
    }

    /// What a client may not reach is not there for it.
    pub(super) fn hide(&mut self, caller: Caller, frame: &Frame) -> bool {
        let frame = match frame {
            Frame::Bind(bind) if GroupId::of(&bind.name) == MANAGER_ID => {
                Frame::Bound(Bound { group: MANAGER_ID, targets: None })
            }
            Frame::Request(request) if request.group == MANAGER_ID => Frame::Reply(Reply {
                number: request.number,
                group: request.group,
                view: request.view,
                targets: None,
                outcome: Outcome::NoSuchGroup,
            }),
            _ => return false,
        };
        self.outputs.push(Output::Frame { caller, frame });
        true
    }
}
