//! People, placements and programs in a cluster.

use bytes::Bytes;
use engine::{Command as Run, Executed, HostError, ServiceOutcome};
use manager::cluster_state::{Answer, ClusterState, Command, Placed, Program};
use manager::placement::Why;
use wire::client::Outcome;
use wire::ordered::GroupOptions;
use wire::system::{MANAGER, MANAGER_ID};
use wire::{Duration, GroupId, NodeId, Share};

use super::{AGAIN, LOOK, TIMEOUT, group_of, has_state};
use crate::check::{Verdict, deployed, liveness};
use crate::cluster::course::Epilogue;
use crate::cluster::upgrading;
use crate::cluster::{Cluster, Extra};
use crate::fabric::{node_id, place_of};
use crate::faults::FaultKind;
use crate::options::GroupPlan;
use crate::strike::away;

impl Cluster {
    /// Groups of which the cluster state says who hosts them: the first of the seed's.
    pub(in crate::cluster) fn deployed(&self) -> &[GroupPlan] {
        &self.options.groups[..self.options.deployed()]
    }

    pub(in crate::cluster) fn plan_deployments(&mut self) {
        if let Some(deploying) = &mut self.deploying {
            for node in 0..self.options.nodes {
                let wait = deploying.draw.span(Duration::ZERO, LOOK);
                self.fabric.later(wait, Extra::Reconciler(node));
            }
            self.fabric.later(LOOK * 4, Extra::People);
            self.watch.promise.called(MANAGER_ID);
        }
    }

    /// A node that starts hosts its replica of the cluster state.
    pub(in crate::cluster) fn begin_deployments(&mut self, node: usize, stack: &mut engine::Stack) {
        if let Some(deploying) = &mut self.deploying {
            deploying.begin(node);
            let now = self.fabric.local(node);
            let cluster_state =
                GroupOptions { durability: self.options.durability(), ..Default::default() };
            stack.host(now, MANAGER, cluster_state).expect("it is hosted once");
        }
    }

    /// A node's replica of the cluster state does what it is told, at once.
    pub(in crate::cluster) fn keep_cluster_state(&mut self, node: usize, command: Run) -> Verdict {
        let deploying = self.deploying.as_mut().expect("the cluster state is kept");
        let cluster_state = &mut deploying.nodes[node].cluster_state;
        let (ticket, executed) = match command {
            Run::Execute { ticket, body, now, .. } => {
                let command = Command::decode(&body).expect("nodes say what they should");
                let answer = cluster_state.apply(now, command.clone());
                if let (Command::Upgraded { group, number, node }, Ok(Answer::Done)) =
                    (&command, &answer)
                {
                    let said = (group.clone(), *number, *node);
                    deployed::changed_over(*node, group, deploying.changed_over.contains(&said))?;
                }
                self.course
                    .script
                    .iter_mut()
                    .for_each(|script| script.cluster_state(cluster_state.version()));
                upgrading::count(
                    &mut self.summary,
                    node_id(node),
                    &command,
                    cluster_state,
                    answer == Ok(Answer::Done),
                );
                let outcome = match answer {
                    Ok(answer) => ServiceOutcome::Ok(vec![u8::from(answer == Answer::Done)].into()),
                    Err(refusal) => ServiceOutcome::Error(refusal.to_string().into()),
                };
                (ticket, Executed::Reply(outcome))
            }
            Run::Snapshot { ticket } => {
                (ticket, Executed::Snapshot(Ok(cluster_state.encode().into())))
            }
            Run::Restore { ticket, state } => {
                *cluster_state =
                    ClusterState::decode(&state).expect("a transfer brings a whole cluster state");
                (ticket, Executed::Restored(Ok(())))
            }
            Run::Reset | Run::Stop | Run::Start(_) => {
                *cluster_state = ClusterState::default();
                return Ok(());
            }
            Run::Style(_) | Run::View(_) | Run::Digest { .. } => return Ok(()),
            Run::Change { .. } | Run::Apply { .. } => {
                unreachable!("the cluster state's group is semi-active")
            }
        };
        let now = self.fabric.local(node);
        let stack = self.fabric.hosts[node].process.as_mut().expect("it has just asked");
        stack.handle_executed(now, MANAGER_ID, ticket, executed);
        Ok(())
    }

    fn say(&mut self, node: usize, command: &Command) -> u64 {
        let (now, wall) = (self.fabric.local(node), self.fabric.wall(node));
        self.fabric.say(|| format!("node {} says {command:?}", node + 1));
        let stack = self.fabric.hosts[node].process.as_mut().expect("it runs");
        let body = Bytes::from(command.encode());
        stack.call(now, wall, (MANAGER_ID, Command::METHOD), body, TIMEOUT)
    }

