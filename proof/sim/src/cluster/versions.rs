//! Nodes run programs of two neighbouring versions, which people change as nodes start anew
//! (`docs/protocol/versions.md`).

use engine::Event;
use ring::Event as Ring;
use wire::versions::Unfit;
use wire::{Duration, Member, RingId};

use super::programs::{Programs, program};
use super::{Cluster, Extra};
use crate::check::Verdict;
use crate::strike::Relief;

impl Cluster {
    /// The program of a node that starts; `level` is the one on its disk.
    pub(super) fn install_program(
        &mut self,
        node: usize,
        level: u8,
        (ring, config): (&mut ring::Config, &mut engine::Config),
    ) {
        let calm = self.course.is_calm();
        let Some(programs) = &mut self.programs else { return };
        programs.choose(node, calm, level);
        let program = program(programs.versions[node]);
        programs.watch.begins(config.me, program.clone(), level);
        self.fabric.say(|| format!("node {} runs program {}", node + 1, program.release));
        (ring.speaks.ring, ring.speaks.rules) = (program.ring, program.rules);
        (config.program, config.settle) = (program, programs.plan.settle);
    }

    /// A node tells something about versions.
    pub(super) fn told_of_versions(&mut self, node: usize, me: Member, event: &Event) -> Verdict {
        let Some(programs) = &mut self.programs else { return Ok(()) };
        match event {
            Event::Configuration { ring, members } => {
                programs.configured.insert(me, (*ring, members.clone()));
                Ok(())
            }
            Event::Quorum { ring, quorate: true, epoch } => {
                let Some(stack) = &self.fabric.hosts[node].process else { return Ok(()) };
                let status = stack.status();
                let (members, versions) = (&status.ring.members, &status.versions);
                // The end of an old ring is delivered when the next one stands (seed 441).
                if status.ring.id != *ring {
                    let told = programs.configured.get(&me).filter(|(id, _)| id == ring);
                    if let Some((_, members)) = told {
                        programs.watch.announced(members);
                    }
                    return Ok(());
                }
                let ring: (u64, RingId) = (*epoch, *ring);
                programs.watch.installed(me, ring, members, (versions.ring, versions.level))
            }
            Event::Level(level) => programs.watch.activated(me, *level),
            // It was taken back too late: people see that, and take the newer program again.
            Event::Ring(Ring::Unfit { why: Unfit::OurRules, .. }) => {
                if programs.versions[node] < programs.plan.newest {
                    programs.versions[node] += 1;
                    self.fabric
                        .later(Duration::from_millis(20), Extra::Relief(Relief::Renew(node)));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A node that is in no ring with others gets the newer program, also if it is stopped (seed
    /// 60017573).
    pub(super) fn renew(&mut self, node: usize) -> Verdict {
        if self.fabric.hosts[node].process.is_some() {
            self.end(node, false);
        }
        self.boot(node)
    }

    /// People ask some node to have the newest rules come into force.
    pub(super) fn finish_upgrade(&mut self) -> Verdict {
        let Some(programs) = &mut self.programs else { return Ok(()) };
        let node = programs.draw.count(0, self.options.nodes - 1);
        self.plan_upgrades();
        let now = self.fabric.local(node);
        let Some(process) = self.fabric.running(node) else { return Ok(()) };
        let asked = process.finish_upgrade(now);
        self.fabric.say(|| format!("node {} is to finish the upgrade: {asked:?}", node + 1));
        self.drain(node)
    }

    pub(super) fn plan_upgrades(&mut self) {
        let asks = |programs: &&mut Programs| programs.plan.settle.is_none();
        let Some(programs) = self.programs.as_mut().filter(asks) else { return };
        let wait = programs.draw.span(Duration::from_millis(20), Duration::from_millis(400));
        self.fabric.later(wait, Extra::Finish);
    }

    /// All nodes know newer rules, and these are not in force everywhere.
    pub(super) fn missing_level(&self) -> Option<String> {
        let programs = self.programs.as_ref()?;
        let greatest = |version: &u8| program(*version).rules.greatest;
        let known = programs.versions.iter().map(greatest).min()?;
        let levels = self.fabric.hosts.iter().enumerate().filter_map(|(node, host)| {
            Some((node, host.process.as_ref()?.status().versions.level))
        });
        let late = levels.into_iter().find(|(_, level)| *level < known);
        late.map(|(node, level)| format!("node {} has rules {level}, all know {known}", node + 1))
    }
}
