//! Programs that nodes run, for groups that are not served by the nodes themselves.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use steadfast::admin::Client as Admin;
use steadfast::status::GroupStatus;
use steadfast::{GroupOptions, NodeId, ProgramConfig};

use super::{Cluster, Programs, TIMEOUT};
use crate::process::Role;
use crate::wait::until_so;
use crate::{Outcome, bail};

/// How often it is looked whether a group has ended.
const LOOK: Duration = Duration::from_millis(5);

impl Cluster {
    /// Every node that is to have replicas runs their programs, as `steadfast run` has it do.
    pub fn run_programs(&self) -> Outcome<()> {
        let nodes: Vec<NodeId> = (1..=self.plan.replicas).map(NodeId).collect();
        self.run_programs_at(&nodes)
    }

    /// Only these nodes do. All at once: a group on disk may need the disks of several before one
    /// serves.
    pub fn run_programs_at(&self, nodes: &[NodeId]) -> Outcome<()> {
        let Some(Programs::WhenTold(options)) = self.plan.programs else {
            bail!("the nodes of this cluster are not told when to run programs");
        };
        let runs: Vec<_> = nodes
            .iter()
            .copied()
            .flat_map(|id| self.plan.groups.iter().map(move |group| (id, group)))
            .map(|(id, group)| Ok((self.admin(id), self.program(id, group, options)?)))
            .collect::<Outcome<_>>()?;
        let outcomes: Vec<Result<(), String>> = thread::scope(|scope| {
            let run = |(admin, program): (PathBuf, ProgramConfig)| {
                scope.spawn(move || {
                    let ran = Admin::connect(admin).and_then(|mut node| node.run(&program));
                    ran.map(drop).map_err(|error| format!("{}: {error}", program.command.join(" ")))
                })
            };
            let threads: Vec<_> = runs.into_iter().map(run).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        Ok(outcomes.into_iter().collect::<Result<(), String>>()?)
    }

    fn program(&self, id: NodeId, group: &str, options: GroupOptions) -> Outcome<ProgramConfig> {
        let command = Role::Objects { log: self.program_log(id) }.command()?;
        Ok(ProgramConfig { group: group.into(), command, options, ..ProgramConfig::default() })
    }

    /// The programs that a node runs at each of its starts.
    pub(super) fn programs_at_start(&self, id: NodeId) -> Vec<ProgramConfig> {
        let Some(Programs::AtStart(options, command)) = &self.plan.programs else {
            return Vec::new();
        };
        let groups = self.plan.groups.iter().filter(|_| id.0 <= self.plan.replicas);
        let program = |group: &&str| ProgramConfig {
            group: group.to_string(),
            command: command.clone(),
            options: *options,
            ..ProgramConfig::default()
        };
        groups.map(program).collect()
    }

    /// The log of a node's programs.
    pub(super) fn program_log(&self, id: NodeId) -> PathBuf {
        self.folder.path().join(format!("program-{}.log", id.0))
    }

    /// Kills the programs of these nodes at once. How many ran.
    pub fn kill_programs(&self, nodes: &[NodeId]) -> Outcome<usize> {
        let victims = self.programs_of(nodes)?;
        for pid in &victims {
            match kill_process(*pid, Signal::KILL) {
                // It has ended by itself since.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(victims.len())
    }

    /// The programs that run at these nodes.
    pub fn programs_of(&self, nodes: &[NodeId]) -> Outcome<Vec<Pid>> {
        let mut found = Vec::new();
        for id in nodes {
            let status = self.node(*id)?.status()?;
            let pids = status.programs.iter().filter_map(|program| program.pid);
            found.extend(pids.filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)));
        }
        Ok(found)
    }

    /// Stops the programs of a group at all nodes; returns when no node knows a replica of it any
    /// more.
    pub fn stop_programs(&self, group: &str) -> Outcome<()> {
        for id in (1..=self.plan.replicas).map(NodeId) {
            self.node(id)?.stop_program(group)?;
        }
        for id in (1..=self.plan.nodes).map(NodeId) {
            let mut admin = self.node(id)?;
            let is_left = |known: &GroupStatus| known.name == group && !known.replicas.is_empty();
            let missing = format!("{id} knows replicas of {group} after {TIMEOUT:?}");
            until_so(TIMEOUT, LOOK, &missing, || Ok(!admin.status()?.groups.iter().any(is_left)))?;
        }
        Ok(())
    }
}
