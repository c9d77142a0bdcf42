//! Deaths in a cluster, and the restarts.

use engine::{Begun, HostError};
use wire::client::Request;
use wire::{ClientId, Duration, GroupId, Member, Time};

use super::{AGAIN, Dying, KNOWN, Kind, RESTART, STORED, TIMEOUT};
use crate::check::{Verdict, bounded};
use crate::cluster::{Cluster, Extra};
use crate::options::GroupPlan;
use crate::strike::{Relief, away};
use crate::watch::Watch;

impl Cluster {
    /// Hosts a replica as its group's plan says.
    pub(in crate::cluster) fn take_in(
        stack: &mut engine::Stack<ring::Ring>,
        now: Time,
        plan: &GroupPlan,
        watch: &Watch,
    ) -> Result<GroupId, HostError> {
        let id = match plan.program {
            true => stack.host_program(now, &plan.name, plan.options),
            false => stack.host(now, &plan.name, plan.options),
        }?;
        stack.handle_merges(id, watch.merges(id));
        Ok(id)
    }

    pub(in crate::cluster) fn plan_fall(&mut self) {
        let Some(poisoning) = &mut self.poisoning else { return };
        if let Some(every) = poisoning.plan.falls {
            let wait = poisoning.draw.span(every / 4, every * 2);
            self.fabric.later(wait, Extra::Fall);
        }
    }

    fn plan_of(&self, group: GroupId) -> Option<&GroupPlan> {
        self.options.groups.iter().find(|plan| GroupId::of(&plan.name) == group)
    }

    /// A client asks this node.
    pub(in crate::cluster) fn note_asked(&mut self, node: usize, request: &Request) {
        let (now, me) = (self.fabric.now(), self.fabric.member(node));
        let call = (request.group, request.client, request.number);
        self.watch.poisons.asked(call, now);
        if let Some(poisoning) = &mut self.poisoning {
            poisoning.asked.entry((me, call)).or_insert(now);
            poisoning.since.entry(call).or_insert(self.executors.last());
        }
    }

    /// The call under way at a replica kills its service before it ends.
    pub(in crate::cluster) fn is_deadly(&self, node: usize, group: GroupId) -> Option<Dying> {
        let poisoning = self.poisoning.as_ref().filter(|_| !self.course.is_calm())?;
        let plan = self.plan_of(group).filter(|plan| plan.poisonous)?;
        let (client, number) = self.executors.get(node, group)?.changes_by()?;
        let call = (group, client, number);
        let (kind, with_node) = poisoning.of(call)?;
        let node = with_node || !plan.program;
        let first = !poisoning.killed.contains_key(&call);
        if poisoning.put_off.get(&call).is_some_and(|times| *times > TIMEOUT) {
            return None;
        }
        (kind == Kind::Always || first).then_some(Dying { call, kind, node, late: false })
    }

    /// The call that a replica has executed kills its service soon.
    pub(in crate::cluster) fn is_late(
        &mut self,
        node: usize,
        group: GroupId,
        call: (ClientId, u64),
    ) {
        let (call, calm) = ((group, call.0, call.1), self.course.is_calm());
        let Some(poisoning) = self.poisoning.as_mut().filter(|_| !calm) else { return };
        let Some((kind @ Kind::Late, _)) = poisoning.of(call) else { return };
        if poisoning.killed.get(&call) == Some(&1) {
            let span = poisoning.draw.span(Duration::ZERO, Duration::from_micros(400));
            let serial = self.executors.at(node, group).serial;
            // Its answer may be on its way: the node's report of it is lost only with the node.
            let dying = Dying { call, kind, node: true, late: true };
            let at = self.fabric.now() + span;
            self.fabric.deliver(at, node, Extra::Dies(serial, dying));
        }
    }

