//! How a cluster goes through a script.

use manager::cluster_state::Command;
use wire::system::MANAGER_ID;
use wire::{Duration, GroupId, Member, NodeId, Time};

use super::{Operation, Stage};
use crate::check::Verdict;
use crate::check::operations::{self, Place};
use crate::cluster::{Cluster, Extra};
use crate::fabric::{node_id, place_of};
use crate::strike::Relief;

impl Cluster {
    /// Begins the operation when all is there, and looks whether it has ended.
    pub(in crate::cluster) fn follow_script(&mut self) -> Verdict {
        let Some(stage) = self.course.script.as_ref().map(|it| it.stage) else { return Ok(()) };
        if self.course.is_calm() {
            return Ok(());
        }
        let now = self.fabric.now();
        let missing = self.missing_deployment().or_else(|| self.missing()).or_else(|| self.busy());
        match stage {
            Stage::Deploying if missing.is_none() => self.begin_operation(),
            Stage::Deploying => {
                operations::begun(now.since(Time::ZERO), missing.unwrap_or_default())
            }
            Stage::UnderWay(since) => {
                self.ask_for_move(now)?;
                let missing = missing.or_else(|| self.missing_of_operation());
                match missing {
                    None => {
                        let script = self.course.script.as_mut().expect("it is followed");
                        script.stage = Stage::Over;
                        let place =
                            Operation::ALL.iter().position(|it| *it == script.script.operation);
                        self.summary.steps_of[place.expect("it is one of all")] += script.steps;
                        self.fabric.say(|| "THE OPERATION HAS ENDED".into());
                        self.heal()
                    }
                    Some(missing) => operations::ended(now.since(since), missing),
                }
            }
            Stage::Over => Ok(()),
        }
    }

    fn begin_operation(&mut self) -> Verdict {
        let now = self.fabric.now();
        let leader = self.leader();
        let hosts = &self.options.groups[0].hosts;
        let script = self.course.script.as_mut().expect("it is followed");
        let primary = self.watch.promise.newest(GroupId::of(&self.options.groups[0].name)).first();
        let others: Vec<NodeId> = hosts
            .iter()
            .map(|place| node_id(*place))
            .filter(|node| Some(*node) != primary.map(|member| member.node))
            .collect();
        let all: Vec<NodeId> = hosts.iter().map(|place| node_id(*place)).collect();
        // Half of the times the operation concerns the leader.
        let leads = leader.map(|leader| leader.node).filter(|node| all.contains(node));
        let (drained, moved) = (script.draw.pick(&all), script.draw.pick(&others));
        let drained = leads.filter(|_| script.draw.one_in(2)).unwrap_or(drained);
        script.target = if script.script.operation == Operation::Move { moved } else { drained };
        script.stage = Stage::UnderWay(now);
        let (operation, target) = (script.script.operation, script.target);
        let deploying = self.deploying.as_mut().expect("something is deployed");
        let command = match operation {
            Operation::Drain => Some(Command::Drain { node: target }),
            Operation::Upgrade => Some(deploying.replace_program(&self.options.groups, "second")),
            Operation::Broken => Some(
                deploying.replace_program(&self.options.groups, crate::cluster::upgrading::BROKEN),
            ),
            Operation::Move => None,
        };
        deploying.ordered.extend(command);
        self.fabric.say(|| format!("THE OPERATION {operation:?} of {target} BEGINS"));
        Ok(())
    }

    /// A requester of a move repeats it until the primary is there.
    fn ask_for_move(&mut self, now: Time) -> Verdict {
        let script = self.course.script.as_mut().expect("it is followed");
        let waits = script.asked.is_some_and(|at| now < at + operations::AGAIN);
        if script.script.operation != Operation::Move || waits {
            return Ok(());
        }
        let asked = script.draw.count(0, self.options.nodes - 1);
        let (to, local) = (script.target, self.fabric.local(asked));
        let id = GroupId::of(&self.options.groups[0].name);
        if !self.fabric.hosts[asked].runs() {
            return Ok(());
        }
        script.asked = Some(now);
        let process = self.fabric.hosts[asked].process.as_mut().expect("it runs");
        let begun = process.move_primary(local, id, to);
        self.fabric.say(|| format!("node {} moves {id} to {to}: {begun:?}", asked + 1));
        self.drain(asked)
    }

    /// Returns an effect that the operation still lacks, when all is as the cluster state says.
    fn missing_of_operation(&self) -> Option<String> {
        let script = self.course.script.as_ref()?;
        let deploying = self.deploying.as_ref()?;
        let target = script.target;
        let group = &self.options.groups[0];
        let id = GroupId::of(&group.name);
        let hosted = self.deployed().iter().filter(|group| {
            let newest = self.watch.promise.newest(GroupId::of(&group.name));
            newest.iter().any(|member| member.node == target)
        });
        let placed = deploying.cluster_state(place_of(target)).of(&group.name)?;
        let primary = self.watch.promise.newest(id).first().map(|member| member.node);
        operations::missing(
            script.script.operation,
            &Place {
                target,
                drained: deploying.cluster_state(place_of(target)).is_drained(target),
                hosts: hosted.count(),
                primary,
                placed,
            },
        )
    }

    /// The life that has the primary of the cluster state, as the newest view says.
    fn leader(&self) -> Option<Member> {
        let first = self.watch.promise.newest(MANAGER_ID).first().copied();
        first.filter(|member| self.watch.promise.lives(*member))
    }

    /// If this was the step, the leader dies; its host reports that, or loses power.
    pub(in crate::cluster) fn interrupt(&mut self) -> Verdict {
        if !self.course.script.as_mut().is_some_and(|script| std::mem::take(&mut script.due)) {
            return Ok(());
        }
        let Some(leader) = self.leader() else { return Ok(()) };
        // Where it alone has what was answered nothing is promised.
        if !self.watch.promise.covers(leader) {
            self.summary.uncovered += 1;
            return Ok(());
        }
        let now = self.fabric.now();
        let script = self.course.script.as_mut().expect("it was there");
        let power = script.draw.one_in(3);
        let back = script.draw.pick(&[30, 150, 600]);
        script.stage = Stage::UnderWay(now);
        self.fabric.say(|| format!("FAULT {leader} leads, and dies; power={power}"));
        let node = place_of(leader.node);
        self.end(node, power);
        self.fabric.later(Duration::from_millis(back), Extra::Relief(Relief::Boot(node)));
        self.summary.interrupted += 1;
        Ok(())
    }
}
