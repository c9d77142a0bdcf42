//! The data plane, as the programs' supervisor sees it.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use engine::Event;
use os::waker::Waker;
use supervisor::{Attaching, DataPlane, Tether};
use wire::GroupId;
use wire::ordered::GroupOptions;

use crate::executor::Executor;
use crate::order::Order;

/// Turns what the supervisor asks for into orders, and waits where their queue is full.
pub(crate) struct Orders {
    pub orders: SyncSender<Order>,
    pub waker: Arc<Waker>,
}

impl Orders {
    fn order(&self, order: Order) {
        // A data plane that has ended minds no replicas, and tells nobody anything.
        if self.orders.send(order).is_ok() {
            self.waker.wake();
        }
    }
}

impl DataPlane for Orders {
    fn attach(&self, name: String, options: GroupOptions, program: Attaching) {
        let executor = Executor::attached(GroupId::of(&name), options, program);
        self.order(Order::Attach { name, options, executor });
    }

    fn stand_by(&self, name: String, options: GroupOptions, tether: Tether) {
        let executor = Executor::standing_by(options, tether);
        self.order(Order::Attach { name, options, executor });
    }

    fn part(&self, group: GroupId, run: u64, lost: bool) {
        self.order(Order::Part { group, run, lost });
    }

    fn tell(&self, event: Event) {
        self.order(Order::Tell(event));
    }
}
