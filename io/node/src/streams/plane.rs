//! The way from the threads of streams to the data plane.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use os::waker::Waker;

use crate::order::Order;

/// A thread's way to the data plane.
#[derive(Clone)]
pub struct ToPlane {
    pub orders: SyncSender<Order>,
    pub waker: Arc<Waker>,
}

impl ToPlane {
    /// Waits while the data plane has too many orders.
    pub fn send(&self, order: Order) -> io::Result<()> {
        let sent = self.orders.send(order);
        self.waker.wake();
        sent.map_err(|_| io::Error::other("the node has stopped"))
    }
}
