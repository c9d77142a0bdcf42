//! The whole: cells, the links between them, and time, which they share.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use cells::{End, LinkId};
use testkit::Queue;
use wire::{Duration, Incarnation, Time};

use super::options::Options;
use crate::celled::At;
use crate::check::{Verdict, demand};
use crate::cluster::{Cluster, Letter, Mail};
use crate::draw::Draw;
use crate::fabric::place_of;
use crate::options::Options as Drawn;
use crate::plant::Plant;
use crate::trace::Trace;
use crate::wires::Wires;

/// How often it is looked whether the system is one tree, once all has healed.
const LOOK: Duration = Duration::from_millis(50);

/// A fault of ways that lasts until it is over: from which cells to which nothing travels.
#[derive(Clone, Debug)]
pub(super) struct Fault(pub(super) Vec<(usize, usize)>);

/// A dial under way.
pub(super) struct Dial {
    pub(super) from: At,
    pub(super) life: Incarnation,
    pub(super) link: LinkId,
    pub(super) to: Vec<SocketAddr>,
    /// The address that is tried now, and until when.
    pub(super) next: usize,
    pub(super) until: Time,
}

/// A happening between cells.
pub(super) enum Happening {
    /// A dial tries an address, for the first time or again.
    Try(Dial),
    /// The next message of a link arrives at this end.
    Arrive {
        wire: usize,
        end: usize,
    },
    /// The next fault.
    Fault,
    Over(Fault),
    /// The faults are over.
    Calm,
    /// It is looked at the whole.
    Look,
}

/// The whole.
pub(super) struct System {
    pub(super) options: Options,
    pub(super) draw: Draw,
    pub(super) trace: Trace,
    pub(super) queue: Queue<Happening>,
    pub(super) cells: Vec<Cluster>,
    pub(super) wires: Wires,
    /// Faults that last, so many of each way.
    pub(super) cuts: BTreeMap<(usize, usize), u64>,
    pub(super) is_calm: bool,
    /// At the last look it was one tree.
    is_whole: bool,
}

impl System {
    pub(super) fn new(
        options: Options,
        cells: Vec<Drawn>,
        draw: &mut Draw,
        trace: Trace,
        plant: Plant,
    ) -> System {
        let aloud = trace.aloud();
        let wires = Wires::new(options.latency, draw.fork());
        let cluster = |options: Drawn| Cluster::new(options, &mut draw.fork(), plant, aloud);
        let cells = cells.into_iter().map(cluster).collect();
        System {
            options,
            draw: draw.fork(),
            trace,
            queue: Queue::default(),
            cells,
            wires,
            cuts: BTreeMap::new(),
            is_calm: false,
            is_whole: false,
        }
    }

    pub(super) fn now(&self) -> Time {
        self.queue.now()
    }

    pub(super) fn say(&self, words: impl FnOnce() -> String) {
        self.trace.say(self.now(), words);
    }

    pub(super) fn run(&mut self) -> Verdict {
        self.cells.iter_mut().for_each(Cluster::set_out);
        self.queue.push(Time::ZERO, Happening::Fault);
        self.queue.push(Time::ZERO + self.options.phase, Happening::Calm);
        while !self.cells.iter().all(Cluster::is_over) {
            self.advance()?;
        }
        self.finish()
    }

    /// The next happening: of the links, or of the cell whose own is due first.
    fn advance(&mut self) -> Verdict {
        let dues = self.cells.iter().enumerate().filter_map(|(cell, it)| Some((it.due()?, cell)));
        let next = dues.min();
        let own = self.queue.due();
        match next {
            Some((due, cell)) if own.is_none_or(|own| due < own) => {
                self.cells[cell].advance(due)?;
                self.carry_mail(cell);
                Ok(())
            }
            _ => {
                let happening = self.queue.pop();
                demand(happening.is_some(), "liveness", || "nothing is left to happen".into())?;
                happening.map_or(Ok(()), |happening| self.happen(happening))
            }
        }
    }

    fn happen(&mut self, happening: Happening) -> Verdict {
        match happening {
            Happening::Try(dial) => self.try_dial(dial),
            Happening::Arrive { wire, end } => return self.arrive(wire, end),
            Happening::Fault => self.fault(),
            Happening::Over(fault) => self.over(&fault),
            Happening::Calm => self.calm(),
            Happening::Look => self.look(),
        }
        Ok(())
    }

    /// Takes what a cell has to say to others.
    fn carry_mail(&mut self, cell: usize) {
        for Mail { at, from, letter } in self.cells[cell].take_mail() {
            let node = At { cell, node: from.node };
            let life = from.incarnation;
            match letter {
                Letter::Dial { link, to } => self.dial(at, (node, life), link, to),
                Letter::Close(link) => self.close(at, node, link),
                Letter::Send { link, message } => {
                    let due = self.wires.send(at, node, link, message);
                    self.arrives(due);
                }
                Letter::Ended { power } => self.end_links(at, node, power),
                Letter::Ask { cell: to, node, asked } => {
                    if let Some(refused) = self.cells[to].asked(at, node, asked) {
                        self.cells[cell].tell_caller(at, refused, Some(End::NoWay));
                    }
                }
                Letter::Told { cell: to, serial, end } => {
                    // The caller is beside the node.
                    self.cells[to].tell_caller(at, serial, end);
                }
            }
        }
    }

    /// A life has ended: its host tells the links' other ends, unless it has lost power.
    fn end_links(&mut self, at: Time, node: At, power: bool) {
        for link in self.wires.links_of(node) {
            if power {
                self.wires.abandon(node, link);
            } else {
                self.close(at, node, link);
            }
        }
    }

    fn close(&mut self, at: Time, node: At, link: LinkId) {
        let due = self.wires.close(at, node, link);
        self.arrives(due);
    }

    fn look(&mut self) {
        let lacks = self.lacks();
        self.is_whole = lacks.is_none();
        if let Some(lacks) = &lacks {
            self.say(|| format!("the system is not one tree yet: {lacks}"));
        }
        for cell in &mut self.cells {
            cell.set_unsettled(lacks.clone());
        }
        let next = self.now() + LOOK;
        self.queue.push(next, Happening::Look);
    }

    pub(super) fn begin_looks(&mut self) {
        self.queue.push(self.now(), Happening::Look);
    }

    fn finish(&mut self) -> Verdict {
        let lacks = self.lacks();
        // The last calls change what a cell reports: that was on its way when all cells had ended
        // (seed 20).
        demand(lacks.is_none() || self.is_whole, "the system is one tree again", || {
            lacks.unwrap_or_default()
        })?;
        self.cells.iter_mut().try_for_each(Cluster::finish)
    }

    /// The place of a node in its cell.
    pub(super) fn place(at: At) -> usize {
        place_of(at.node)
    }
}
