//! The cell as a node shows it to its router, as in `io/celld`.

use std::net::SocketAddr;

use cells::{Carrier, Cell, Command, Sight};
use engine::Status;
use wire::client::{Target, Targets};
use wire::system::CELL;
use wire::{Member, NodeId, Time, ViewNumber};

use crate::fabric::place_of;
use crate::identity::address;

/// The last that the node has shown.
pub(super) struct Seen {
    pub(super) book: Cell,
    pub(super) rank: Option<usize>,
    /// The carriers, the seat first.
    order: Vec<NodeId>,
    members: Vec<Member>,
    pub(super) view: ViewNumber,
}

impl Seen {
    pub(super) fn new(book: Cell) -> Seen {
        let (order, members) = (Vec::new(), Vec::new());
        Seen { book, rank: None, order, members, view: ViewNumber(0) }
    }

    /// The node shows this.
    pub(super) fn see(&mut self, status: &Status, book: &Cell) {
        self.book.clone_from(book);
        (self.order, self.members, self.rank) = (Vec::new(), Vec::new(), None);
        let group = status.groups.iter().find(|group| group.name == CELL);
        let is_quorate = status.ring.quorate == Some(true);
        let Some(group) = group.filter(|_| is_quorate) else { return };
        let synced = || group.replicas.iter().filter(|it| it.synced).map(|it| it.member);
        if !synced().any(|member| member == status.me) {
            return;
        }
        self.view = group.view;
        self.members.clone_from(&status.ring.members);
        // A node that hosts the book and does not carry is passed over by all.
        let carries = |it: &NodeId| {
            book.carrier(*it).is_some_and(|carrier| self.members.contains(&carrier.member))
        };
        self.order = synced().map(|member| member.node).filter(carries).collect();
        self.rank = self.order.iter().position(|node| *node == status.me.node);
    }

    pub(super) fn sight<'a>(&'a self, parents_at: &'a [SocketAddr], wall: Time) -> Sight<'a> {
        Sight {
            cell: &self.book,
            rank: self.rank,
            order: &self.order,
            parent: parents_at,
            nodes: u16::try_from(self.members.len()).unwrap_or(u16::MAX),
            wall,
        }
    }

    /// The book is to have what it lacks: that this node carries, that others do not any more, and
    /// what people export.
    pub(super) fn corrections(
        &self,
        me: Member,
        at: SocketAddr,
        exports: &[String],
    ) -> Vec<Command> {
        if !self.members.contains(&me) {
            return Vec::new();
        }
        let own = Carrier { member: me, links: at, calls: at };
        let is_there = self.book.carrier(me.node) == Some(&own);
        let mut all: Vec<Command> =
            (!is_there).then_some(Command::Carry(own)).into_iter().collect();
        if self.rank == Some(0) {
            let gone = self.book.carriers_beyond(&self.members);
            all.extend((!gone.is_empty()).then_some(Command::Gone(gone)));
            let missing = exports.iter().filter(|group| !self.book.exports(group));
            all.extend(missing.cloned().map(Command::Export));
        }
        all
    }
}

/// The targets of a group as a node knows it. `None`: it cannot say now.
pub(super) fn targets(status: &Status, name: &str) -> Option<Option<Targets>> {
    if status.ring.quorate != Some(true) {
        return None;
    }
    let Some(group) = status.groups.iter().find(|group| group.name == name) else {
        return Some(None);
    };
    let mut members: Vec<Member> =
        group.replicas.iter().filter(|it| it.synced).map(|it| it.member).collect();
    members.sort_by_key(|member| Some(*member) != group.primary);
    let target = |it: Member| Target { node: it.node, address: address(place_of(it.node)) };
    let nodes = members.into_iter().map(target).collect();
    Some(Some(Targets { view: group.view, style: group.options.style, nodes }))
}
