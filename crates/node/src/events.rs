//! What happens in a node, for logs, tools and programs.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use engine::Event;
use wire::NodeId;
use wire::limits::{MAX_EVENT_HISTORY, MAX_EVENTS, MAX_SUBSCRIBERS};

mod log;
mod record;

use log::Log;

pub use record::{EventKind, EventRecord, ReplicaRecord};

/// An event with the wall clock's nanoseconds since the Unix epoch when it left the stack.
pub type Stamped = (u64, Event);

/// Which events a subscriber wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interest {
    /// All.
    All,
    /// All but those that every call makes (`Executed`, `Replied`, `Copy`).
    #[default]
    Membership,
}

#[derive(Debug)]
struct Subscriber {
    interest: Interest,
    sender: SyncSender<Stamped>,
}

/// Hands events out. They wait until the data plane has nothing more urgent to do.
#[derive(Debug, Default)]
pub(crate) struct Events {
    waiting: Vec<Stamped>,
    subscribers: Vec<Subscriber>,
    history: VecDeque<Stamped>,
    log: Log,
}

impl Events {
    /// None yet, at node `me`. `configured`: the cluster's nodes.
    pub fn new(me: NodeId, configured: Vec<NodeId>) -> Self {
        Events { log: Log::new(me, configured), ..Events::default() }
    }

    /// The events from here on.
    pub fn subscribe(&mut self, interest: Interest) -> Receiver<Stamped> {
        let (sender, receiver) = sync_channel(MAX_EVENTS);
        if self.subscribers.len() >= MAX_SUBSCRIBERS {
            tracing::warn!("{MAX_SUBSCRIBERS} subscribers, the limit: the oldest one is ended");
            self.subscribers.remove(0);
        }
        self.subscribers.push(Subscriber { interest, sender });
        receiver
    }

    /// The last events, without those of calls.
    pub fn history(&self) -> Vec<Stamped> {
        self.history.iter().cloned().collect()
    }

    /// Logs an event and keeps it for [`deliver`](Self::deliver).
    pub fn push(&mut self, time: u64, event: Event) {
        self.log.write(&event);
        if !is_of_call(&event) {
            if self.history.len() == MAX_EVENT_HISTORY {
                self.history.pop_front();
            }
            self.history.push_back((time, event.clone()));
        }
        if !self.subscribers.is_empty() {
            self.waiting.push((time, event));
        }
    }

    /// Gives what was kept to the subscribers; returns how many events one of them did not take.
    pub fn deliver(&mut self) -> u64 {
        let mut dropped = 0;
        for (time, event) in self.waiting.drain(..) {
            self.subscribers.retain(|subscriber| {
                if subscriber.interest == Interest::Membership && is_of_call(&event) {
                    return true;
                }
                match subscriber.sender.try_send((time, event.clone())) {
                    Ok(()) => true,
                    Err(TrySendError::Full(_)) => {
                        dropped += 1;
                        true
                    }
                    Err(TrySendError::Disconnected(_)) => false,
                }
            });
        }
        dropped
    }
}

fn is_of_call(event: &Event) -> bool {
    matches!(event, Event::Executed { .. } | Event::Replied { .. } | Event::Copy { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_that_does_not_read_loses_events_and_they_are_counted() {
        let mut events = Events::default();
        let receiver = events.subscribe(Interest::All);
        for time in 0..MAX_EVENTS as u64 + 3 {
            events.push(time, Event::Left);
        }
        assert_eq!(events.deliver(), 3);
        assert_eq!(receiver.recv().unwrap().0, 0, "the oldest are kept");
        drop(receiver);
        events.push(0, Event::Left);
        assert_eq!(events.deliver(), 0);
        assert!(events.subscribers.is_empty(), "who has gone is forgotten");
        assert_eq!(events.history().len(), MAX_EVENT_HISTORY);
    }
}
