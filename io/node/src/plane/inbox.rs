//! What other threads have for the data plane: results of executors, and orders.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use admin::events::{Interest, Stamped};
use admin::status::Status;
use admin::{KeyAsk, PoisonedCall};
use engine::{BenchError, BenchProgress, BenchRequest, BenchResult, Event};
use manager::Wish;
use manager::book::{Answer, Command};
use os::waker::Waker;
use wire::GroupId;
use wire::ordered::{GroupOptions, Style, Usage};
use wire::{NodeId, ViewNumber};

use super::backups::BackupOrder;
use crate::error::{HostError, MoveError, RestyleError};
use crate::executor::{Executor, Report, StateReply};
use crate::keeper::Kept;
use crate::managing::View;
use crate::registering::View as Sighted;

/// Results, and orders, that are taken before the sockets have their turn.
const BATCH: usize = 256;

/// What comes of a benchmark.
pub(crate) type BenchOutcome = Result<BenchResult, BenchError>;

/// Who waits for the outcome of a move.
pub(crate) type MoveReply = SyncSender<Result<ViewNumber, MoveError>>;

/// Who waits for the outcome of a change of style.
pub(crate) type RestyleReply = SyncSender<Result<ViewNumber, RestyleError>>;

/// What the program's other threads want of the data plane.
pub(crate) enum Order {
    Host {
        name: String,
        options: GroupOptions,
        executor: Executor,
        reply: SyncSender<Result<(), HostError>>,
    },
    /// A program that has shown its token serves a replica from here on.
    Attach {
        name: String,
        options: GroupOptions,
        executor: Executor,
    },
    /// This start of a program is over, or its replica is to leave.
    Part {
        group: GroupId,
        run: u64,
        lost: bool,
    },
    /// Something has happened elsewhere in the node.
    Tell(Event),
    Unhost {
        name: String,
        reply: SyncSender<Result<(), HostError>>,
    },
    State {
        name: String,
        reply: StateReply,
    },
    Poisoned {
        name: String,
        reply: SyncSender<Result<Vec<PoisonedCall>, HostError>>,
    },
    Status {
        reply: SyncSender<Status>,
    },
    Bench {
        request: BenchRequest,
        reply: SyncSender<BenchOutcome>,
    },
    BenchProgress {
        reply: SyncSender<Option<BenchProgress>>,
    },
    StopBench,
    Subscribe {
        interest: Interest,
        reply: SyncSender<(Vec<Stamped>, Receiver<Stamped>)>,
    },
    /// A group's primary is to be at this node; the view in which it is.
    Move {
        name: String,
        to: NodeId,
        reply: MoveReply,
    },
    /// A group is to have this style; the view that has it.
    Restyle {
        name: String,
        style: Style,
        reply: RestyleReply,
    },
    /// All nodes are to know what this host has to do; whether the ring takes it.
    Usage {
        usage: Usage,
        reply: SyncSender<bool>,
    },
    /// What is there for the manager to see.
    View {
        reply: SyncSender<View>,
    },
    /// This is said to the book; the answer, if anybody waits for it.
    Command {
        command: Command,
        reply: Option<CommandReply>,
    },
    /// What is there for the registry to see; `None` where there is no majority, or not the state.
    Sight {
        reply: SyncSender<Option<Sighted>>,
    },
    /// This is said to the registry; the answer, if anybody waits for it.
    Register {
        command: registry::Command,
        reply: Option<RegistryReply>,
    },
    /// What the manager wishes.
    Wish(Wish),
    /// How critical calls are whose clients do not say it, by group.
    Criticalities(BTreeMap<GroupId, u8>),
    /// What the admin asks of the cluster's key; the number of the key that it is about.
    Key {
        ask: KeyAsk,
        reply: SyncSender<Result<u8, String>>,
    },
    /// A state is to be saved, or to be restored.
    Backup(BackupOrder),
    /// The key file has this.
    KeyKept(Kept),
    Stop,
}

/// Who waits for what the book answers.
pub(crate) type CommandReply = SyncSender<Result<Answer, String>>;

/// Who waits for what the registry answers.
pub(crate) type RegistryReply = SyncSender<Result<registry::Answer, String>>;

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
    /// What may still be taken in this turn.
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

    /// The next thing to do, results before orders; `None` at the turn's end. Of what is left behind
    /// then, the waker tells.
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
