//! How other threads talk with the data plane.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Instant;

use admin::PoisonedCall;
use admin::cell::{Neighbour, Ranks};
use admin::events::{Interest, Stamped};
use admin::server::AuditLog;
use admin::status::Status;
use config::{NodeAddress, check_comer};
use engine::Event;
use job::Jobs;
use manager::cluster_state::Command;
use os::waker::Waker;
use supervisor::{ProgramError, Programs};
use wire::ordered::{Style, Usage};
use wire::roster::{Motion, Seat};
use wire::{Duration, Member, NodeId, ViewNumber};

use crate::celling::{SharedBook, SharedCalls};
use crate::directing::View as JobsView;
use crate::error::{GrowthRefused, HostError, MoveError, ReloadError, RestyleError, Stopped};
use crate::managing::View as ManagerView;
use crate::order::Order;
use crate::registering::{SharedRegistry, View};
use crate::renewal::Renewal;
use crate::shared::Shared;
use crate::sockets::gate::Tally;

/// The data plane answers in microseconds unless a handler on its thread is stuck.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Pause before an order is offered again to a queue that is full.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// This node has no part in it.
const NO_REGISTRY: &str =
    "this node has no registry: set on = true in [registry] of every node, and start them again";

/// This node has no part in it.
const NO_BOOK_OF_JOBS: &str = "this node runs no jobs: give it a folder in [jobs], as all nodes that may run ranks, and start it again";

/// This node has no part in it.
const NO_CELL: &str = "this node is of no cell: its cluster is called cell.PATH, and its configuration has [system], where it is of one (`steadfast init --system`)";

/// A replica's state comes after all that it has to execute before.
const STATE_WITHIN: Duration = Duration::from_secs(60);

/// The other threads' end.
#[derive(Debug)]
pub(crate) struct Control {
    pub me: Member,
    pub cluster: String,
    pub orders: SyncSender<Order>,
    pub waker: Arc<Waker>,
    /// Why the data plane ended, once it has.
    pub fate: OnceLock<Result<(), Stopped>>,
    /// How often something has changed that a manager looks at.
    pub changes: Arc<AtomicU64>,
    pub admin_requests: AtomicU64,
    pub admin_malformed: AtomicU64,
    /// Counts of the port for administrators, if there is one.
    pub admin_tally: OnceLock<Arc<Tally>>,
    /// The parts that are renewed while the node runs.
    pub renewal: Renewal,
    /// The deeds of administrators; `None` where there is no data directory.
    pub audit_log: Option<AuditLog>,
    /// This node keeps what it knows, in its data directory.
    pub keeps: bool,
    /// The file of the cluster's key; `None`: the ring is not sealed.
    pub cluster_key: Option<PathBuf>,
    /// `None` where there is no admin socket, beside which programs attach.
    pub programs: Option<Programs>,
    /// `None` where this node has no part in the registry.
    pub registry: Option<SharedRegistry>,
    /// `None` where this node has no part in the book of jobs.
    pub jobs: Option<Shared<Jobs>>,
    /// `None` where this node is of no cell.
    pub cell: Option<SharedBook>,
    /// Calls of handlers to groups of other cells.
    pub away: SharedCalls,
    /// The links of the process beside this node.
    pub neighbours: Mutex<Vec<Neighbour>>,
    /// How what is bound here ends, unless it is said.
    pub terms: registry::Terms,
}

impl Control {
    /// The control of a node without programs and registry.
    pub fn new(
        me: Member,
        renewal: Renewal,
        cluster: String,
        orders: SyncSender<Order>,
        waker: Arc<Waker>,
    ) -> Self {
        Control {
            me,
            renewal,
            cluster,
            orders,
            waker,
            fate: OnceLock::new(),
            changes: Arc::default(),
            admin_requests: AtomicU64::new(0),
            admin_malformed: AtomicU64::new(0),
            admin_tally: OnceLock::new(),
            audit_log: None,
            keeps: false,
            cluster_key: None,
            programs: None,
            registry: None,
            jobs: None,
            cell: None,
            away: SharedCalls::default(),
            neighbours: Mutex::default(),
            terms: registry::Terms::default(),
        }
    }

    /// Gives the data plane an order.
    ///
    /// # Errors
    /// It has ended, or its queue is full of orders that it does not take.
    pub fn order(&self, order: Order) -> Result<(), Stopped> {
        self.order_by(Instant::now() + ANSWER_WITHIN, order)
    }

