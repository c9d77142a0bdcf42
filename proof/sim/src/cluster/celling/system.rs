//! A system sees this of its cell, and does this to it.

use cells::{Cell, End, LinkId, Message, Path};
use wire::{Duration, Incarnation, NodeId, Time};

use super::{Asked, Celled, Celling, Parcel};
use crate::cluster::{Cluster, Extra};

impl Cluster {
    fn of_cell(&self) -> &Celling {
        self.celling.as_ref().expect("it is a cell")
    }

    /// The cell's path.
    pub(crate) fn path(&self) -> &Path {
        &self.of_cell().plan.path
    }

    /// The node that is the seat, as it sees itself.
    pub(crate) fn seat(&self) -> Option<usize> {
        self.of_cell().desks.iter().position(|desk| desk.seen.rank == Some(0))
    }

    /// A node's replica of the book.
    pub(crate) fn book(&self, node: usize) -> &Cell {
        &self.of_cell().desks[node].book
    }

    /// The cells to which a node has links.
    pub(crate) fn linked(&self, node: usize) -> Vec<Path> {
        let links = self.of_cell().desks[node].router.neighbours();
        links.into_iter().map(|(path, ..)| path).collect()
    }

    /// The life that runs at a node.
    pub(crate) fn life(&self, node: usize) -> Option<Incarnation> {
        let host = &self.fabric.hosts[node];
        host.process.as_ref().map(|_| host.incarnation)
    }

    /// Nobody answers there: the host has no power, or its process is stopped.
    pub(crate) fn is_silent(&self, node: usize) -> bool {
        let host = &self.fabric.hosts[node];
        !host.powered || host.paused
    }

    /// The system lacks this.
    pub(crate) fn set_unsettled(&mut self, lacks: Option<String>) {
        if let Some(celling) = &mut self.celling {
            celling.unsettled = lacks;
        }
    }

    /// A link is up: of that number, to that node.
    pub(crate) fn link_up(
        &mut self,
        at: Time,
        node: usize,
        life: Incarnation,
        (link, proven): (LinkId, (Path, NodeId)),
    ) {
        self.send_parcel(at, node, life, Parcel::LinkUp(link, proven));
    }

    /// A link has ended, or could not be made.
    pub(crate) fn link_down(&mut self, at: Time, node: usize, life: Incarnation, link: LinkId) {
        self.send_parcel(at, node, life, Parcel::LinkDown(link));
    }

    /// A message has come by a link.
    pub(crate) fn message(
        &mut self,
        at: Time,
        node: usize,
        life: Incarnation,
        link: LinkId,
        message: Message,
    ) {
        self.send_parcel(at, node, life, Parcel::Message(link, message));
    }

    /// A caller of this cell makes a call at a node. The number of the attempt if its host refuses
    /// that; one that is silent says nothing.
    pub(crate) fn asked(&mut self, at: Time, node: usize, asked: Asked) -> Option<usize> {
        let host = &self.fabric.hosts[node];
        if host.process.is_none() {
            return host.powered.then_some(asked.serial);
        }
        let life = host.incarnation;
        self.send_parcel(at, node, life, Parcel::Asked(asked));
        None
    }

    /// A caller hears how an attempt has ended.
    pub(crate) fn tell_caller(&mut self, at: Time, serial: usize, end: Option<End>) {
        self.fabric.at(at, Extra::Celled(Celled::Told(serial, end)));
    }

    /// All nodes are stopped for so long.
    pub(crate) fn stop_all(&mut self, at: Time, span: Duration) {
        self.fabric.at(at, Extra::Celled(Celled::Stop(span)));
    }

    /// All lives end, if the cell keeps all on disks.
    pub(crate) fn lose_all(&mut self, at: Time) {
        self.fabric.at(at, Extra::Celled(Celled::Lose));
    }
}
