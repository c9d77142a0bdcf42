//! The whole: cells, links and time, and each happening brought to the one it concerns.

use std::collections::BTreeMap;

use cells::{Command, LinkId, Message, Output, Path};
use testkit::Queue;
use wire::{Duration, NodeId, Time};

use super::calls::Calls;
use super::cell::CellModel;
use super::happening::Happening;
use super::options::{self, Options};
use crate::celled::{At, tree};
use crate::check::licence::Gap;
use crate::check::{Verdict, demand};
use crate::draw::Draw;
use crate::plant::Plant;
use crate::trace::Trace;
use crate::wires::Wires;

/// The whole.
pub(super) struct Forest {
    pub(super) options: Options,
    pub(super) draw: Draw,
    pub(super) trace: Trace,
    pub(super) queue: Queue<Happening>,
    pub(super) cells: Vec<CellModel>,
    pub(super) paths: BTreeMap<Path, usize>,
    pub(super) net: Wires,
    pub(super) calls: Calls,
    /// Since when nothing was broken.
    pub(super) calm_since: Option<Time>,
    pub(super) faults: u64,
    pub(super) broken: usize,
    /// When a fault was over last.
    pub(super) over_at: Time,
    /// The time of the last happening, and how many there were at it.
    pub(super) last: Time,
    pub(super) at_once: u64,
}

impl Forest {
    pub(super) fn new(options: Options, mut draw: Draw, trace: Trace, plant: Plant) -> Forest {
        let begin = Time(1_700_000_000_000_000_000);
        let mut queue = Queue::default();
        queue.push(begin, Happening::Load);
        let cells: Vec<CellModel> = tree(options.cells, options.fan_out)
            .into_iter()
            .enumerate()
            .map(|(cell, (path, parent))| CellModel::new(cell, path, parent, &options, plant))
            .collect();
        let paths = cells.iter().enumerate().map(|(at, cell)| (cell.path.clone(), at)).collect();
        let net = Wires::new(options.latency, draw.fork());
        let calls = Calls::new();
        Forest {
            options,
            draw,
            trace,
            queue,
            cells,
            paths,
            net,
            calls,
            calm_since: None,
            faults: 0,
            broken: 0,
            over_at: Time::ZERO,
            last: Time::ZERO,
            at_once: 0,
        }
    }

    pub(super) fn now(&self) -> Time {
        self.queue.now()
    }

    pub(super) fn run(&mut self) -> Verdict {
        // The first happening sets the clock.
        self.queue.pop();
        let begin = self.now();
        for cell in 0..self.cells.len() {
            for node in self.cells[cell].ids() {
                self.start(At { cell, node });
            }
        }
        self.calm_since = Some(begin);
        self.until(begin + options::SETTLE)?;
        self.check_settled()?;
        let faults_end = begin + options::SETTLE + self.options.phase;
        self.queue.push(self.now(), Happening::Fault);
        self.queue.push(self.now(), Happening::Load);
        self.until(faults_end)?;
        self.options.faults_over = true;
        // All that is broken heals, and all is well again.
        self.until(faults_end + options::HEALED + options::SETTLE)?;
        self.options.load_over = true;
        self.until(self.now() + options::ENDED)?;
        self.check_settled()?;
        self.check_ended()
    }

    pub(super) fn until(&mut self, end: Time) -> Verdict {
        while self.queue.due().is_some_and(|due| due <= end) {
            let Some(happening) = self.queue.pop() else { break };
            self.happen(happening)?;
        }
        // Time goes on where nothing happens.
        self.queue.push(end, Happening::Wake(At { cell: 0, node: NodeId(0) }));
        while self.queue.now() < end {
            let Some(happening) = self.queue.pop() else { break };
            self.happen(happening)?;
        }
        Ok(())
    }

