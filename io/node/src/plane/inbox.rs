//! Messages of other threads to the data plane: results of executors, and orders.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use os::waker::Waker;

use crate::executor::Report;
use crate::order::Order;

/// Results, and orders, that are taken before the sockets have their turn.
const BATCH: usize = 256;

/// One thing to do.
pub(super) enum Work {
    Report(Report),
    Order(Order),
}

/// The queues from other threads, which raise the waker behind all that they put in.
pub(crate) struct Inbox {
    waker: Arc<Waker>,
    orders: Receiver<Order>,
    results: Receiver<Report>,
    /// The orders and results that may still be taken in this turn.
    orders_left: usize,
    results_left: usize,
}

impl Inbox {
    pub fn new(waker: Arc<Waker>, orders: Receiver<Order>, results: Receiver<Report>) -> Inbox {
        Inbox { waker, orders, results, orders_left: 0, results_left: 0 }
    }

    /// Begins a turn: what is put in from here on raises the waker anew.
    pub fn open(&mut self) {
        self.waker.lower();
        (self.orders_left, self.results_left) = (BATCH, BATCH);
    }

    /// The next thing to do, results before orders; `None` at the turn's end. The waker reports the
    /// work that is left then.
    pub(super) fn next(&mut self) -> Option<Work> {
        if self.results_left > 0
            && let Ok(report) = self.results.try_recv()
        {
            self.results_left -= 1;
            return Some(Work::Report(report));
        }
        if self.orders_left > 0
            && let Ok(order) = self.orders.try_recv()
        {
            self.orders_left -= 1;
            return Some(Work::Order(order));
        }
        if self.results_left == 0 || self.orders_left == 0 {
            self.look_again();
        }
        None
    }

    /// There is more than one turn takes.
    pub fn look_again(&self) {
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{channel, sync_channel};

    use engine::{Executed, Ticket};
    use wire::{GroupId, Time};

    use super::*;
    use crate::executor::Done;
    use crate::poller::{EventFlags, Poller, Source};

    /// Turns until the waker is silent, and what each of them has taken.
    fn turns(inbox: &mut Inbox) -> Vec<usize> {
        let poller = Poller::new().unwrap();
        poller.add(&*inbox.waker, Source::Waker, EventFlags::IN).unwrap();
        let mut taken = Vec::new();
        loop {
            let mut ready = Vec::new();
            poller.wait(Time::ZERO, Time::ZERO, &mut ready).unwrap();
            if ready.is_empty() {
                return taken;
            }
            inbox.open();
            taken.push(std::iter::from_fn(|| inbox.next()).count());
        }
    }

    fn done() -> Report {
        let (group, ticket, executed) = (GroupId(1), Ticket(1), Executed::Restored(Ok(())));
        Report::Done(Done { group, serial: 1, ticket, executed, panicked: false, bytes: 0 })
    }

    #[test]
    fn what_one_turn_leaves_behind_is_taken_by_the_next_without_another_wake_up() {
        let (orders, order_queue) = sync_channel(2 * BATCH);
        let (results, result_queue) = channel();
        let waker = Arc::new(Waker::new().unwrap());
        let mut inbox = Inbox::new(waker.clone(), order_queue, result_queue);
        for _ in 0..BATCH + 10 {
            results.send(done()).unwrap();
            waker.wake();
        }
        assert_eq!(turns(&mut inbox), [BATCH, 10], "results alone");
        for _ in 0..BATCH + 10 {
            orders.try_send(Order::StopBench).map_err(drop).unwrap();
        }
        waker.wake();
        assert_eq!(turns(&mut inbox), [BATCH, 10], "orders alone");
    }
}
