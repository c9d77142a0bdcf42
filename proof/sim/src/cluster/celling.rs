//! A cluster that is a cell of a system: its nodes host the cell's book, and each has a router. Its
//! clients are the routers' executors of calls that come from callers of this cell and of others.
//!
//! The work that `io/celld` does between a node and its router is a thin adapter here:
//!
//! - `seen.rs`: the book and the ranks as a node shows them
//! - `book.rs`: the node's replica of the book
//! - `carrying.rs`: what routers want done
//! - `gaps.rs`: how long the ring takes
//! - `system.rs`: what the system sees of its cell, and does to it
//! - `doors.rs`: calls that callers make at nodes, and calls that are executed here

mod book;
mod carrying;
mod doors;
mod gaps;
mod seen;
mod system;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use cells::{Call, Cell, Chosen, End, LinkId, Message, Path, Router, Shape, Sight};
use wire::client::Targets;
use wire::{Duration, Incarnation, Member, NodeId, Time};

use crate::celled::{address, book, router};
use crate::check::licence::Gap;
use crate::fabric::node_id;
use crate::run::Plant;
use seen::Seen;

/// A cell, and what its nodes and its callers are told of the system.
#[derive(Clone, Debug)]
pub struct CellPlan {
    /// Which of the cells.
    pub index: usize,
    /// Its path.
    pub path: Path,
    /// Where the links of the cell above are taken.
    pub parents_at: Vec<SocketAddr>,
    /// The overlay.
    pub shape: Shape,
    /// Groups that are exported.
    pub exports: Vec<String>,
    /// Each caller's cell, and how many nodes that has.
    pub homes: Vec<(usize, usize)>,
}

/// Something that leaves the cell, or that its links are to do.
pub(crate) struct Mail {
    /// When it leaves.
    pub(crate) at: Time,
    /// The node that it is from, and its life.
    pub(crate) from: Member,
    pub(crate) letter: Letter,
}

/// The kind.
pub(crate) enum Letter {
    Dial {
        link: LinkId,
        to: Vec<SocketAddr>,
    },
    Close(LinkId),
    Send {
        link: LinkId,
        message: Message,
    },
    /// The life has ended: the host closes all links, unless it has lost power.
    Ended {
        power: bool,
    },
    /// A caller's attempt leaves for a node of the caller's cell.
    Ask {
        cell: usize,
        node: usize,
        asked: Asked,
    },
    /// An attempt has ended at a node of the caller's cell. `None`: its connection is gone.
    Told {
        cell: usize,
        serial: usize,
        end: Option<End>,
    },
}

/// A call as a caller makes it at a node.
pub(crate) struct Asked {
    /// The cell that is called, and its number of the attempt.
    pub(crate) cell: usize,
    pub(crate) serial: usize,
    pub(crate) to: Path,
    pub(crate) call: Call,
    pub(crate) left: Duration,
}

/// Something that a node's router is told.
pub(super) enum Parcel {
    LinkUp(LinkId, (Path, NodeId)),
    LinkDown(LinkId),
    Message(LinkId, Message),
    Asked(Asked),
    /// So a call ended that was executed in this cell.
    Executed(u64, End),
    /// A timer is due.
    Due,
}

/// Something that the system does to its cell.
pub(super) enum Celled {
    /// A caller hears of an attempt.
    Told(usize, Option<End>),
    /// All nodes are stopped for so long.
    Stop(Duration),
    /// All nodes lose their lives, if the cell keeps all on disks.
    Lose,
}

/// A node's part of the cell.
struct Desk {
    router: Router<Chosen>,
    /// Its replica of the book.
    book: Cell,
    seen: Seen,
    /// The node has something to show that is not seen yet.
    is_news: bool,
    /// The router has been told something, and has not looked since.
    is_touched: bool,
    /// When its timer is due, in true time.
    wake: Option<Time>,
    correct_at: Time,
    /// Orders under way: the node's number of each, the router's, and since when.
    orders: BTreeMap<u64, (Option<u64>, Time)>,
    /// Groups that are asked for, and their targets as the router has them.
    located: BTreeMap<String, Option<Option<Targets>>>,
    /// Callers that wait here: the cell that each has called, and its number of the attempt.
    callers: BTreeMap<u64, (usize, usize)>,
    next_caller: u64,
    /// The attempts that are executed here, and the router's numbers of them.
    executing: BTreeMap<usize, u64>,
}

/// A gap that is being measured.
struct Open {
    gap: Gap,
    since: Time,
    /// The one who goes or comes.
    member: Member,
}

/// The gaps of one cell.
#[derive(Default)]
struct Gaps {
    open: Option<Open>,
    /// When something happened last.
    disturbed: Time,
    /// How many were measured.
    measured: u64,
}

/// The cell.
pub(super) struct Celling {
    plan: CellPlan,
    plant: Plant,
    desks: Vec<Desk>,
    mail: Vec<Mail>,
    /// The system lacks this, as far as its world can see. At first that is not known.
    unsettled: Option<String>,
    gaps: Gaps,
}

impl Desk {
    fn new(plan: &CellPlan, node: usize, plant: Plant) -> Desk {
        let book = book(&plan.path, plant);
        Desk {
            router: router(node_id(node), plan.shape, plant),
            seen: Seen::new(book.clone()),
            book,
            is_news: true,
            is_touched: true,
            wake: None,
            correct_at: Time::ZERO,
            orders: BTreeMap::new(),
            located: BTreeMap::new(),
            callers: BTreeMap::new(),
            next_caller: 0,
            executing: BTreeMap::new(),
        }
    }

    /// Gives the router something, with what it sees of the cell at this time of the wall.
    fn touch<T>(
        &mut self,
        parents_at: &[SocketAddr],
        wall: Time,
        give: impl FnOnce(&mut Router<Chosen>, &Sight<'_>) -> T,
    ) -> T {
        self.is_touched = true;
        give(&mut self.router, &self.seen.sight(parents_at, wall))
    }
}

impl Celling {
    pub(super) fn new(plan: CellPlan, nodes: usize, plant: Plant) -> Celling {
        let desks = (0..nodes).map(|node| Desk::new(&plan, node, plant)).collect();
        Celling {
            plan,
            plant,
            desks,
            mail: Vec::new(),
            unsettled: Some("nobody has looked at the whole yet".into()),
            gaps: Gaps::default(),
        }
    }

    fn links_at(&self, node: usize) -> SocketAddr {
        address(self.plan.index, node_id(node))
    }

    fn post(&mut self, at: Time, from: Member, letter: Letter) {
        self.mail.push(Mail { at, from, letter });
    }
}

/// The life in which a node was told something.
type Life = Incarnation;