    fn order_by(&self, deadline: Instant, mut order: Order) -> Result<(), Stopped> {
        loop {
            order = match self.orders.try_send(order) {
                Ok(()) => {
                    self.waker.wake();
                    return Ok(());
                }
                Err(TrySendError::Disconnected(_)) => return Err(self.stopped()),
                Err(TrySendError::Full(_)) if Instant::now() >= deadline => {
                    return Err(Stopped::Hung);
                }
                Err(TrySendError::Full(order)) => order,
            };
            thread::sleep(FULL_PAUSE);
        }
    }

    /// Why nobody answers.
    pub fn stopped(&self) -> Stopped {
        match self.fate.get() {
            Some(Err(stopped)) => stopped.clone(),
            _ => Stopped::Stopped,
        }
    }

    pub fn ask<T>(
        &self,
        within: Duration,
        order: impl FnOnce(SyncSender<T>) -> Order,
    ) -> Result<T, Stopped> {
        let (reply, answer) = sync_channel(1);
        let deadline = Instant::now() + within;
        self.order_by(deadline, order(reply))?;
        let left = deadline.saturating_duration_since(Instant::now());
        answer.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => Stopped::Hung,
            RecvTimeoutError::Disconnected => self.stopped(),
        })
    }

    /// Takes the configuration as its source has it now. Returns the keys whose new values wait for
    /// a restart.
    pub fn reload(&self) -> Result<Vec<String>, ReloadError> {
        self.renewal.renew(|renewed| {
            let renewed = Box::new(renewed);
            self.ask(ANSWER_WITHIN, |reply| Order::Renew { renewed, reply })
        })
    }

    pub fn ask_hosting(
        &self,
        order: impl FnOnce(SyncSender<Result<(), HostError>>) -> Order,
    ) -> Result<(), HostError> {
        self.ask(ANSWER_WITHIN, order)?
    }

    pub fn state(&self, group: &str) -> Result<Vec<u8>, HostError> {
        self.ask(STATE_WITHIN, |reply| Order::State { name: group.into(), reply })?
    }

    pub fn poisoned(&self, group: &str) -> Result<Vec<PoisonedCall>, HostError> {
        self.ask(ANSWER_WITHIN, |reply| Order::Poisoned { name: group.into(), reply })?
    }

    pub fn status(&self) -> Status {
        let mut status = self
            .ask(ANSWER_WITHIN, |reply| Order::Status { reply })
            .unwrap_or_else(|_| Status::stopped(self.me, &self.cluster));
        status.counters.admin_requests = self.admin_requests.load(Ordering::Relaxed);
        status.programs = self.programs.as_ref().map(Programs::status).unwrap_or_default();
        status.counters.admin_malformed = self.admin_malformed.load(Ordering::Relaxed);
        if let Some(tally) = self.admin_tally.get() {
            status.counters.admin_handshakes = tally.read();
        }
        status
    }

    /// Has a node come. It has begun when this returns.
    pub fn admit(&self, node: NodeAddress) -> Result<(), GrowthRefused> {
        let nodes = self.ask(ANSWER_WITHIN, |reply| Order::Nodes { reply })?;
        let own = nodes.iter().find(|it| it.id == self.me.node);
        if let Some(own) = own {
            check_comer(&node, &own.ring).map_err(GrowthRefused::Impossible)?;
        }
        let (id, ring) = (node.id, node.ring.to_vec());
        let at = |it: &&NodeAddress| it.id != id && it.ring.iter().any(|at| ring.contains(at));
        if let Some(other) = nodes.iter().find(at) {
            return Err(GrowthRefused::Address(other.id));
        }
        self.move_node(Motion::Admit(Seat { node: id, ring }))
    }

    /// Has a node come or go. It has begun when this returns.
    pub fn move_node(&self, motion: Motion) -> Result<(), GrowthRefused> {
        let (_, events) = self.subscribe(Interest::Membership);
        let node = motion.node();
        if !self.keeps {
            return Err(GrowthRefused::NoDataDir);
        }
        if self.ask(ANSWER_WITHIN, |reply| Order::Moving { reply })?.as_ref() == Some(&motion) {
            // A command that was interrupted is given again.
            return Ok(());
        }
        let deadline = Instant::now() + ANSWER_WITHIN;
        self.ask(ANSWER_WITHIN, |reply| Order::MoveNode { motion, reply })??;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match events.recv_timeout(left) {
                Ok((_, Event::Roster { news, .. })) if news.is_begin_of(node) => return Ok(()),
                Ok(_) => {}
                // Another one may have come first in the order.
                Err(_) => return Err(GrowthRefused::Unordered),
            }
        }
    }

    pub fn move_primary(&self, group: &str, to: NodeId) -> Result<ViewNumber, MoveError> {
        self.ask(ANSWER_WITHIN, |reply| Order::Move { name: group.into(), to, reply })?
    }

    pub fn restyle(&self, group: &str, style: Style) -> Result<ViewNumber, RestyleError> {
        self.ask(ANSWER_WITHIN, |reply| Order::Restyle { name: group.into(), style, reply })?
    }

    /// Tells all nodes what this host has to do. False if the ring takes nothing now.
    pub fn tell_usage(&self, usage: Usage) -> Result<bool, Stopped> {
        self.ask(ANSWER_WITHIN, |reply| Order::Usage { usage, reply })
    }

    /// Grows whenever there may be another picture.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Returns the manager's view.
    pub fn view(&self) -> Result<ManagerView, Stopped> {
        self.ask(ANSWER_WITHIN, |reply| Order::View { reply })
    }

    /// Says something to the cluster state. Whether it was taken, the cluster state shows.
    pub fn tell_cluster_state(&self, command: Command) -> Result<(), Stopped> {
        self.order(Order::Command { command, reply: None })
    }

    /// Returns the registry's view; `None` where there is no majority, or no state.
    pub fn sight(&self) -> Result<Option<View>, Stopped> {
        self.ask(ANSWER_WITHIN, |reply| Order::Sight { reply })
    }

    /// This node's replica of the registry.
    ///
    /// # Errors
    /// It has none.
    pub fn registry(&self) -> Result<&SharedRegistry, String> {
        self.registry.as_ref().ok_or_else(|| NO_REGISTRY.into())
    }

    /// The view for the book of jobs; `None` where there is no majority, or no state.
    pub fn jobs_view(&self) -> Result<Option<JobsView>, Stopped> {
        self.ask(ANSWER_WITHIN, |reply| Order::JobsView { reply })
    }

    /// This node's replica of the book of jobs.
    ///
    /// # Errors
    /// It has none.
    pub fn jobs_book(&self) -> Result<&Shared<Jobs>, String> {
        self.jobs.as_ref().ok_or_else(|| NO_BOOK_OF_JOBS.into())
    }

    /// The ranks of the cell's nodes; `None` where there is no majority, or no state.
    pub fn cell_ranks(&self) -> Result<Option<Ranks>, Stopped> {
        self.ask(ANSWER_WITHIN, |reply| Order::CellRanks { reply })
    }

    /// This node's replica of the cell's book.
    ///
    /// # Errors
    /// It has none.
    pub fn cell_book(&self) -> Result<&SharedBook, String> {
        self.cell.as_ref().ok_or_else(|| NO_CELL.into())
    }

    /// The programs that this node may run.
    pub fn programs(&self) -> Result<&Programs, ProgramError> {
        self.programs.as_ref().ok_or(ProgramError::NoPlace)
    }

    /// The past events, and those from here on. After the node has stopped: none.
    pub fn subscribe(&self, interest: Interest) -> (Vec<Stamped>, Receiver<Stamped>) {
        self.ask(ANSWER_WITHIN, |reply| Order::Subscribe { interest, reply })
            .unwrap_or_else(|_| (Vec::new(), sync_channel(1).1))
    }
}

#[cfg(test)]
mod tests {
    use wire::{Incarnation, NodeId};

    use super::*;

    impl Control {
        /// The control of a node whose data plane takes no orders; there is room for one.
        pub fn without_a_plane() -> (Control, Receiver<Order>) {
            let (orders, queue) = sync_channel(1);
            let me = Member { node: NodeId(1), incarnation: Incarnation(1) };
            let waker = Arc::new(Waker::new().unwrap());
            let renewal = Renewal::new(&config::Config::single(), false, None).unwrap();
            let control = Control::new(me, renewal, "test".into(), orders, waker);
            (control, queue)
        }
    }

    #[test]
    fn who_asks_a_data_plane_that_is_stuck_gets_an_answer_even_if_its_queue_is_full() {
        let (control, queue) = Control::without_a_plane();
        let ask = || {
            let within = Duration::from_millis(20);
            control.ask(within, |reply| Order::BenchProgress { reply }).unwrap_err()
        };
        assert_eq!(ask(), Stopped::Hung, "it is in the queue, and nobody answers");
        assert_eq!(ask(), Stopped::Hung, "there is no place in the queue");
        drop(queue);
        assert_eq!(ask(), Stopped::Stopped);
    }
}