    pub(super) fn happen(&mut self, happening: Happening) -> Verdict {
        let now = self.now();
        self.at_once = if self.last == now { self.at_once + 1 } else { 0 };
        self.last = now;
        demand(self.at_once < options::AT_ONCE, "time goes on", || {
            format!("{} happenings at {now:?}, the last at {:?}", self.at_once, happening.place())
        })?;
        if happening.at().is_some_and(|at| self.cells[at.cell].is_stopped(at.node)) {
            // It is told when it goes on.
            self.queue.push(self.now() + options::STOPPED, happening);
            return Ok(());
        }
        match happening {
            Happening::Wake(at) => self.wake(at),
            Happening::Dial(dial) => self.dial_on(dial),
            Happening::Dialled { at, life, link, to } => self.dialled(at, life, link, to),
            Happening::Arrive { wire, end } => self.arrive(wire, end)?,
            Happening::Order { at, life, ask, command } => self.order(at, life, ask, *command)?,
            Happening::Execute { at, life, call, request, until } => {
                self.execute(at, life, call, &request, until)?;
            }
            Happening::Locate { at, life, group } => self.locate(at, life, &group),
            Happening::Formed { cell, formation } => self.formed(cell, formation),
            Happening::Fault => self.fault(),
            Happening::Over(fault) => self.over(fault),
            Happening::Reattached { cell, faults } => self.check_reattached(cell, faults)?,
            Happening::Deaf { from, to, faults } => self.check_deaf((from, to), faults)?,
            Happening::Load => self.load()?,
        }
        Ok(())
    }

    pub(super) fn say(&self, words: impl FnOnce() -> String) {
        self.trace.say(self.now(), words);
    }

    /// As long as a real ring may take, mostly as little as most do: the world `cells` measures that.
    pub(super) fn draw_gap(&mut self, gap: Gap) -> Duration {
        let (least, most) = gap.bounds();
        self.draw.scale(least, most)
    }

    /// A node's process begins.
    pub(super) fn start(&mut self, at: At) {
        let now = self.now();
        self.cells[at.cell].start(now, at.node);
        self.trace.note(now, 1, at.cell, [u64::from(at.node.0), 0]);
        self.form(at.cell, Gap::Joined);
    }

    /// The ring of a cell forms anew, after this gap.
    pub(super) fn form(&mut self, cell: usize, gap: Gap) {
        let until = self.now() + self.draw_gap(gap);
        let formation = self.cells[cell].begin_forming(until);
        self.queue.push(until, Happening::Formed { cell, formation });
    }

    pub(super) fn formed(&mut self, cell: usize, formation: u64) {
        if self.cells[cell].form(self.queue.now(), formation) {
            let (path, order) = (&self.cells[cell].path, &self.cells[cell].order);
            self.trace.say(self.queue.now(), || format!("{path} forms with {order:?}"));
            self.tell_cell(cell);
            self.relocate(cell);
        }
    }

    /// All routers of a cell look at their book.
    pub(super) fn tell_cell(&mut self, cell: usize) {
        for node in self.cells[cell].ids() {
            self.touch(At { cell, node }, |model, now, at| model.look(now, at.node));
        }
    }

    pub(super) fn wake(&mut self, at: At) {
        if at.node == NodeId(0) {
            return;
        }
        let now = self.now();
        if self.cells[at.cell].is_due(now, at.node) {
            self.touch(at, |model, now, at| model.look(now, at.node));
        }
    }

    /// A node's router is given something: what it wants is done.
    pub(super) fn touch(&mut self, at: At, give: impl FnOnce(&mut CellModel, Time, At)) {
        let now = self.now();
        if !self.cells[at.cell].acts(at.node) {
            return;
        }
        give(&mut self.cells[at.cell], now, at);
        while let Some(output) = self.cells[at.cell].poll_output(at.node) {
            self.carry_out(at, output);
        }
        if let Some(due) = self.cells[at.cell].next_wake(now, at.node) {
            self.queue.push(due, Happening::Wake(at));
        }
    }

