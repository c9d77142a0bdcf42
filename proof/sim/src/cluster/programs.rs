//! The programs of nodes, of two neighbouring versions.

use std::collections::BTreeMap;

use wire::{Duration, Member, NodeId, Program, RingId, VersionRange};

use crate::check::versions;
use crate::draw::Draw;
use crate::fabric::node_id;

/// The things that people do with programs.
#[derive(Clone, Copy, Debug)]
pub struct ProgramPlan {
    /// The newest version that there is, from 0.
    pub(super) newest: u8,
    /// Nodes begin with different ones.
    mixed: bool,
    /// So many of 10 starts bring a newer program, and so many the one before.
    up: u64,
    down: u64,
    /// How long newer rules settle; `None`: they are asked for.
    pub(super) settle: Option<Duration>,
}

impl ProgramPlan {
    /// Draws a plan.
    pub fn draw(draw: &mut Draw) -> ProgramPlan {
        let settles = [Some(20), Some(200), Some(1_000), None];
        ProgramPlan {
            newest: draw.pick(&[1, 1, 2]),
            mixed: draw.one_in(2),
            up: draw.pick(&[2, 5, 9]),
            down: draw.pick(&[0, 1, 3]),
            settle: draw.pick(&settles).map(Duration::from_millis),
        }
    }
}

/// The program of this version: it speaks that and the one before.
pub(super) fn program(version: u8) -> Program {
    let range = VersionRange::new(version.max(1), version + 1);
    let release = format!("0.{version}");
    Program { release, ring: range, rules: range, ..Program::this("") }
}

/// The nodes' programs, and what is known of them.
pub(super) struct Programs {
    pub(super) plan: ProgramPlan,
    pub(super) draw: Draw,
    /// The version of each node's program.
    pub(super) versions: Vec<u8>,
    pub(super) watch: versions::Versions,
    /// The last configuration of each life.
    pub(super) configured: BTreeMap<Member, (RingId, Vec<Member>)>,
}

impl Programs {
    pub fn new(plan: ProgramPlan, nodes: usize, mut draw: Draw) -> Programs {
        let first = |_| if plan.mixed { draw.count(0, 1) as u8 } else { 0 };
        let versions = (0..nodes).map(first).collect();
        let nodes: Vec<NodeId> = (0..nodes).map(node_id).collect();
        let watch = versions::Versions::new(nodes);
        Programs { plan, draw, versions, watch, configured: BTreeMap::new() }
    }

    /// People choose a node's program for its next life. Versions in a cluster are neighbours, and
    /// nobody goes on to the next one before the last upgrade is finished. A program that does not
    /// know the rules on the disk does not start.
    pub(super) fn choose(&mut self, node: usize, calm: bool, level: u8) {
        let others = self.versions.iter().enumerate().filter(|(other, _)| *other != node);
        let others: Vec<u8> = others.map(|(_, version)| *version).collect();
        let version = &mut self.versions[node];
        let dice = self.draw.between(0, 9);
        let lone = |version: u8| others.iter().all(|other| other.abs_diff(version) <= 1);
        if calm {
            // All stays as it is.
        } else if dice < self.plan.up {
            let next = *version + 1;
            let knows = program(next).rules.contains(self.watch.level().max(1));
            if next <= self.plan.newest && lone(next) && knows {
                *version = next;
            }
        } else if dice < self.plan.up + self.plan.down && *version > 0 && lone(*version - 1) {
            *version -= 1;
        }
        while level > program(*version).rules.greatest {
            *version += 1;
        }
        while level > 0 && level < program(*version).rules.least {
            *version -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_programs_understand_each_other_and_others_do_not() {
        let common = |a, b| program(a).ring.common(program(b).ring);
        assert!(common(0, 1).is_some() && common(1, 2).is_some() && common(0, 2).is_none());
    }
}
