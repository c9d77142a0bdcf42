//! What this node's driver is to do next.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wire::Time;

use crate::api::{Event, Output};
use crate::replica::Effect;

/// One queue, in the order of what led to it.
#[derive(Default)]
pub(crate) struct Outputs {
    queue: VecDeque<Output>,
    /// When the last one came of what comes in crowds, clients' frames and services' answers. What
    /// follows from all of them is seen to when outputs are asked for, so that what many clients
    /// ask for at once is ordered together.
    crowd: Option<Time>,
    /// Room for what a replica asks for, kept from call to call.
    room: Vec<Effect>,
}

impl Outputs {
    pub(crate) fn push(&mut self, output: Output) {
        self.queue.push_back(output);
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.push(Output::Event(event));
    }

    pub(crate) fn extend(&mut self, outputs: impl Iterator<Item = Output>) {
        self.queue.extend(outputs);
    }

    pub(crate) fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    /// One of a crowd has come: others may follow before anything is done about it.
    pub(crate) fn crowd(&mut self, now: Time) {
        self.crowd = Some(now);
    }

    /// When the last of a crowd came, if nothing is left to do before it is seen to.
    pub(crate) fn crowd_waits(&mut self) -> Option<Time> {
        if self.queue.is_empty() { self.crowd.take() } else { None }
    }

    /// The crowd is seen to.
    pub(crate) fn settled(&mut self) {
        self.crowd = None;
    }

    /// Room for effects: to be given back.
    pub(crate) fn take_room(&mut self) -> Vec<Effect> {
        core::mem::take(&mut self.room)
    }

    pub(crate) fn give_room(&mut self, room: Vec<Effect>) {
        self.room = room;
    }
}