    pub(super) fn carry_out(&mut self, at: At, output: Output) {
        let (now, life) = (self.now(), self.cells[at.cell].life(at.node));
        match output {
            Output::Dial { link, to, patience, .. } => self.dial(at, link, (to, patience)),
            Output::Close(link) => self.close(at, link),
            Output::Send { link, message, .. } => self.send(at, link, message),
            Output::Order { ask, command } => {
                let taken = now.max(self.cells[at.cell].stuck_until) + self.draw_gap(Gap::Ordered);
                let command = Box::new(command);
                self.queue.push(taken, Happening::Order { at, life, ask, command });
            }
            Output::Locate(group) => {
                self.cells[at.cell].locating(at.node, &group);
                let told = now + self.draw_gap(Gap::Ordered);
                self.queue.push(told, Happening::Locate { at, life, group });
            }
            Output::Forget(group) => self.cells[at.cell].forget(at.node, &group),
            Output::Execute { call, request, left, .. } => {
                let (until, request) = (now + left, Box::new(request));
                let taken = now.max(self.cells[at.cell].stuck_until) + self.draw_gap(Gap::Ordered);
                self.queue.push(taken, Happening::Execute { at, life, call, request, until });
            }
            Output::Ended { token, end } => {
                self.trace.note(now, 2, at.cell, [token, 0]);
                self.calls.ended(now, token, end);
            }
            Output::Found { .. } => {}
            Output::Event(event) => {
                self.trace
                    .say(now, || format!("{} {}: {event:?}", self.cells[at.cell].path, at.node));
            }
        }
    }

    pub(super) fn order(&mut self, at: At, life: u64, ask: u64, command: Command) -> Verdict {
        let now = self.now();
        let model = &mut self.cells[at.cell];
        if model.stuck_until > now {
            let again = model.stuck_until + self.draw_gap(Gap::Ordered);
            let command = Box::new(command);
            self.queue.push(again, Happening::Order { at, life, ask, command });
            return Ok(());
        }
        if !model.has_quorum() {
            return Ok(());
        }
        self.trace.note(now, 3, at.cell, [ask, u64::from(at.node.0)]);
        self.trace.say(now, || format!("{} takes {command:?}", model.path));
        let claimed = match &command {
            Command::Attach(wanted) => Some((wanted.place.path.clone(), wanted.founded)),
            _ => None,
        };
        let verdict = model.book.apply(now, command);
        self.trace.say(now, || format!("{verdict:?}"));
        model.book.check_invariants();
        if let Some((path, founded)) = claimed.filter(|_| verdict.is_ok()) {
            let its_own = self.cell_of(&path).map(|cell| self.cells[cell].book.founded());
            demand(its_own == Some(founded), "a cell speaks for itself alone", || {
                format!("{path} was attached for another, founded at {founded}")
            })?;
        }
        if self.cells[at.cell].life(at.node) == life {
            let verdict = verdict.map_err(Some);
            self.touch(at, |model, _, at| model.verdict(at.node, ask, verdict));
        }
        self.tell_cell(at.cell);
        Ok(())
    }

    /// Targets as they are now, at a node that asks for them.
    pub(super) fn locate(&mut self, at: At, life: u64, group: &str) {
        if self.cells[at.cell].life(at.node) == life
            && self.cells[at.cell].is_located(at.node, group)
        {
            let targets = self.cells[at.cell].targets(group);
            self.touch(at, |model, now, at| model.located(now, at.node, group, targets));
        }
    }

    pub(super) fn relocate(&mut self, cell: usize) {
        for (node, group) in self.cells[cell].all_located() {
            let (at, life) = (At { cell, node }, self.cells[cell].life(node));
            self.locate(at, life, &group);
        }
    }

    pub(super) fn message(&mut self, at: At, link: LinkId, message: Message) {
        self.touch(at, |model, now, at| model.message(now, at.node, link, message));
    }

    pub(super) fn cell_of(&self, path: &Path) -> Option<usize> {
        self.paths.get(path).copied()
    }

    /// All that a call may end with was so.
    pub(super) fn check_ended(&self) -> Verdict {
        for cell in &self.cells {
            for node in cell.running() {
                let under_way = cell.calls_under_way(node);
                demand(under_way == 0, "nothing is left", || {
                    format!("{} {node} has {under_way} calls under way", cell.path)
                })?;
            }
        }
        self.calls.check_all(|to, key| self.cells[to].executions(key))
    }
}
