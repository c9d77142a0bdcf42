//! Handlers that call another group.

use bytes::Bytes;
use engine::{Command, NestedCall, NestedError, Ticket};
use wire::GroupId;

use super::{Cluster, Extra};
use crate::check::Verdict;
use crate::executor::Lie;

impl Cluster {
    /// A replica's handler calls another group.
    pub(super) fn asks(
        &mut self,
        node: usize,
        group: GroupId,
        call: NestedCall,
        lie: Option<Lie>,
    ) -> Verdict {
        let (now, wall) = (self.fabric.local(node), self.fabric.wall(node));
        let executor = self.executors.at(node, group);
        let Some(&Command::Execute { client, number, .. }) = executor.running() else {
            panic!("a handler asks");
        };
        let position = executor.log.entries.len() as u64 + executor.asks() + 1;
        let me = self.fabric.member(node);
        self.fabric.note(11, node, [group.0, number]);
        self.fabric.say(|| format!("{me}: {client} {number} of {group} calls {}", call.callee));
        if lie.is_some() || self.watch.votes.is_wrong(me, group) {
            // Nobody else hears of it: the group that is called would execute what its checkers do
            // not know.
            self.lied(me, group, position, true);
        } else {
            self.watch.nested_asked(self.fabric.now(), group, (client, number), &call)?;
        }
        if let Some(stack) = &mut self.fabric.hosts[node].process {
            stack.handle_nested(now, wall, group, call);
        }
        Ok(())
    }

    /// The call of a replica's handler has ended.
    pub(super) fn resumed(
        &mut self,
        node: usize,
        group: GroupId,
        ticket: Ticket,
        outcome: &Result<Bytes, NestedError>,
    ) {
        let me = self.fabric.member(node);
        self.fabric.say(|| {
            let words = outcome.as_ref().map(Bytes::len);
            format!("{me}: the call of {group}'s {ticket:?} ends with {words:?}")
        });
        let Some(executor) = self.executors.get_mut(node, group) else { return };
        if let Some(Command::Execute { client, number, .. }) = executor.running() {
            self.watch.nested_ended(self.fabric.now(), group, (*client, *number), outcome);
        }
        if executor.resume(ticket, outcome, self.watch.history_of(me, group)) {
            self.summary.nested += 1;
            let serial = executor.serial;
            self.fabric.deliver(self.fabric.now(), node, Extra::Executed(group, serial));
        } else {
            self.begin(node, group);
        }
    }
}
