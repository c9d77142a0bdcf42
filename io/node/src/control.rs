//! How other threads talk with the data plane.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use admin::bench::{Ask, Progress};
use admin::deployments::{DeploymentsStatus, SeatStatus};
use admin::events::{Interest, Stamped};
use admin::registry::RegistryStatus;
use admin::status::Status;
use admin::{KeyAsk, PoisonedCall};
use engine::Event;
use manager::Wish;
use manager::book::{Answer, Command, Deployment};
use manager::placement::preview;
use os::clock::wall_clock;
use os::waker::Waker;
use registry::Listing;
use supervisor::ProgramError;
use supervisor::Programs;
use wire::ordered::{Style, Usage};
use wire::{Duration, GroupId, Member, NodeId, Time, ViewNumber};

use crate::error::{HostError, MoveError, RestyleError, Stopped};
use crate::managing::View as ManagerView;
use crate::order::{BenchOutcome, Order};
use crate::registering::{Shelf, View};
use crate::sockets::gate::Tally;

/// The data plane answers in microseconds unless a handler on its thread is stuck.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Pause before an order is offered again to a queue that is full.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// This node cannot say anything of deployments.
const NO_BOOK: &str = "this node does not know what is deployed: set on = true in [manager] of every node; if it is, its replica of the manager's group \
                       has not got the state (`steadfast status` shows steadfast.manager, and whether there is a quorum)";

/// No answer came of a command.
const UNANSWERED: &str = "the manager's group did not answer in time, and whether it will do it nobody knows: look at `steadfast deployments`, and at \
                          `steadfast status` whether there is a quorum";

/// This node has no part in it.
const NO_REGISTRY: &str =
    "this node has no registry: set on = true in [registry] of every node, and start them again";

/// No answer came of what was said to the registry.
const UNREGISTERED: &str = "the registry did not answer in time, and whether it will do it nobody knows: look at `steadfast registry list`, and at \
                            `steadfast status` whether there is a quorum";

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
    /// Of the port for administrators, if there is one.
    pub admin_tally: OnceLock<Arc<Tally>>,
    /// `None` where there is no admin socket, beside which programs attach.
    pub programs: Option<Programs>,
    /// `None` where this node has no part in the registry.
    pub registry: Option<Shelf>,
    /// How what is bound here ends, unless it is said.
    pub terms: registry::Terms,
}

impl Control {
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

    /// What there is for the manager to see.
    pub fn view(&self) -> Result<ManagerView, Stopped> {
        self.ask(ANSWER_WITHIN, |reply| Order::View { reply })
    }

    /// Tells of something that another thread has seen.
    pub fn tell(&self, event: Event) -> Result<(), Stopped> {
        self.order(Order::Tell(event))
    }

    /// Says something to the book. Whether it was taken, the book shows.
    pub fn tell_book(&self, command: Command) -> Result<(), Stopped> {
        self.order(Order::Command { command, reply: None })
    }

    /// Says something to the book, and waits for the answer.
    ///
    /// # Errors
    /// It is refused, or there is no answer: the text says what to do.
    pub fn command(&self, command: Command) -> Result<Answer, String> {
        let ask = |reply| Order::Command { command, reply: Some(reply) };
        self.ask(ANSWER_WITHIN, ask).map_err(|stopped| match stopped {
            Stopped::Hung => UNANSWERED.into(),
            stopped => stopped.to_string(),
        })?
    }

    /// What is deployed, and where.
    ///
    /// # Errors
    /// This node does not know, and why.
    pub fn deployments(&self) -> Result<DeploymentsStatus, String> {
        let view = self.view().map_err(|stopped| stopped.to_string())?;
        let Some(book) = &view.book else { return Err(NO_BOOK.into()) };
        Ok(DeploymentsStatus::new(Time(wall_clock()), &view.picture, book))
    }

    /// Where this would go.
    ///
    /// # Errors
    /// It would be refused, or this node does not know.
    pub fn preview(&self, deployment: Deployment) -> Result<Vec<SeatStatus>, String> {
        let view = self.view().map_err(|stopped| stopped.to_string())?;
        let Some(book) = &view.book else { return Err(NO_BOOK.into()) };
        let seats = preview(Time(wall_clock()), &view.picture, book, deployment);
        let seats = seats.map_err(|refusal| refusal.to_string())?;
        Ok(seats.into_iter().map(SeatStatus::from).collect())
    }

