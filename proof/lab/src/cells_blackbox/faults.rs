//! Faults of a system of cells, drawn from a seed. The called group is on disk: any node may be
//! killed, and any cell.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use wire::Random;

use harness::Outcome;
use harness::sites::{Host, Site};
use harness::system::System;

/// A fault lasts so long, in milliseconds.
const SPAN: (u64, u64) = (50, 2_000);

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// A node and the process beside it are killed, and start again.
    Kill,
    /// They are stopped for a while.
    Stop,
    /// The node that attaches its cell is killed, and starts again.
    KillSeat,
    /// It is stopped for a while.
    StopSeat,
    /// A node loses its way to one cell, for a while.
    CutLink,
    /// A node loses its way to all other cells.
    CutHost,
    /// A cell and the one above it lose each other.
    CutCells,
    /// All nodes of a cell are killed at once, and start again together.
    KillCell,
    /// All nodes of a cell are stopped for a while.
    StopCell,
}

impl Kind {
    pub const ALL: &[Kind] = &[
        Kind::Kill,
        Kind::Stop,
        Kind::KillSeat,
        Kind::StopSeat,
        Kind::CutLink,
        Kind::CutHost,
        Kind::CutCells,
        Kind::KillCell,
        Kind::StopCell,
    ];
}

/// A fault, as it is to strike.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub kind: Kind,
    pub site: Site,
    /// One of its nodes, where that matters.
    pub host: Host,
    pub span: Duration,
}

impl Fault {
    pub fn draw(kinds: &[Kind], system: &System, random: &mut Random) -> Fault {
        let mut below = |count: usize| random.below(count as u64) as usize;
        let kind = kinds[below(kinds.len())];
        // The root has no cell above it.
        let site = match kind {
            Kind::CutCells | Kind::CutLink => 1 + below(system.cells() - 1),
            _ => below(system.cells()),
        };
        let host = 1 + below(system.nodes(site));
        let (least, most) = SPAN;
        let span = Duration::from_millis(least + random.below(most - least));
        Fault { kind, site, host, span }
    }

    /// Strikes, and takes it back after its span.
    pub fn strike(&self, system: &mut System) -> Outcome<()> {
        let Fault { kind, site, host, span } = *self;
        match kind {
            Kind::Kill => self.kill(system, host),
            Kind::Stop => self.stop(system, host),
            Kind::KillSeat => self.kill(system, system.seat(site)?),
            Kind::StopSeat => self.stop(system, system.seat(site)?),
            Kind::CutLink => {
                let above = system.parent(site).ok_or("the root has no cell above it")?;
                let here = harness::sites::address(site, host);
                for there in 1..=system.nodes(above) {
                    let there = harness::sites::address(above, there);
                    system.sites().cut_link(here, there, true);
                }
                self.heal(system)
            }
            Kind::CutHost => {
                system.sites().part(site, host, true);
                self.heal(system)
            }
            Kind::CutCells => {
                let above = system.parent(site).ok_or("the root has no cell above it")?;
                system.sites().cut(site, above, true);
                self.heal(system)
            }
            Kind::KillCell => {
                system.signal_all(site, Signal::KILL)?;
                thread::sleep(span);
                system.start_cell(site).map(drop)
            }
            Kind::StopCell => {
                system.signal_all(site, Signal::STOP)?;
                thread::sleep(span);
                system.signal_all(site, Signal::CONT).map(drop)
            }
        }
    }

    fn kill(&self, system: &mut System, host: Host) -> Outcome<()> {
        system.signal((self.site, host), Signal::KILL)?;
        thread::sleep(self.span);
        system.start_node((self.site, host)).map(drop)
    }

    fn stop(&self, system: &mut System, host: Host) -> Outcome<()> {
        system.signal((self.site, host), Signal::STOP)?;
        thread::sleep(self.span);
        system.signal((self.site, host), Signal::CONT).map(drop)
    }

    fn heal(&self, system: &System) -> Outcome<()> {
        thread::sleep(self.span);
        system.sites().heal();
        Ok(())
    }
}
