//! Faults strike, and are over.

use cells::{Attachment, Epoch, Message, Place};
use wire::{Duration, NodeId, Time};

use super::super::happening::Happening;
use super::super::options::HEALED;
use super::super::world::Forest;
use super::{DEAF, Fault, REATTACHED};
use crate::celled::At;
use crate::check::licence::Gap;
use crate::check::{Verdict, demand};

impl Forest {
    /// The next fault strikes.
    pub(in super::super) fn fault(&mut self) {
        if self.options.faults_over {
            return;
        }
        let pause = self.options.pause.as_micros() as u64;
        let next = self.now() + Duration::from_micros(self.draw.between(1, pause * 2));
        self.queue.push(next, Happening::Fault);
        let cell = self.draw.between(0, self.cells.len() as u64 - 1) as usize;
        let ids = self.cells[cell].ids();
        let at = At { cell, node: ids[self.draw.between(0, ids.len() as u64 - 1) as usize] };
        if self.draw.one_in(20) {
            return self.lie(at);
        }
        let fault = match self.draw.between(0, 9) {
            0..=3 => Fault::Kill(at),
            4 | 5 => Fault::Stop(at),
            6 | 7 => {
                let parent = self.cells[cell].parent.unwrap_or(cell);
                match self.draw.between(0, 3) {
                    0 => Fault::Silence(cell, parent),
                    1 => Fault::Silence(parent, cell),
                    _ => Fault::Cut(cell, parent),
                }
            }
            8 => Fault::KillCell(cell),
            _ => Fault::StopCell(cell),
        };
        if self.strike(&fault) {
            self.faults += 1;
            self.broken += 1;
            self.calm_since = None;
            self.say(|| format!("FAULT {fault:?}"));
            let most = HEALED.as_millis() as u64;
            let span = Duration::from_millis(self.draw.between(20, most - 200));
            if let Fault::KillCell(cell) | Fault::StopCell(cell) = fault {
                let (at, faults) = (self.now() + REATTACHED, self.faults);
                self.queue.push(at, Happening::Reattached { cell, faults });
            }
            self.look_for_deaf(&fault);
            self.queue.push(self.now() + span, Happening::Over(fault));
        }
    }

    /// It is looked later whether those who hear nothing have noticed.
    fn look_for_deaf(&mut self, fault: &Fault) {
        let ways = match *fault {
            Fault::Cut(one, other) => vec![(one, other), (other, one)],
            Fault::Silence(from, to) => vec![(from, to)],
            _ => Vec::new(),
        };
        for (from, to) in ways {
            let (at, faults) = (self.now() + DEAF, self.faults);
            self.queue.push(at, Happening::Deaf { from, to, faults });
        }
    }

    /// A link that nothing comes by is closed, if nothing else happened.
    pub(in super::super) fn check_deaf(&self, (from, to): (usize, usize), faults: u64) -> Verdict {
        let began = Time(self.now().0 - DEAF.as_nanos() as u64);
        if self.broken != 1 || self.faults != faults || self.over_at > began {
            return Ok(());
        }
        let deaf = self.net.deaf(from, to, began);
        demand(deaf.is_empty(), "a silent link is closed", || {
            format!("{deaf:?} have heard nothing from cell {from} for {DEAF:?}")
        })
    }

    /// False: it cannot strike now.
    fn strike(&mut self, fault: &Fault) -> bool {
        match *fault {
            Fault::Kill(at) | Fault::Stop(at) if !self.cells[at.cell].acts(at.node) => {
                return false;
            }
            Fault::Kill(at) => {
                self.kill(at);
                self.form(at.cell, Gap::Killed);
            }
            Fault::Stop(at) => {
                self.cells[at.cell].set_stopped(at.node, true);
                self.form(at.cell, Gap::Silent);
            }
            Fault::Cut(one, other) if one == other => return false,
            Fault::Cut(one, other) => {
                self.net.cut(one, other);
                self.net.cut(other, one);
            }
            Fault::Silence(from, to) if from == to => return false,
            Fault::Silence(from, to) => self.net.cut(from, to),
            Fault::KillCell(cell) | Fault::StopCell(cell) => {
                let ids = self.cells[cell].ids();
                if !ids.iter().all(|node| self.cells[cell].acts(*node)) {
                    return false;
                }
                let kills = matches!(fault, Fault::KillCell(_));
                for node in ids {
                    match kills {
                        true => self.kill(At { cell, node }),
                        false => self.cells[cell].set_stopped(node, true),
                    }
                }
                self.cells[cell].set_others(false);
                self.form(cell, Gap::Silent);
            }
        }
        true
    }

