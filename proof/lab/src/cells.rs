//! A system of cells: how soon nodes and cells join it, how long calls to other cells stop when a
//! part of it is lost, and what links cost.
//!
//! The tree is that of the paper, with real processes of the program `steadfast` on hosts at
//! several sites, and a delay between them. See docs/protocol/cells.md.

use harness::system::{Plan, System, TREE};
use harness::{Experiment, Outcome, Run};

mod carried;
mod direct;
mod finding;
mod idle;
mod joins;
mod lost;
mod options;
mod seats;
mod telling;

pub use options::Options;
use options::{ALONE, Part, SMALL};

impl Experiment for Options {
    const NAME: &'static str = "cells";
    const SMOKE: &'static str = "--times 1 --calls 5 --seconds 1 --delay-ms 2";

    fn impossible(&self) -> Option<String> {
        self.place.impossible()
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let has = |part| self.part.is_empty() || self.part.contains(&part);
        if has(Part::Direct) {
            run.begin(&format!("two cells; {}", self.place.build()));
            direct::measure(self, run)?;
        }
        if self.part == [Part::Direct] {
            return Ok(());
        }
        let tree: &[_] = run.sized(&TREE, &SMALL);
        let cells = [tree, &[ALONE]].concat();
        let plan = Plan { alone: true, ..self.place.plan(&cells, self.delay()) };
        let mut system = System::start(&plan)?;
        let (nodes, delay) = (tree.iter().map(|(_, nodes)| nodes).sum::<usize>(), self.delay_ms);
        run.begin(&format!(
            "{} cells with {nodes} nodes, {delay} ms one way between cells; {}; times in ms",
            tree.len(),
            self.place.build()
        ));
        if has(Part::Idle) {
            idle::measure(self, run, &system)?;
        }
        if has(Part::Find) {
            finding::measure(self, run, &system)?;
        }
        if has(Part::Carried) {
            carried::measure(self, run, &system)?;
        }
        if has(Part::Join) {
            joins::measure(self, run, &mut system)?;
        }
        if has(Part::Seat) {
            seats::measure(self, run, &mut system)?;
        }
        if has(Part::Lost) {
            lost::measure(self, run, &mut system)?;
        }
        Ok(())
    }
}