    /// People say something, or say it again.
    pub(in crate::cluster) fn people(&mut self) -> Verdict {
        self.follow_script()?;
        let calm = self.course.is_calm();
        let now = self.fabric.now();
        let Some(deploying) = &mut self.deploying else { return Ok(()) };
        if self.course.epilogue == Epilogue::Over {
            return Ok(());
        }
        self.fabric.later(LOOK, Extra::People);
        let command = match &deploying.said {
            Some((.., until)) if now < *until => return Ok(()),
            Some((command, ..)) => command.clone(),
            None => match deploying.next(&self.options.groups, calm) {
                Some(command) => command,
                None => return Ok(()),
            },
        };
        let node = deploying.draw.count(0, self.options.nodes - 1);
        if !self.fabric.hosts[node].runs() {
            return Ok(());
        }
        let (me, number) = (self.fabric.member(node), self.say(node, &command));
        let deploying = self.deploying.as_mut().expect("it was there");
        deploying.said = Some((command, me, number, now + AGAIN));
        self.drain(node)
    }

    /// A node's own call has ended.
    pub(in crate::cluster) fn own_ended(&mut self, node: usize, number: u64, outcome: &Outcome) {
        let me = self.fabric.member(node);
        let Some(deploying) = &mut self.deploying else { return };
        let taken = match outcome {
            Outcome::Ok(_) => true,
            Outcome::Service(_) => false,
            _ => return,
        };
        if deploying.said.as_ref().is_none_or(|(_, at, of, _)| (*at, *of) != (me, number)) {
            return;
        }
        match deploying.said.take().map(|(command, ..)| command) {
            Some(Command::Deploy(deployment)) if taken => {
                let named = |group: &GroupPlan| group.name == deployment.group;
                deploying.deployed.extend(self.options.groups.iter().position(named));
            }
            // A node that has not introduced itself yet is not drained. A repeated command took
            // effect at its first time.
            Some(Command::Drain { node }) if taken => _ = deploying.drained.insert(node),
            Some(Command::Return { node }) => _ = deploying.drained.remove(&node),
            _ => {}
        }
    }

    /// A node looks at the cluster state, and does what follows.
    pub(in crate::cluster) fn reconcile_node(&mut self, node: usize) -> Verdict {
        if self.course.epilogue == Epilogue::Over {
            return Ok(());
        }
        self.fabric.later(LOOK, Extra::Reconciler(node));
        if !self.fabric.hosts[node].runs() {
            return Ok(());
        }
        let (now, wall, me) = (self.fabric.local(node), self.fabric.wall(node), node_id(node));
        let picture = self.fabric.hosts[node].process.as_ref().expect("it runs").picture();
        let shape = picture.groups.iter().find(|shape| shape.id == MANAGER_ID);
        let Some(shape) = shape.filter(|it| it.primary == me || it.backups.contains(&me)) else {
            return Ok(());
        };
        let deploying = self.deploying.as_mut().expect("it is looked at");
        let labels = deploying.labels(node);
        let desk = &mut deploying.nodes[node];
        let mut says = Vec::new();
        let waits = desk.introduced.is_some_and(|at| now < at + AGAIN);
        if desk.cluster_state.node(me).is_none() && !waits {
            desk.introduced = Some(now);
            says.push(Command::Introduce { node: me, labels, capacity: Share::ONE });
        }
        if shape.primary == me {
            for (step, command) in desk.placer.look(now, wall, &picture, &desk.cluster_state) {
                let placed = group_of(&command).and_then(|group| desk.cluster_state.of(group));
                deployed::decided(
                    &picture,
                    &desk.cluster_state,
                    placed.expect("it is placed"),
                    &step,
                )?;
                if !matches!(self.course.epilogue, Epilogue::Healing) && step.why != Why::Filled {
                    deployed::moved_for_nothing(&step)?;
                }
                says.push(command);
            }
        } else {
            desk.placer = deploying.plant.placer();
        }
        let mut wanted = Vec::new();
        for (place, group) in self.options.groups[..desk.programs.len()].iter().enumerate() {
            let id = GroupId::of(&group.name);
            let placed = desk.cluster_state.of(&group.name);
            let here = |it: &&Placed| it.on.contains(&me) || picture.brings.contains(&id);
            wanted.push(placed.filter(here).map(|placed| placed.program(me).clone()));
            let Some(placed) = placed.filter(|it| it.on.contains(&me)) else { continue };
            let there = self.executors.has(node, id)
                && !self.watch.promise.is_leaving(id, self.fabric.member(node));
            let has_state = there && has_state(&picture, id, me);
            let told = desk.programs[place].tell(now, (me, placed), has_state);
            if let Some(Command::Upgraded { group, number, node }) = &told {
                deploying.changed_over.insert((group.clone(), *number, *node));
            }
            says.extend(told);
        }
        for command in &says {
            self.say(node, command);
        }
        for (place, wanted) in wanted.into_iter().enumerate() {
            self.reconcile(node, place, wanted)?;
        }
        self.drain(node)
    }

