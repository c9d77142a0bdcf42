//! The faults of a seed, and their ends.

use job::{Command, JobState};
use wire::Duration;

use super::node::{ROOM, id};
use super::options::Fault;
use super::{At, Event, Exit, LOOK, World, images};
use crate::check::Verdict;
use crate::disk::{Disk, Troubles};

/// How often users look at their jobs.
const USERS: Duration = Duration::from_millis(50);

impl World {
    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.options.pause;
        self.faults.span(pause / 4, 2 * pause)
    }

    pub(super) fn fault(&mut self) -> Verdict {
        if self.calm.is_some() {
            return Ok(());
        }
        let pause = self.pause();
        self.queue.push(self.queue.now() + pause, Event::Fault);
        let fault = self.faults.pick(&self.options.faults);
        let node = self.faults.count(0, self.nodes.len() - 1);
        self.trace.note(self.queue.now(), 50, node, [fault as u64, 0]);
        self.trace.say(self.queue.now(), || format!("FAULT {fault:?} at node {node}"));
        match fault {
            Fault::KillRank | Fault::FailRank => {
                let numbers: Vec<u64> =
                    self.nodes[node].ranks.values().map(|it| it.number).collect();
                if numbers.is_empty() {
                    return Ok(());
                }
                let exit = if fault == Fault::KillRank { Exit::Killed } else { Exit::Failed };
                let number = self.faults.pick(&numbers);
                self.exit(node, number, exit)
            }
            Fault::KillRanks => {
                let numbers: Vec<u64> =
                    self.nodes[node].ranks.values().map(|it| it.number).collect();
                numbers.into_iter().try_for_each(|it| self.exit(node, it, Exit::Killed))
            }
            Fault::KillAgents => {
                self.several(node).into_iter().for_each(|it| self.kill_agent(it));
                Ok(())
            }
            Fault::KillNodes => {
                let nodes = self.several(node);
                nodes.into_iter().try_for_each(|node| self.end(node, false))
            }
            Fault::Power => self.end(node, true),
            Fault::AllPower => (0..self.nodes.len()).try_for_each(|node| self.end(node, true)),
            Fault::NewDisk => {
                self.end(node, true)?;
                let disk = Disk::new(ROOM, self.options.troubles, self.faults.fork());
                self.nodes[node].disk = disk;
                self.nodes[node].harmed.clear();
                Ok(())
            }
            Fault::Stop | Fault::Save => {
                let jobs: Vec<u64> = self.jobs.keys().copied().collect();
                if jobs.is_empty() || !self.is_quorate() {
                    return Ok(());
                }
                let job = self.faults.pick(&jobs);
                let stops = fault == Fault::Stop;
                self.order(if stops { Command::Kill { job } } else { Command::Save { job } }, None)
            }
            Fault::Cut => {
                self.several(node).into_iter().for_each(|node| self.cut(node));
                Ok(())
            }
            _ => {
                self.trouble(fault, node);
                Ok(())
            }
        }
    }

    /// This node, and at times others.
    fn several(&mut self, node: usize) -> Vec<usize> {
        let many = if self.faults.one_in(3) { self.nodes.len() } else { 1 };
        let mut nodes = self.faults.distinct(many, self.nodes.len());
        nodes.truncate(self.faults.count(1, many));
        if many == 1 { vec![node] } else { nodes }
    }

    /// Faults of disks, and of those who lead.
    fn trouble(&mut self, fault: Fault, node: usize) {
        let span = self.faults.scale(Duration::from_millis(10), Duration::from_secs(1));
        let it = &mut self.nodes[node];
        match fault {
            Fault::Rot => {
                let rotten = it.disk.rot().and_then(|(file, ..)| images::image_of(file));
                it.harmed.extend(rotten);
            }
            Fault::Harm => it.harmed.extend(images::harm(&mut it.disk, &mut self.faults)),
            Fault::Full => {
                it.disk.capacity = it.disk.used() + self.faults.count(0, 20_000);
                self.queue.push(self.queue.now() + span, Event::Node(node, At::Roomy));
            }
            Fault::Drain => {
                self.drained.insert(id(node));
                self.queue.push(self.queue.now() + span, Event::Node(node, At::Returned));
            }
            Fault::Move => self.move_leader(),
            _ => unreachable!("it is no trouble"),
        }
    }

    fn cut(&mut self, node: usize) {
        let cut = self.next();
        if self.nodes[node].cut.is_some() {
            return;
        }
        self.nodes[node].cut = Some(cut);
        self.within(2 * self.options.detection, node, At::Alone);
        let span = self.faults.scale(Duration::from_millis(10), Duration::from_secs(3));
        self.queue.push(self.queue.now() + span, Event::Node(node, At::Joined(cut)));
        self.regroup_soon();
    }

    /// A node is connected again.
    pub(super) fn join(&mut self, node: usize, cut: u64) {
        let it = &mut self.nodes[node];
        if it.cut != Some(cut) {
            return;
        }
        it.cut = None;
        self.trace.say(self.queue.now(), || format!("node {node} is connected again"));
        self.rejoin(node);
        self.regroup_soon();
    }

    /// A node dies; it begins again later.
    fn end(&mut self, node: usize, power: bool) -> Verdict {
        if !self.nodes[node].up {
            return Ok(());
        }
        // The last of its words may have been ordered.
        while !self.nodes[node].out.is_empty() && self.faults.one_in(2) {
            let left = self.nodes[node].out.len();
            self.send(node)?;
            if self.nodes[node].out.len() == left {
                break;
            }
        }
        self.deaths += 1;
        let it = &mut self.nodes[node];
        it.end();
        if power {
            it.disk.lose_power();
        }
        self.within(self.options.restart, node, At::Boot);
        self.regroup_soon();
        Ok(())
    }

    pub(super) fn boot(&mut self, node: usize) {
        let it = &mut self.nodes[node];
        if it.up {
            return;
        }
        (it.up, it.life) = (true, it.life + 1);
        self.trace.say(self.queue.now(), || format!("node {node} begins"));
        self.within(self.options.restart, node, At::Agent);
        self.regroup_soon();
    }

    /// Users submit their jobs, and go on with those that were stopped.
    pub(super) fn user(&mut self) -> Verdict {
        self.queue.push(self.queue.now() + USERS, Event::User);
        if !self.is_quorate() {
            return Ok(());
        }
        let since = self.queue.now().since(super::BEGIN);
        let due = self.options.jobs.get(self.jobs.len()).filter(|plan| plan.at <= since);
        if let Some(plan) = due {
            let spec = plan.spec.clone();
            self.order(Command::Submit(spec), None)?;
        }
        let stopped = |(number, job): (u64, &job::Job)| {
            let over = matches!(job.state, JobState::Running | JobState::Finished);
            (!over).then_some(number)
        };
        let stopped: Vec<u64> = self.order.book.jobs().filter_map(stopped).collect();
        for job in stopped {
            if self.calm.is_some() || self.faults.one_in(6) {
                self.order(Command::Resume { job }, None)?;
            }
        }
        Ok(())
    }

    /// All heals.
    pub(super) fn calm(&mut self) {
        let now = self.queue.now();
        self.trace.say(now, || "ALL HEALS".into());
        self.calm = Some(now);
        self.drained.clear();
        for node in 0..self.nodes.len() {
            let it = &mut self.nodes[node];
            it.disk.troubles = Troubles::default();
            it.disk.capacity = ROOM;
            if let Some(cut) = it.cut {
                self.join(node, cut);
            }
            self.soon(node, At::Boot);
            self.within(Duration::from_millis(200), node, At::Agent);
        }
        self.queue.push(now + LOOK, Event::Check);
    }
}
