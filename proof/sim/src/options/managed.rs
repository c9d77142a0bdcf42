//! The draws for the manager's view and actions: hosts with loads, deployments, services that hang.

use engine::Quorum;
use wire::Duration;
use wire::ordered::{AckLevel, GroupOptions};

use super::{Load, Options, Pipe, World};
use crate::cluster::{DeployPlan, HostPlan, is_possible};
use crate::draw::Draw;
use crate::faults::FaultKind;

impl Options {
    /// Services hang. Their replicas leave by their own will, so the rules for replicas that leave
    /// apply. Calls end soon, for a service that is busy within a deadline does not hang.
    pub fn with_hangs(self, seed: u64) -> Options {
        let possible = self.world == World::Cluster && !self.smooth && self.trial.is_none();
        if !possible || self.quorum != Quorum::Majority || self.deploy.is_some() {
            return self;
        }
        self.hanging(seed)
    }

    /// The same, whatever else there is.
    pub(super) fn hanging(mut self, seed: u64) -> Options {
        self.groups.iter_mut().for_each(|group| group.lies = None);
        self.faults.kinds.retain(|(kind, _)| {
            !matches!(kind, FaultKind::Orphan | FaultKind::Flap | FaultKind::Ambush)
        });
        self.faults.phase = self.faults.phase.max(Duration::from_secs(2));
        // Even at a slow node an execution is well within the span of the rule.
        self.execution = self.execution.min(Duration::from_micros(200));
        let timeout = self.load.timeout.min(Duration::from_millis(100));
        self.load = Load { timeout, longest: timeout * 4, ..self.load };
        let every = Draw::new(seed ^ 0x4a47).pick(&[10, 30, 100]).pipe(Duration::from_millis);
        Options { hangs: Some(every), ..self }
    }

    /// Hosts have something to do beside, and what clients are told depends on it.
    pub fn with_manager(self, seed: u64) -> Options {
        let plan = HostPlan::draw(&mut Draw::new(seed), self.nodes, self.groups.len());
        Options { hosts: self.world.is_cluster().then_some(plan), ..self }
    }

    /// The first group is hosted by whom the cluster state says. Nobody else takes its replicas
    /// away.
    pub fn with_deployment(mut self, seed: u64) -> Options {
        let possible = self.world == World::Cluster && !self.smooth && self.trial.is_none();
        if !possible || !is_possible(self.nodes, self.quorum) {
            return self;
        }
        let plan = DeployPlan::draw(&mut Draw::new(seed), self.nodes);
        let name = self.groups[0].name.clone();
        for group in &mut self.groups {
            group.callee.take_if(|(callee, _)| *callee == name);
        }
        let first = &mut self.groups[0];
        first.options = GroupOptions { ack: AckLevel::Majority, ..GroupOptions::default() };
        (first.callee, first.lies, first.styles) = (None, None, Vec::new());
        first.padding = first.padding.min(1_000);
        self.faults
            .kinds
            .retain(|(kind, _)| !matches!(kind, FaultKind::Unhost | FaultKind::Orphan));
        Options { deploy: Some(plan), ..self }
    }
}
