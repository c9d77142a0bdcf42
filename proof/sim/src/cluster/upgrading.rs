//! Deployed programs are replaced by others while faults go on, and some of the new ones end as
//! often as they are started (`docs/protocol/deployment.md`, "Upgrades").

use manager::cluster_state::{ClusterState, Command, Placed, Program};
use wire::{Duration, NodeId, Time};

use crate::draw::Draw;
use crate::run::Summary;

/// A node says so after so many ends in a row.
const ENDS: u32 = 5;

/// Between the first end and the next start; then twice as long each time.
const WAIT: Duration = Duration::from_millis(100);

/// A report of a node is repeated after this time.
const AGAIN: Duration = Duration::from_millis(300);

/// The end of the command of a program that never serves.
pub(super) const BROKEN: &str = "broken";

/// The programs that people deploy.
#[derive(Default)]
pub(super) struct Versions {
    made: u64,
    now: Option<String>,
    former: Option<String>,
}

impl Versions {
    /// The next one: new, new and of no use, or the former once more.
    pub fn next(&mut self, draw: &mut Draw) {
        self.made += 1;
        let new = match draw.count(0, 3) {
            0 => self.former.clone(),
            1 => Some(format!("{} {BROKEN}", self.made)),
            _ => Some(self.made.to_string()),
        };
        // A broken program is not deployed again.
        self.former = self.now.take().filter(|now| !now.ends_with(BROKEN));
        self.now = new;
    }

    /// This one.
    pub fn set(&mut self, program: &str) {
        self.former = self.now.replace(program.into());
    }

    pub fn command(&self) -> Vec<String> {
        vec![self.now.clone().unwrap_or_else(|| "first".into())]
    }
}

/// Whether a program ends whenever it is started.
pub(crate) fn is_broken(program: &Program) -> bool {
    program.command.iter().any(|word| word.ends_with(BROKEN))
}

/// Counts what became of an upgrade, at the node that told it.
pub(super) fn count(
    summary: &mut Summary,
    me: NodeId,
    command: &Command,
    cluster_state: &ClusterState,
    done: bool,
) {
    match command {
        Command::Upgraded { node, .. } if done && *node == me => summary.upgrades += 1,
        Command::Failing { group, node, .. } if done && *node == me => {
            let undone = cluster_state.of(group).and_then(|placed| placed.undone.as_ref());
            summary.undone += u64::from(undone.is_some_and(|undone| undone.node == me));
        }
        _ => {}
    }
}

/// This node's program for the deployment.
#[derive(Default)]
pub(super) struct Programs {
    runs: Option<Program>,
    /// For a program that ends: how often it has, and when it is started again.
    ended: Option<(Program, u32, Time)>,
    told: Option<Time>,
}

impl Programs {
    pub fn runs(&self, program: &Program) -> bool {
        self.runs.as_ref() == Some(program)
    }

    /// The replica is started with this program. False: not now, or it has ended at once.
    pub fn start(&mut self, now: Time, program: &Program) -> bool {
        if !is_broken(program) {
            (self.runs, self.ended) = (Some(program.clone()), None);
            return true;
        }
        let same = self.ended.as_ref().filter(|(ended, ..)| ended == program);
        let (times, at) = same.map_or((0, now), |(_, times, at)| (*times, *at));
        if now >= at {
            let next = now + WAIT * 2u32.pow(times.min(10));
            self.ended = Some((program.clone(), times + 1, next));
        }
        false
    }

    /// Returns this node's report on the program that it is to run: it does not serve, or it serves
    /// and has the state.
    pub fn tell(
        &mut self,
        now: Time,
        (node, placed): (NodeId, &Placed),
        has_state: bool,
    ) -> Option<Command> {
        if self.told.is_some_and(|at| now < at + AGAIN) {
            return None;
        }
        let program = placed.program(node);
        let group = placed.deployment.group.clone();
        let ends = |(ended, times, _): &(Program, u32, Time)| ended == program && *times >= ENDS;
        let under_way = placed.upgrade.as_ref().and_then(|upgrade| upgrade.under_way);
        let known = placed.failing.contains_key(&node);
        let number = placed.number;
        let said = if self.ended.as_ref().is_some_and(ends) && !known {
            Command::Failing { group, number, node }
        } else if under_way == Some(node) && has_state && self.runs(program) {
            Command::Upgraded { group, number, node }
        } else {
            return None;
        };
        self.told = Some(now);
        Some(said)
    }
}
