//! This node's work for the cluster state. It introduces itself, has the placed programs run, and
//! reports those that end again and again. Where it leads the manager's group, it decides where
//! replicas are to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::ProgramConfig;
use engine::StateNote;
use manager::Picture;
use manager::cluster_state::{ClusterState, Command, Deployment, Placed, Program};
use manager::placement::Placer;
use os::clock::wall_clock;
use supervisor::{CRASH_LOOP, Deployed, Programs};
use wire::ordered::About;
use wire::system::MANAGER_ID;
use wire::versions::WHOLE;
use wire::{Duration, GroupId, NodeId, Share, Time};

use super::trials::{Known, Trials};
use super::view::View;
use super::{diff, terms};
use crate::control::Control;
use crate::error::Stopped;
use crate::order::Order;

/// A command to the cluster state without effect there is repeated after so long.
const AGAIN: Duration = Duration::from_secs(1);

/// How often all is looked at when nothing has changed: some of what is to be done is a matter of
/// time.
pub(super) const PERIOD: Duration = Duration::from_millis(500);

pub(super) struct Reconciler {
    control: Arc<Control>,
    placer: Placer,
    /// As it was looked at last.
    cluster_state: Option<Arc<ClusterState>>,
    /// When this node told of itself, and of a program.
    introduced: Option<Time>,
    told: Option<Time>,
    /// The default priorities of calls that the data plane was given.
    criticalities: BTreeMap<GroupId, u8>,
    /// The programs that were deployed here and in their groups at the last look.
    joined: Vec<ProgramConfig>,
    /// New programs that are tried before old ones end.
    trials: Trials,
    /// New programs that do not serve here, and why.
    unfit: Vec<(ProgramConfig, String)>,
    /// When that was told.
    refused: Option<Time>,
}

impl Reconciler {
    pub fn new(control: Arc<Control>) -> Reconciler {
        let placer = Placer::default();
        Reconciler {
            control,
            placer,
            cluster_state: None,
            introduced: None,
            told: None,
            criticalities: BTreeMap::new(),
            joined: Vec::new(),
            trials: Trials::default(),
            unfit: Vec::new(),
            refused: None,
        }
    }

    /// Looks at the cluster state, if this node's replica has it. `capacity`: what the host can do.
    pub fn look(&mut self, now: Time, view: &View, capacity: Share) -> Result<(), Stopped> {
        let Some(cluster_state) = &view.cluster_state else { return Ok(()) };
        // Nothing from before this node had the cluster state is news.
        if let Some(before) = self.cluster_state.replace(cluster_state.clone())
            && !Arc::ptr_eq(&before, cluster_state)
        {
            for event in diff::news(&before, cluster_state) {
                self.control.order(Order::Tell(event))?;
            }
        }
        self.tell_criticalities(cluster_state)?;
        // A node without an admin socket can run no programs: it gets none.
        let control = self.control.clone();
        if let Some(programs) = &control.programs {
            self.introduce(now, cluster_state, capacity)?;
            let me = control.me.node;
            let alone = cluster_state.placed().map(|placed| &placed.deployment.group);
            let alone = alone.filter(|group| is_alone(&view.picture, group, me)).cloned();
            let alone: Vec<String> = alone.collect();
            // A state that only this node has is served to its group, wherever the replicas are to
            // be.
            let brings = |group: &String| {
                alone.contains(group) || view.picture.brings.contains(&GroupId::of(group))
            };
            let here =
                |placed: &&Placed| placed.on.contains(&me) || brings(&placed.deployment.group);
            let here = cluster_state.placed().filter(here);
            let here: Vec<&Placed> = here.collect();
            let of = |placed: &&Placed| {
                let deployment = &placed.deployment;
                (deployment.group.clone(), terms::of(deployment, &control.cluster, me))
            };
            let terms = here.iter().map(of).collect();
            let run = self.wanted_programs(view, &here);
            programs.deploy(run, terms, alone);
            let deployed = programs.deployed();
            self.tell_failing(now, cluster_state, &deployed)?;
            self.tell_upgraded(now, view, cluster_state, deployed)?;
        }
        let shape = view.picture.groups.iter().find(|shape| shape.id == MANAGER_ID);
        if shape.is_some_and(|shape| shape.primary == control.me.node) {
            let wall = Time(wall_clock());
            for (step, command) in self.placer.look(now, wall, &view.picture, cluster_state) {
                if let Command::Place { group, on, .. } = &command {
                    tracing::debug!(group, ?on, why = ?step.why, "asked for");
                }
                control.tell_cluster_state(command)?;
            }
            let needless = |node: &&NodeId| {
                cluster_state.nodes().any(|(known, _)| known == **node)
                    && cluster_state.placed().all(|placed| !placed.on.contains(node))
            };
            for node in view.retired.iter().filter(needless) {
                control.tell_cluster_state(Command::Forget { node: *node })?;
            }
        } else {
            self.placer = Placer::default();
        }
        Ok(())
    }