    /// A replica's service is about to die of a call.
    pub(in crate::cluster) fn dies(&mut self, node: usize, serial: u64, dying: Dying) -> Verdict {
        let Dying { call, kind, node: with_node, late } = dying;
        let group = call.0;
        let executor = self.executors.of_serial(node, group, serial);
        if executor.is_none() || self.course.is_calm() {
            return Ok(());
        }
        let me = self.fabric.member(node);
        let may = if with_node { self.may_end(me) } else { self.may_fall(node, group) };
        if !may {
            // A node that waits for the group's state, or is to leave, may depend on this one.
            let poisoning = self.poisoning.as_mut().expect("it kills");
            *poisoning.put_off.entry(call).or_default() += 1;
            self.watch.poisons.spare(call);
            let again = match late {
                true => Extra::Dies(serial, dying),
                false => Extra::Executed(group, serial),
            };
            self.fabric.deliver(self.fabric.now() + AGAIN, node, again);
            return Ok(());
        }
        let now = self.fabric.now();
        let cold = self.plan_of(group).is_some_and(GroupPlan::is_cold);
        let poisoning = self.poisoning.as_mut().expect("it kills");
        let killed = poisoning.killed.entry(call).or_default();
        *killed += 1;
        let first = *killed == 1;
        // In a cold passive group, while no later call waits that rests on it.
        let process = self.fabric.hosts[node].process.as_ref();
        let is_last = !cold || process.is_none_or(|process| process.has_followed(group));
        let asked =
            is_last && poisoning.asked.get(&(me, call)).is_some_and(|at| *at + KNOWN <= now);
        // The state with which a replica joins a cold passive group does not say of which calls in
        // the log a leader may have died that was lost with its node (seed 1443 without this).
        let came = poisoning.since.get(&call).is_some_and(|last| serial > *last) && cold;
        self.summary.kills += 1;
        self.fabric.say(|| format!("{me} dies of {call:?}, {kind:?}"));
        if first || kind == Kind::Always {
            // Where a node has died, the call may have been answered: then it is refused only while
            // its client asks.
            let quiet = self.watch.poisons.is_quiet(call);
            let (lasting, known) = (kind == Kind::Always, !came && (quiet || with_node && asked));
            self.watch.poisons.kills(call, me, with_node, (lasting, known))?;
        } else {
            self.watch.poisons.died(me, now); // whatever it executes then
        }
        if !with_node {
            return self.fall(node, group, true);
        }
        self.end(node, false);
        let poisoning = self.poisoning.as_mut().expect("it kills");
        let span = self.options.faults.span(&mut poisoning.draw);
        self.fabric.later(span, Extra::Relief(Relief::Boot(node)));
        Ok(())
    }

    /// The promise covers the death of this life.
    fn may_end(&self, me: Member) -> bool {
        let now = self.fabric.now();
        !self.course.is_spared(now)
            && !self.watch.promise.pending()
            && self.watch.promise.covers(me)
    }

    /// The promise covers the death of a program here: its node, or another that has the group's
    /// state, stays until the group knows.
    fn may_fall(&self, node: usize, group: GroupId) -> bool {
        let me = self.fabric.member(node);
        let away = away(&self.fabric);
        self.fabric.hosts[node].runs()
            && self.is_whole()
            && self.is_one_ring()
            && !self.watch.promise.pending()
            && self.watch.promise.lives(me)
            && self.watch.promise.may_fall(group, me, &away)
    }

    /// Programs die, one or all of a group.
    pub(in crate::cluster) fn fall_some(&mut self) -> Verdict {
        if self.course.is_calm() {
            return Ok(());
        }
        self.plan_fall();
        let groups = self.options.groups.iter().filter(|plan| plan.program);
        let groups: Vec<GroupId> = groups.map(|plan| GroupId::of(&plan.name)).collect();
        let poisoning = self.poisoning.as_mut().expect("they do");
        let (all, at) = (poisoning.draw.one_in(2), poisoning.draw.bits() as usize);
        let Some(&group) = groups.get(at % groups.len().max(1)) else { return Ok(()) };
        let serves = |node: &usize| self.executors.has(*node, group);
        let nodes: Vec<usize> = (0..self.options.nodes).filter(serves).collect();
        let victims = match nodes.is_empty() || all {
            true => nodes,
            false => vec![nodes[at % nodes.len()]],
        };
        if !victims.iter().all(|node| self.may_fall(*node, group)) {
            return Ok(());
        }
        for node in victims {
            let (now, me) = (self.fabric.now(), self.fabric.member(node));
            self.watch.poisons.died(me, now);
            self.fall(node, group, true)?;
        }
        Ok(())
    }