    /// What there is for the registry to see.
    pub fn sight(&self) -> Result<Option<View>, Stopped> {
        self.ask(ANSWER_WITHIN, |reply| Order::Sight { reply })
    }

    /// Says something to the registry. Whether it was taken, the registry shows.
    pub fn tell_registry(&self, command: registry::Command) -> Result<(), Stopped> {
        self.order(Order::Register { command, reply: None })
    }

    /// Says something to the registry, and waits for the answer.
    ///
    /// # Errors
    /// It is refused, or there is no answer: the text says what to do.
    pub fn register(&self, command: registry::Command) -> Result<registry::Answer, String> {
        self.registry()?;
        let ask = |reply| Order::Register { command, reply: Some(reply) };
        self.ask(ANSWER_WITHIN, ask).map_err(|stopped| match stopped {
            Stopped::Hung => UNREGISTERED.into(),
            stopped => stopped.to_string(),
        })?
    }

    /// This node's replica of the registry.
    ///
    /// # Errors
    /// It has none.
    pub fn registry(&self) -> Result<&Shelf, String> {
        self.registry.as_ref().ok_or_else(|| NO_REGISTRY.into())
    }

    /// Who can be reached by which name.
    ///
    /// # Errors
    /// This node has no part in it, or has stopped.
    pub fn look_up(&self, ask: &registry::Ask) -> Result<RegistryStatus, String> {
        let shelf = self.registry()?;
        let view = self.sight().map_err(|stopped| stopped.to_string())?;
        let Listing { epoch, bindings } = shelf.registry().answer(ask);
        Ok(RegistryStatus {
            node: self.me.node,
            leads: view.as_ref().and_then(|view| view.leads),
            current: view.is_some(),
            epoch,
            bindings,
        })
    }

    /// Asks for what the manager wishes.
    pub fn wish(&self, wish: Wish) -> Result<(), Stopped> {
        self.order(Order::Wish(wish))
    }

    /// How critical the calls of these groups are whose clients do not say it.
    pub fn set_criticalities(&self, of: BTreeMap<GroupId, u8>) -> Result<(), Stopped> {
        self.order(Order::Criticalities(of))
    }

    /// The programs that this node may run.
    pub fn programs(&self) -> Result<&Programs, ProgramError> {
        self.programs.as_ref().ok_or(ProgramError::NoPlace)
    }

    /// Does something about the cluster's key; says which it is about.
    pub fn key(&self, ask: KeyAsk) -> Result<u8, String> {
        let done = self.ask(ANSWER_WITHIN, |reply| Order::Key { ask, reply });
        done.map_err(|stopped| stopped.to_string())?
    }

    /// Begins a benchmark; its outcome comes in time. An outcome that is not taken is dropped.
    pub fn bench(&self, ask: &Ask) -> Result<Receiver<BenchOutcome>, Stopped> {
        let (reply, outcome) = sync_channel(1);
        self.order(Order::Bench { request: ask.request(), reply })?;
        Ok(outcome)
    }

    /// How far the benchmark under way is, if there is one.
    pub fn bench_progress(&self) -> Option<Progress> {
        let progress = self.ask(ANSWER_WITHIN, |reply| Order::BenchProgress { reply });
        progress.ok().flatten().map(Progress::from)
    }

    /// The benchmark that was asked for here is not wanted any more.
    pub fn stop_bench(&self) {
        // A node that has stopped carries no load either.
        let _ = self.order(Order::StopBench);
    }

    /// The past events, and those from here on. Of a node that has stopped: none.
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
        /// Of a node whose data plane takes no orders; there is room for one.
        pub fn without_a_plane() -> (Control, Receiver<Order>) {
            let (orders, queue) = sync_channel(1);
            let control = Control {
                me: Member { node: NodeId(1), incarnation: Incarnation(1) },
                cluster: "test".into(),
                orders,
                waker: Arc::new(Waker::new().unwrap()),
                fate: OnceLock::new(),
                changes: Arc::default(),
                admin_requests: AtomicU64::new(0),
                admin_malformed: AtomicU64::new(0),
                admin_tally: OnceLock::new(),
                programs: None,
                registry: None,
                terms: registry::Terms::default(),
            };
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