    /// Calls whose clients say nothing of it are as critical as people said of the deployment.
    fn tell_criticalities(&mut self, cluster_state: &ClusterState) -> Result<(), Stopped> {
        let deployments = cluster_state.placed().map(|placed| &placed.deployment);
        let of = deployments.filter(|it| it.priority > 0);
        let of: BTreeMap<_, _> = of.map(|it| (GroupId::of(&it.group), it.priority)).collect();
        if of != self.criticalities {
            self.criticalities.clone_from(&of);
            self.control.order(Order::Criticalities(of))?;
        }
        Ok(())
    }

    fn introduce(
        &mut self,
        now: Time,
        cluster_state: &ClusterState,
        capacity: Share,
    ) -> Result<(), Stopped> {
        let node = self.control.me.node;
        let known = cluster_state.node(node);
        let labels = self.control.renewal.labels();
        let same = known.is_some_and(|it| it.labels == labels && it.capacity == capacity);
        let waits = self.introduced.is_some_and(|at| now < at + AGAIN);
        if same || waits || capacity == Share::ZERO {
            return Ok(());
        }
        self.introduced = Some(now);
        self.control.tell_cluster_state(Command::Introduce { node, labels, capacity })
    }

    /// Programs that end again and again are tried elsewhere, or, if they are new, no more.
    fn tell_failing(
        &mut self,
        now: Time,
        cluster_state: &ClusterState,
        deployed: &[Deployed],
    ) -> Result<(), Stopped> {
        if self.told.is_some_and(|at| now < at + AGAIN) {
            return Ok(());
        }
        self.told = Some(now);
        let (node, wall) = (self.control.me.node, Time(wall_clock()));
        for it in deployed.iter().filter(|it| it.ends_in_a_row >= CRASH_LOOP) {
            let group = it.config.group.clone();
            let Some(placed) = cluster_state.of(&group) else { continue };
            let known = placed.failing.get(&node).is_some_and(|failing| wall < failing.until);
            // One that is to run no more is on its way out.
            let meant = placed.on.contains(&node) && program(placed, node) == it.config;
            if meant && !known {
                let number = placed.number;
                self.control.tell_cluster_state(Command::Failing { group, number, node })?;
            }
        }
        Ok(())
    }

    /// The programs that are to run here: a new one, once it was tried beside the old one.
    fn wanted_programs(&mut self, view: &View, here: &[&Placed]) -> Vec<ProgramConfig> {
        let (control, me) = (self.control.clone(), self.control.me.node);
        let begins = |placed: &Placed| {
            let upgrade = placed.upgrade.as_ref().filter(|upgrade| !upgrade.undoes);
            upgrade.is_some_and(|upgrade| upgrade.under_way == Some(me))
        };
        let new: Vec<ProgramConfig> =
            here.iter().filter(|it| begins(it)).map(|placed| program(placed, me)).collect();
        self.trials.retain(|config| new.contains(config));
        self.unfit.retain(|(config, _)| new.contains(config));
        // Without an upgrade nobody needs to know.
        let running = match here.iter().any(|placed| placed.upgrade.is_some()) {
            true => control.programs.as_ref().map(Programs::deployed).unwrap_or_default(),
            false => Vec::new(),
        };
        let runs = |config: &ProgramConfig| running.iter().any(|it| it.config == *config);
        let mut run = Vec::new();
        for placed in here {
            let config = program(placed, me);
            let target = config_of(placed, &placed.deployment.program);
            let Some(upgrade) = placed.upgrade.as_ref().filter(|_| begins(placed)) else {
                // A program that was refused by its trial has never begun here: the way back ends
                // where it began.
                let back = placed.upgrade.as_ref().is_some_and(|upgrade| upgrade.undoes);
                run.push(if back && runs(&target) { target } else { config });
                continue;
            };
            let old = config_of(placed, &upgrade.from);
            // A replica without the state has nothing to lose, and nothing to try a program on.
            let serves = has_state(&view.picture, &config.group, me)
                && running.iter().any(|it| it.joined && it.config == old);
            if Trials::are_off(&config) || !(serves || self.trials.has(&config)) {
                run.push(config);
                continue;
            }
            match self.trials.look(&control, &config) {
                Known::Serves => run.push(config),
                Known::Nothing => run.push(old),
                Known::Refused(reason) => {
                    self.is_unfit(config, reason);
                    run.push(old);
                }
            }
        }
        run
    }