    /// The program of a replica dies, and is started again. `came`: it was there.
    pub(in crate::cluster) fn fall(&mut self, node: usize, group: GroupId, came: bool) -> Verdict {
        let (now, me) = (self.fabric.local(node), self.fabric.member(node));
        let at = self.fabric.now();
        self.fabric.say(|| format!("FAULT the program of {group} at {me} dies"));
        self.summary.falls += 1;
        if self.options.disks.is_some() {
            self.course.spare_until(at + STORED);
        }
        let executor = self.executors.remove(node, group).filter(|_| came);
        let begun = executor.map_or(Begun::Nothing, |executor| executor.begun());
        self.watch.promise.unhosted(group, me);
        let process = self.fabric.hosts[node].process.as_mut().expect("it runs");
        process.service_lost(now, group, begun);
        self.watch.lost_a_state();
        // A deployed group's service is started again by its node, as the cluster state says.
        let place = self.options.groups.iter().position(|plan| GroupId::of(&plan.name) == group);
        if let Some(place) = place.filter(|place| *place >= self.options.deployed()) {
            let span = self.restart_within();
            self.fabric.later(span, Extra::Relief(Relief::Host(node, place)));
        }
        self.drain(node)
    }

    fn restart_within(&mut self) -> Duration {
        let shortest = Duration::from_millis(1);
        self.poisoning.as_mut().map_or(shortest, |it| it.draw.scale(shortest, RESTART))
    }

    /// The program of a group's only replica with the state has died: the next one goes on from
    /// what its node has kept.
    pub(in crate::cluster) fn revive(&mut self, node: usize, group: GroupId) -> Verdict {
        let me = self.fabric.member(node);
        let plan = self.plan_of(group).expect("a group of this world").clone();
        self.watch.promise.revived(group, me);
        self.watch.cold.revived(me, group);
        self.watch.replaced(me, group, &[])?;
        self.summary.revived += 1;
        self.executors.host(me, &plan).awaited = true;
        let at = self.fabric.now() + self.restart_within();
        self.fabric.deliver(at, node, Extra::Attached(group, self.executors.last()));
        Ok(())
    }

    /// An answer that says that a call is poisonous is lost at times, and its client asks again.
    pub(in crate::cluster) fn lose_answer(&mut self, client: usize) -> Verdict {
        let calm = self.course.is_calm();
        let lost = self.poisoning.as_mut().is_some_and(|it| !calm && it.draw.one_in(3));
        if lost { self.reset(client) } else { Ok(()) }
    }

    /// At the end a node keeps no more of a replica than it may. For a cold passive group it keeps
    /// a log in addition.
    pub(in crate::cluster) fn finish_journals(&self) -> Verdict {
        let most = self.options.snapshot_after();
        let running = self.fabric.hosts.iter().filter_map(|host| host.process.as_ref());
        for status in running.map(engine::Stack::status) {
            let groups = status.groups.into_iter().filter(|group| group.log.is_none());
            for group in groups {
                let kept = group.journal.map_or(0, |journal| journal.records as u64);
                bounded::journal(status.me, &group.name, kept, most)?;
            }
        }
        Ok(())
    }

    /// At the end all replicas that run have the same list of poisonous calls.
    pub(in crate::cluster) fn finish_poisons(&self, group: &GroupPlan) -> Verdict {
        let id = GroupId::of(&group.name);
        let list = |node: &usize| {
            let member = self.fabric.member(*node);
            let process = self.fabric.hosts[*node].process.as_ref()?;
            let runs = self.watch.cold.runs(member, id);
            Some((member, process.poisoned(id)?)).filter(|_| runs)
        };
        let lists: Vec<_> = group.hosts.iter().filter_map(list).collect();
        self.watch.poisons.finish(id, &lists)
    }

    /// The next start of a program has come, or has ended before that.
    pub(in crate::cluster) fn attached(
        &mut self,
        node: usize,
        group: GroupId,
        serial: u64,
    ) -> Verdict {
        let executor = self.executors.of_serial(node, group, serial);
        let Some(executor) = executor else { return Ok(()) };
        executor.awaited = false;
        let ends =
            !self.course.is_calm() && self.poisoning.as_mut().is_some_and(|it| it.draw.one_in(6));
        if ends && self.may_fall(node, group) {
            let (now, me) = (self.fabric.now(), self.fabric.member(node));
            self.watch.poisons.died(me, now);
            return self.fall(node, group, false);
        }
        self.begin(node, group);
        Ok(())
    }
}
