//! The way from the threads of streams to the data plane.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender};

use os::waker::Waker;

use crate::order::Order;

/// A thread's way to the data plane.
#[derive(Clone)]
pub struct ToPlane {
    pub orders: SyncSender<Order>,
    pub waker: Arc<Waker>,
    /// Ends with the last of the node's threads.
    pub _running: Sender<()>,
}

impl ToPlane {
    /// Waits while the data plane has too many orders.
    pub fn send(&self, order: Order) -> io::Result<()> {
        let sent = self.orders.send(order);
        self.waker.wake();
        sent.map_err(|_| io::Error::other("the node has stopped"))
    }

    /// For the data plane itself, which must not wait for itself.
    pub fn send_at_once(&self, order: Order) {
        let _ = self.orders.try_send(order);
        self.waker.wake();
    }
}