    fn is_unfit(&mut self, config: ProgramConfig, reason: String) {
        if !self.unfit.iter().any(|(known, _)| *known == config) {
            self.unfit.push((config, reason));
        }
    }

    /// New programs that do not serve here: the upgrade is rolled back.
    fn tell_unfit(
        &mut self,
        now: Time,
        view: &View,
        cluster_state: &ClusterState,
    ) -> Result<(), Stopped> {
        if self.unfit.is_empty() || self.refused.is_some_and(|at| now < at + AGAIN) {
            return Ok(());
        }
        self.refused = Some(now);
        let node = self.control.me.node;
        for (config, reason) in &self.unfit {
            let group = config.group.clone();
            let Some(placed) = cluster_state.of(&group) else { continue };
            let number = placed.number;
            let command = match view.level >= WHOLE {
                true => Command::Refuse { group, number, node, reason: reason.clone() },
                // Older programs know of no reasons; the log here has it.
                false => Command::Failing { group, number, node },
            };
            self.control.tell_cluster_state(command)?;
        }
        Ok(())
    }

    /// The new program of an upgrade runs here, and has the state; or it says that it cannot.
    fn tell_upgraded(
        &mut self,
        now: Time,
        view: &View,
        cluster_state: &ClusterState,
        deployed: Vec<Deployed>,
    ) -> Result<(), Stopped> {
        let joined = deployed.into_iter().filter(|it| it.joined).map(|it| it.config);
        // The picture may be older than what programs say now: it is not older than what they said
        // at the last look.
        let before = std::mem::replace(&mut self.joined, joined.collect());
        let node = self.control.me.node;
        for placed in cluster_state.placed() {
            let under_way = placed.upgrade.as_ref().and_then(|upgrade| upgrade.under_way);
            let group = placed.deployment.group.clone();
            if under_way == Some(node)
                && has_state(&view.picture, &group, node)
                && before.contains(&program(placed, node))
            {
                let number = placed.number;
                self.control.tell_cluster_state(Command::Upgraded { group, number, node })?;
            }
            let undoes = placed.upgrade.as_ref().is_some_and(|upgrade| upgrade.undoes);
            let config = program(placed, node);
            if under_way == Some(node)
                && !undoes
                && before.contains(&config)
                && let Some(reason) = cannot_read(view, &config.group, node)
            {
                self.is_unfit(config, reason);
            }
        }
        self.tell_unfit(now, view, cluster_state)
    }
}

fn has_state(picture: &Picture, group: &str, node: NodeId) -> bool {
    let shape = picture.group(GroupId::of(group));
    shape.is_some_and(|shape| shape.primary == node || shape.backups.contains(&node))
}

/// Nobody else has the state of this group.
fn is_alone(picture: &Picture, group: &str, node: NodeId) -> bool {
    let shape = picture.group(GroupId::of(group));
    shape.is_some_and(|shape| shape.primary == node && shape.backups.is_empty())
}

/// Why this node's replica cannot read the state that it was sent, if it has said so.
fn cannot_read(view: &View, group: &str, node: NodeId) -> Option<String> {
    let notes = view.notes.get(group)?;
    let is_it = |note: &&StateNote| {
        note.member.node == node && matches!(note.about, About::Read | About::ReadBack)
    };
    notes.iter().find(is_it).map(|note| format!("{}: {}", note.about, note.text))
}

/// The program of a deployment's replica at this node.
fn program(placed: &Placed, node: NodeId) -> ProgramConfig {
    config_of(placed, placed.program(node))
}

/// This program, as one of the deployment's replicas.
fn config_of(placed: &Placed, program: &Program) -> ProgramConfig {
    let Deployment { group, options, .. } = &placed.deployment;
    ProgramConfig {
        group: group.clone(),
        command: program.command.clone(),
        folder: program.folder.as_ref().map(Into::into),
        environment: program.environment.clone(),
        options: *options,
    }
}
