//! Hands out what happens in a node: to the log, and to those who subscribe.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use admin::events::{Interest, Log, Stamped};
use engine::Event;
use wire::NodeId;
use wire::limits::{MAX_EVENT_HISTORY, MAX_EVENTS, MAX_SUBSCRIBERS};

#[derive(Debug)]
struct Subscriber {
    interest: Interest,
    sender: SyncSender<Stamped>,
    /// Events that it did not take in time, since it was told of such last.
    missed: u64,
}

/// A subscriber's result for one event.
enum Offered {
    Taken,
    Missed,
    /// Nobody is there any more.
    Gone,
}

impl Subscriber {
    /// Gives it an event, and before it how many it has missed, if it has.
    fn offer(&mut self, stamped: &Stamped) -> Offered {
        let mut given = Ok(());
        if self.missed > 0 {
            given = self.sender.try_send((stamped.0, Event::Missed(self.missed)));
            if given.is_ok() {
                self.missed = 0;
            }
        }
        if given.is_ok() {
            given = self.sender.try_send(stamped.clone());
        }
        match given {
            Ok(()) => Offered::Taken,
            Err(TrySendError::Full(_)) => {
                self.missed += 1;
                Offered::Missed
            }
            Err(TrySendError::Disconnected(_)) => Offered::Gone,
        }
    }
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

    /// The cluster has these nodes from now on.
    pub fn set_nodes(&mut self, nodes: Vec<NodeId>) {
        self.log.set_nodes(nodes);
    }

    /// The events from here on.
    pub fn subscribe(&mut self, interest: Interest) -> Receiver<Stamped> {
        let (sender, receiver) = sync_channel(MAX_EVENTS);
        if self.subscribers.len() >= MAX_SUBSCRIBERS {
            tracing::warn!("{MAX_SUBSCRIBERS} subscribers, the limit: the oldest one is ended");
            self.subscribers.remove(0);
        }
        self.subscribers.push(Subscriber { interest, sender, missed: 0 });
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
        for stamped in self.waiting.drain(..) {
            self.subscribers.retain_mut(|subscriber| {
                if subscriber.interest == Interest::Membership && is_of_call(&stamped.1) {
                    return true;
                }
                let offered = subscriber.offer(&stamped);
                dropped += u64::from(matches!(offered, Offered::Missed));
                !matches!(offered, Offered::Gone)
            });
        }
        dropped
    }
}

fn is_of_call(event: &Event) -> bool {
    matches!(
        event,
        Event::Executed { .. }
            | Event::Replied { .. }
            | Event::Copy { .. }
            | Event::NestedEnded { .. }
            | Event::NestedCopy { .. }
    )
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
        assert_eq!(receiver.recv().unwrap().0, 1);
        events.push(9, Event::Left);
        assert_eq!(events.deliver(), 0);
        let told: Vec<Event> = receiver.try_iter().map(|(_, event)| event).collect();
        assert_eq!(told[told.len() - 2..], [Event::Missed(3), Event::Left], "it is told how many");
        drop(receiver);
        events.push(0, Event::Left);
        assert_eq!(events.deliver(), 0);
        assert!(events.subscribers.is_empty(), "who has gone is forgotten");
        assert_eq!(events.history().len(), MAX_EVENT_HISTORY);
    }
}