    /// A replica comes or goes, or is to run another program, as the cluster state says.
    fn reconcile(&mut self, node: usize, place: usize, wanted: Option<Program>) -> Verdict {
        let plan = self.options.groups[place].clone();
        let id = GroupId::of(&plan.name);
        let (now, me) = (self.fabric.local(node), self.fabric.member(node));
        let leaving = self.watch.promise.is_leaving(id, me);
        let there = self.executors.has(node, id) && !leaving;
        let deploying = self.deploying.as_mut().expect("the cluster state is kept");
        let program = &mut deploying.nodes[node].programs[place];
        let stays = there && wanted.as_ref().is_some_and(|wanted| program.runs(wanted));
        if stays || !there && wanted.as_ref().is_none_or(|wanted| !program.start(now, wanted)) {
            return Ok(());
        }
        // Leaving a replica that a cut would make the last one is not the subject here.
        let cut = self.options.faults.has(&[FaultKind::Flap, FaultKind::Ambush]);
        let steady = self.course.is_calm() || (!cut && self.is_whole());
        let spared =
            steady && self.is_one_ring() && self.watch.promise.spares(id, me, &away(&self.fabric));
        let process = self.fabric.hosts[node].process.as_mut().expect("it runs");
        if there {
            if spared {
                process.part(now, id);
                self.watch.lost_a_state();
                self.watch.promise.unhosted(id, me);
                self.watch.poisons.goes(self.fabric.now());
            }
            return Ok(());
        }
        // A node that is about to stop starts nothing.
        if !self.watch.promise.lives(me) {
            return Ok(());
        }
        match Self::take_in(process, now, &plan, &self.watch) {
            Ok(id) => {
                process.set_checkpoints(now, id, plan.checkpoints);
                self.hosted(me, &plan)
            }
            // It has not gone yet.
            Err(HostError::Twice) => Ok(()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Nodes that host a group are now demanded to do so, as the leader's cluster state says.
    /// Returns a difference that remains.
    pub(in crate::cluster) fn missing_deployment(&mut self) -> Option<String> {
        let deploying = self.deploying.as_ref()?;
        if deploying.deployed.len() < deploying.plan.wanted.len() || deploying.said.is_some() {
            return Some("what people said is not answered yet".into());
        }
        let mut leads = None;
        for host in &self.fabric.hosts {
            let status = host.process.as_ref()?.status();
            let group = status.groups.iter().find(|group| group.name == MANAGER)?;
            let synced = group.replicas.iter().filter(|replica| replica.synced).count();
            let (members, nodes) = (group.replicas.len(), self.options.nodes);
            if let Some(missing) = liveness::group(MANAGER, nodes, synced, members) {
                return Some(missing);
            }
            leads = group.primary.map(|member| place_of(member.node));
        }
        let cluster_state = &deploying.nodes[leads?].cluster_state;
        // A command may be delivered at one node, and still be on its way to another.
        if deploying.nodes.iter().any(|desk| desk.cluster_state != *cluster_state) {
            return Some("the nodes' cluster states are not alike yet".into());
        }
        let mut missing = None;
        for place in 0..deploying.plan.wanted.len() {
            let placed = cluster_state.of(&self.options.groups[place].name);
            let on = placed.map(|it| it.on.iter().map(|node| place_of(*node)).collect::<Vec<_>>());
            let runs = |node: NodeId, wanted: &Program| {
                deploying.nodes[place_of(node)].programs[place].runs(wanted)
            };
            let lacks =
                deployed::missing(cluster_state, &deploying.drained, self.options.nodes, placed)
                    .or_else(|| deployed::unlike(cluster_state, placed?, runs));
            missing = missing.or(lacks);
            if let Some(on) = on.filter(|on| !on.is_empty()) {
                self.options.groups[place].hosts = on;
            }
        }
        missing
    }

    /// At the end: all cluster states are alike.
    pub(in crate::cluster) fn finish_deployments(&self) -> Verdict {
        let Some(deploying) = &self.deploying else { return Ok(()) };
        let cluster_states: Vec<&ClusterState> =
            deploying.nodes.iter().map(|desk| &desk.cluster_state).collect();
        deployed::alike(&cluster_states)
    }
}
