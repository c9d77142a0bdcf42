//! Clients, their calls, and what they are answered.

use bytes::Bytes;
use steadfast_engine::{AwayCall, AwayWait};
use wire::client::{Access, Frame, Hello, Outcome, Reply, Request};
use wire::ordered::End;
use wire::{Caller, ClientId, Duration, GroupId, MethodId, ViewNumber};

use super::{Cluster, Connection, Pending, ms};
use crate::base::Base;

impl<O: Base> Cluster<O> {
    /// Calls of other cells that this node was to make so far.
    pub fn away(&self, node: u32) -> Vec<AwayCall> {
        self.at(node).away.clone()
    }

    pub fn end_away(&mut self, node: u32, wait: AwayWait, end: End) {
        self.ask(node, |stack, now| stack.handle_away(now, wait, end));
    }

    pub fn client(&mut self, node: u32) -> Connection {
        self.callers += 1;
        let client = ClientId(self.callers);
        self.connect(client, node)
    }

    pub fn connect_as(&mut self, connection: Connection, node: u32) -> Connection {
        let view = self.views.get(&connection.caller).copied();
        let connection = self.connect(connection.client, node);
        self.views.insert(connection.caller, view.unwrap_or_default());
        connection
    }

    fn connect(&mut self, client: ClientId, node: u32) -> Connection {
        self.callers += 1;
        let caller = Caller(self.callers);
        let connection = Connection { node, caller, client };
        self.clients.insert(caller, client);
        self.frame(connection, Frame::Hello(Hello::new(client)));
        self.views.insert(caller, ViewNumber(u64::MAX));
        connection
    }

    /// The client knows no view of any group.
    pub fn forget_view(&mut self, connection: Connection) {
        self.views.insert(connection.caller, ViewNumber(0));
    }

    /// The client knows the group's view as its node does.
    pub fn learn_view(&mut self, connection: Connection, group: &str) {
        self.learn_view_of(connection, connection.node, group);
    }

    /// The same, as another node does.
    pub fn learn_view_of(&mut self, connection: Connection, node: u32, group: &str) {
        let status = self.at(node).stack.status();
        let view = status.groups.iter().find(|g| g.name == group).expect("a group").view;
        self.views.insert(connection.caller, view);
    }

    fn frame(&mut self, connection: Connection, frame: Frame) {
        let Connection { node, caller, .. } = connection;
        self.ask(node, |stack, now| stack.handle_frame(now, now, caller, frame));
    }

    pub fn call(
        &mut self,
        connection: Connection,
        group: &str,
        number: u64,
        body: &str,
    ) -> Pending {
        self.call_with(connection, group, number, body, Access::Change)
    }

    /// A call that may change nothing: it is answered with the length of the log.
    pub fn call_with(
        &mut self,
        connection: Connection,
        group: &str,
        number: u64,
        body: &str,
        access: Access,
    ) -> Pending {
        self.call_within(connection, group, number, body, (access, ms(5_000)))
    }

    pub fn call_within(
        &mut self,
        connection: Connection,
        group: &str,
        number: u64,
        body: &str,
        (access, timeout): (Access, Duration),
    ) -> Pending {
        let (group, client) = (GroupId::of(group), connection.client);
        self.under_way.insert((group, client, number));
        let mut under_way = self.under_way.range((group, client, 0)..=(group, client, number));
        let (.., unanswered) = *under_way.next().expect("this one is");
        let request = Request {
            group,
            client,
            number,
            unanswered,
            view: self.views[&connection.caller],
            method: MethodId::of("append"),
            timeout_us: timeout.as_micros() as u32,
            priority: self.priority,
            json: false,
            beside: false,
            has_key: false,
            access,
            body: Bytes::copy_from_slice(body.as_bytes()),
        };
        let pending = Pending { caller: connection.caller, number, at: self.world.now };
        self.frame(connection, Frame::Request(request));
        pending
    }

    pub fn whole_reply(&mut self, call: Pending) -> Reply {
        let key = (call.caller, call.number);
        self.run_until("a reply", |cluster| cluster.replies.contains_key(&key));
        self.replies[&key].1.clone()
    }

    pub fn reply(&mut self, call: Pending) -> Outcome {
        self.whole_reply(call).outcome
    }

    pub fn is_answered(&self, call: Pending) -> bool {
        self.replies.contains_key(&(call.caller, call.number))
    }

    pub fn waited(&self, call: Pending) -> Duration {
        self.replies[&(call.caller, call.number)].0 - call.at
    }
}
