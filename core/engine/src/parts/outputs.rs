//! This node's outputs to its driver.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wire::Time;

use crate::api::{Event, Output};
use crate::replica::Effect;

/// One queue, in the order of the causes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outputs {
    queue: VecDeque<Output>,
    /// The time of the last input of a kind that comes in crowds: clients' frames and services'
    /// answers. Their consequences are handled when outputs are requested, so that simultaneous
    /// calls of many clients are ordered together.
    crowd: Option<Time>,
    /// A buffer for a replica's effects, reused from call to call.
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

    /// Notes an input of a crowd: others may follow before anything is done about it.
    pub(crate) fn crowd(&mut self, now: Time) {
        self.crowd = Some(now);
    }

    /// Returns when the last input of a crowd came, if nothing else is left to do before it is
    /// handled.
    pub(crate) fn crowd_waits(&mut self) -> Option<Time> {
        if self.queue.is_empty() { self.crowd.take() } else { None }
    }

    /// The crowd is handled.
    pub(crate) fn settled(&mut self) {
        self.crowd = None;
    }

    /// Takes the buffer for effects, to be returned later.
    pub(crate) fn take_room(&mut self) -> Vec<Effect> {
        core::mem::take(&mut self.room)
    }

    pub(crate) fn give_room(&mut self, room: Vec<Effect>) {
        self.room = room;
    }
}