    /// A node claims to be another cell: one that has its keys can do no more.
    fn lie(&mut self, at: At) {
        let Some(parent) = self.cells[at.cell].parent else { return };
        let mut siblings = (0..self.cells.len()).filter(|cell| *cell != at.cell);
        let is_sibling = |cell: &usize| self.cells[*cell].parent == Some(parent);
        let Some(other) = siblings.rfind(is_sibling) else { return };
        if let Some(link) = self.net.link_to(at, parent) {
            let place = Place { path: self.cells[other].path.clone(), at: Vec::new() };
            let founded = self.cells[other].book.founded() + 1;
            let forged = Attachment { place, epoch: Epoch(0), founded, nodes: 1 };
            self.say(|| format!("FAULT {at:?} claims to be cell {other}"));
            self.send(at, link, Message::Attach(forged));
        }
    }

    /// The cells below one that was lost whole are attached elsewhere, if nothing else happened.
    pub(in super::super) fn check_reattached(&mut self, cell: usize, faults: u64) -> Verdict {
        let (lost, above) = (&self.cells[cell], self.cells[cell].parent);
        let is_back = lost.ids().into_iter().any(|node| lost.acts(node));
        let was_alone = self.now().since(self.over_at) >= REATTACHED;
        if self.broken != 1 || !was_alone || self.faults != faults || above.is_none() || is_back {
            return Ok(());
        }
        for child in self.cells.iter().filter(|child| child.parent == Some(cell)) {
            let to = child.book.above().first().map(|place| &place.path);
            demand(
                to != Some(&lost.path),
                "a cell whose parent is lost attaches above it",
                || format!("{} is attached to {to:?}, lost for {REATTACHED:?}", child.path),
            )?;
        }
        Ok(())
    }

    fn kill(&mut self, at: At) {
        self.end_links(at);
        self.cells[at.cell].kill(at.node);
    }

    /// A fault is over.
    pub(in super::super) fn over(&mut self, fault: Fault) {
        self.say(|| format!("OVER {fault:?}"));
        match fault {
            Fault::Kill(at) if !self.cells[at.cell].runs(at.node) => self.start(at),
            Fault::Stop(at) => self.resume(at.cell, &[at.node]),
            Fault::Cut(one, other) => {
                for (from, to) in [(one, other), (other, one)] {
                    let waited = self.net.mend(from, to);
                    self.arrives(waited);
                }
            }
            Fault::Silence(from, to) => {
                let waited = self.net.mend(from, to);
                self.arrives(waited);
            }
            Fault::KillCell(cell) => {
                self.cells[cell].set_others(true);
                for node in self.cells[cell].ids() {
                    if !self.cells[cell].runs(node) {
                        self.start(At { cell, node });
                    }
                }
            }
            Fault::StopCell(cell) => {
                self.cells[cell].set_others(true);
                let ids = self.cells[cell].ids();
                self.resume(cell, &ids);
            }
            Fault::Kill(_) => {}
        }
        self.broken -= 1;
        self.over_at = self.now();
        if self.broken == 0 {
            self.calm_since = Some(self.now());
        }
    }

    fn resume(&mut self, cell: usize, nodes: &[NodeId]) {
        for node in nodes {
            self.cells[cell].set_stopped(*node, false);
            let at = At { cell, node: *node };
            self.queue.push(self.now(), Happening::Wake(at));
            let waited = self.net.waiting(|_, target| target == at);
            self.arrives(waited);
        }
        self.form(cell, Gap::Joined);
    }
}
