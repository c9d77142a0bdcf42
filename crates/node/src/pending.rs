//! Stands in for `engine::Stack` until that has landed: hosts nothing, answers nothing.

use bytes::Bytes;
use engine::{Config, Event, Executed, HostError, Output, RingStatus, Status, Ticket};
use wire::ordered::GroupOptions;
use wire::{Caller, GroupId, NodeId, RingId, Time};

pub(crate) struct Stack {
    config: Config,
    left: bool,
}

#[allow(clippy::unused_self)]
impl Stack {
    pub fn new(config: Config, _now: Time) -> Result<Stack, ring::ConfigError> {
        config.ring.check()?;
        Ok(Stack { config, left: false })
    }
    pub fn handle_datagram(&mut self, _now: Time, _bytes: &Bytes) {}
    pub fn handle_unreachable(&mut self, _now: Time, _node: NodeId) {}
    pub fn handle_timeout(&mut self, _now: Time) {}
    pub fn next_timeout(&self) -> Option<Time> {
        None
    }
    pub fn host(&mut self, _: Time, name: &str, _: GroupOptions) -> Result<GroupId, HostError> {
        Ok(GroupId::of(name))
    }
    pub fn unhost(&mut self, _now: Time, _group: GroupId) {}
    pub fn handle_executed(&mut self, _: Time, _: GroupId, _: Ticket, _: Executed) {}
    pub fn handle_frame(&mut self, _: Time, _: Time, _: Caller, _: wire::client::Frame) {}
    pub fn handle_disconnect(&mut self, _now: Time, _caller: Caller) {}
    pub fn leave(&mut self, _now: Time) {
        self.left = true;
    }
    pub fn poll_output(&mut self) -> Option<Output> {
        std::mem::take(&mut self.left).then_some(Output::Event(Event::Left))
    }
    pub fn status(&self) -> Status {
        let ring = RingStatus {
            state: "gather",
            id: RingId::default(),
            members: Vec::new(),
            quorate: None,
            epoch: 0,
            delivered: 0,
        };
        Status { me: self.config.ring.me, ring, groups: Vec::new() }
    }
}
