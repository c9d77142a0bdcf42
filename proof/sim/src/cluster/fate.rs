//! Faults, healing, and the demands at the end.

mod ended;

use client::Link;
use engine::{GroupStatus, Quorum, Status};
use wire::ordered::Style;
use wire::{Duration, GroupId, ViewNumber};

use super::course::Epilogue;
use super::{Cluster, Extra};
use crate::check::bounded::Silence;
use crate::check::{Verdict, liveness};
use crate::fabric::place_of;
use crate::faults::{FaultKind, apart};
use crate::options::GroupPlan;
use crate::registers::KEYS;
use crate::strike::{Relief, Strike, away, choose, relieve, strike};
use crate::trace::mix;

/// How often it is looked whether all is well again.
const LOOK: Duration = Duration::from_millis(10);

/// Nothing else strikes while a group is orphaned: it would end before there are rings that show
/// it.
const ORPHANED: Duration = Duration::from_millis(300);

/// New calls, once all is well, must be answered within this time.
const TIMEOUT: Duration = Duration::from_secs(2);

impl Cluster {
    /// The next fault of the plan strikes.
    pub(super) fn fault(&mut self) -> Verdict {
        if self.course.is_calm() {
            return Ok(());
        }
        let wait = self.options.faults.wait(&mut self.faults);
        self.fabric.later(wait, Extra::Fault);
        let Some(kind) = self.options.faults.kind(&mut self.faults) else { return Ok(()) };
        if self.options.poison.is_some() && self.course.is_spared(self.fabric.now()) {
            return Ok(());
        }
        self.decays();
        let blackouts = self.options.disks.filter(|_| self.options.keeps_all());
        if blackouts.is_some_and(|plan| self.faults.one_in(plan.blackouts)) {
            return self.black_out();
        }
        if self.watch.promise.pending() || self.course.is_spared(self.fabric.now()) {
            return Ok(());
        }
        let places = self.options.clocks.len();
        // Without a quorum each part of a split has views of its own, and no node knows which
        // replica is the last.
        let quorum = self.options.quorum == Quorum::Majority;
        let covered = |victim| quorum && self.watch.promise.covers(victim);
        let chosen = match kind {
            FaultKind::Orphan => self.orphan(),
            kind => choose(kind, &self.fabric, places, &mut self.faults, covered),
        };
        let Some(fault) = chosen.filter(|fault| self.may_leave(fault)) else { return Ok(()) };
        self.fabric.say(|| format!("FAULT {fault:?}"));
        self.begin_gap(&fault);
        let plan = &self.options.faults;
        let (span, relief) = strike(&fault, &mut self.fabric, plan, &mut self.faults);
        if let Some(relief) = relief {
            self.fabric.later(span, Extra::Relief(relief));
        }
        match fault {
            Strike::End { node, power } => self.end(node, power),
            Strike::Leave(node) => {
                self.watch.promise.leaves(self.fabric.member(node));
                self.watch.poisons.goes(self.fabric.now());
                let now = self.fabric.local(node);
                self.fabric.hosts[node].process.as_mut().expect("chosen to run").leave(now);
                self.drain(node)?;
            }
            Strike::Burst(nodes) => self.burst(&nodes),
            Strike::Reset(client) => {
                self.reset(client)?;
                self.reset_gateway(client)?;
            }
            Strike::Slow(node) => self.executors.set_slow(node, true),
            Strike::Unhost(node, group) => self.unhost(node, group)?,
            Strike::Pause(_) | Strike::Cut(_) | Strike::Storm(_) | Strike::Ambush(_) => {}
            Strike::Flap(_) | Strike::Lag(..) | Strike::WallJump(..) => {}
            Strike::Orphan(..) => self.ask_all()?,
        }
        Ok(())
    }

    /// All nodes hear each other as the seed's weather lets them.
    pub(super) fn is_whole(&self) -> bool {
        let calm = self.fabric.network.weather() == self.options.weather;
        away(&self.fabric).is_empty() && self.fabric.network.is_whole() && calm
    }

    /// A request is held by some replicas of a group and by bystanders, and then only the other
    /// replicas are there.
    fn orphan(&mut self) -> Option<Strike> {
        let group = self.faults.count(0, self.options.groups.len() - 1);
        let group = GroupId::of(&self.options.groups[group].name);
        let synced = self.watch.promise.newest(group);
        // Which replicas go on in a component is not known at once, and it may be one alone (seed
        // 1945).
        let known = self.fabric.now() >= self.course.formed() + ORPHANED;
        if synced.len() < 2 || !self.is_whole() || !known {
            return None;
        }
        let mut hosts: Vec<usize> = synced.iter().map(|member| place_of(member.node)).collect();
        let late = hosts.split_off(self.faults.count(1, hosts.len() - 1));
        let primary = hosts[0];
        let away = if self.faults.one_in(2) { &late } else { &hosts };
        let nodes = self.options.nodes;
        self.course.spare_until(self.fabric.now() + ORPHANED);
        Some(Strike::Orphan(apart(&late, nodes), apart(away, nodes), primary))
    }

    /// Every client calls every group, to have something that can be lost.
    fn ask_all(&mut self) -> Verdict {
        let now = self.fabric.now();
        let timeout = self.options.load.timeout * 4;
        if self.gateways.is_some() {
            let groups = self.options.groups.clone();
            groups.iter().for_each(|group| self.count_asked(&group.name, timeout));
            return Ok(());
        }
        for client in 0..self.customers.len() {
            for group in &self.options.groups {
                let begun = self.customers[client].ask(now, &group.name, timeout);
                self.watch.begun(now, client, &begun);
            }
            self.customer_ran(client)?;
        }
        Ok(())
    }

    /// If it is a node that is told to leave, its groups can do without its replicas.
    fn may_leave(&self, fault: &Strike) -> bool {
        let Strike::Leave(node) = fault else { return true };
        let member = self.fabric.member(*node);
        self.watch.promise.spares_all_of(member, &away(&self.fabric), self.is_whole())
    }

    /// Several processes are killed at once, as far as the promise survives it, and start again
    /// together.
    fn burst(&mut self, nodes: &[usize]) {
        for &node in nodes {
            let runs = self.fabric.hosts[node].process.is_some();
            let quorum = self.options.quorum == Quorum::Majority;
            if runs && quorum && self.watch.promise.covers(self.fabric.member(node)) {
                self.end(node, false);
                let soon = self.faults.span(Duration::ZERO, Duration::from_millis(20));
                self.fabric.later(soon, Extra::Relief(Relief::Boot(node)));
            }
        }
    }

    /// All running nodes are in one ring. After a network is whole again, some nodes may not have
    /// rejoined yet.
    pub(super) fn is_one_ring(&self) -> bool {
        let running = self.fabric.hosts.iter().filter_map(|host| host.process.as_ref());
        let rings: Vec<_> = running.map(|process| process.ring_status()).collect();
        rings.iter().all(|ring| {
            ring.state == "operational"
                && ring.id == rings[0].id
                && ring.members.len() == rings.len()
        })
    }

    /// A node gives its replica of a group up, if others can go on with it; or the replica's
    /// program dies, and with it all that it was given and has not answered.
    fn unhost(&mut self, node: usize, group: usize) -> Verdict {
        let plan = &self.options.groups[group % self.options.groups.len()];
        let id = GroupId::of(&plan.name);
        let me = self.fabric.member(node);
        // Without a quorum a part may find itself with the last replica, and a group without any is
        // no group.
        let spared = self.options.quorum == Quorum::Majority
            && self.is_whole()
            && self.is_one_ring()
            && !self.options.faults.has(&[FaultKind::Flap, FaultKind::Ambush])
            && self.watch.promise.spares(id, me, &away(&self.fabric));
        if !spared || !self.fabric.hosts[node].runs() || !self.executors.has(node, id) {
            return Ok(());
        }
        self.watch.lost_a_state();
        let now = self.fabric.local(node);
        let dies = self.faults.one_in(2);
        if dies && plan.program {
            let at = self.fabric.now();
            self.watch.poisons.died(me, at);
            return self.fall(node, id, true);
        }
        if dies {
            self.fabric.say(|| format!("the program of {id} at {me} dies"));
            self.executors.remove(node, id);
        }
        let process = self.fabric.hosts[node].process.as_mut().expect("it runs");
        if dies {
            process.abandon(now, id)
        } else {
            process.unhost(now, id)
        }
        self.watch.promise.unhosted(id, me);
        match dies {
            true => self.watch.poisons.died(me, self.fabric.now()),
            false => self.watch.poisons.goes(self.fabric.now()),
        }
        self.drain(node)
    }

    /// It hosts the group again.
    fn host(&mut self, node: usize, group: usize) -> Verdict {
        let plan = self.options.groups[group % self.options.groups.len()].clone();
        let now = self.fabric.local(node);
        let me = self.fabric.member(node);
        let Some(process) = &mut self.fabric.hosts[node].process else { return Ok(()) };
        if !plan.hosts.contains(&node) {
            return Ok(());
        }
        let id = GroupId::of(&plan.name);
        if !self.watch.promise.is_leaving(id, me) {
            return Ok(()); // It started anew meanwhile.
        }
        match Self::take_in(process, now, &plan, &self.watch) {
            Ok(id) => {
                process.set_checkpoints(now, id, plan.checkpoints);
                self.hosted(me, &plan)?;
            }
            // It has not gone yet.
            Err(engine::HostError::Twice) => {
                let soon = Duration::from_millis(20);
                self.fabric.later(soon, Extra::Relief(Relief::Host(node, group)));
            }
            Err(error) => panic!("{error}"),
        }
        self.drain(node)
    }

    /// All lives end at once: their processes are killed, or all hosts lose power. They come back
    /// one by one, some late.
    pub(super) fn black_out(&mut self) -> Verdict {
        self.disturb_gap();
        let power = self.faults.one_in(2);
        self.fabric.say(|| format!("BLACKOUT power={power}"));
        for node in 0..self.options.nodes {
            if self.fabric.hosts[node].process.is_some() {
                self.end(node, power);
            }
            let soon = self.faults.scale(Duration::from_millis(1), Duration::from_millis(400));
            self.fabric.later(soon, Extra::Relief(Relief::Boot(node)));
        }
        Ok(())
    }

    /// A life ends.
    pub(super) fn end(&mut self, node: usize, power: bool) {
        self.summary.deaths += 1;
        let me = self.fabric.member(node);
        self.watch.promise.died(me);
        self.watch.poisons.died(me, self.fabric.now());
        self.watch.restyles.died(me);
        for (group, _) in self.executors.of_node(node) {
            self.watch.votes.replaced(me, group);
        }
        self.fabric.kill(node, power);
        self.disks.of(node).end(power);
        self.rot(node);
        self.executors.clear(node);
        if !power {
            self.hang_up(node);
        }
        self.end_gateways(node, power);
        self.end_carrying(node, power);
    }

    /// A node has left as it was told: its process ends, and starts again later.
    pub(super) fn left(&mut self, node: usize) {
        self.end(node, false);
        let span = self.options.faults.span(&mut self.faults);
        self.fabric.later(span, Extra::Relief(Relief::Boot(node)));
    }

    pub(super) fn relieve(&mut self, relief: Relief) -> Verdict {
        self.fabric.say(|| format!("RELIEF {relief:?}"));
        if !matches!(relief, Relief::Boot(_)) {
            self.disturb_gap();
        }
        let cuts = matches!(relief, Relief::Split | Relief::Flap(..) | Relief::Orphan(..))
            && !self.course.is_calm();
        if cuts && self.watch.promise.pending() {
            self.fabric.later(Duration::from_millis(20), Extra::Relief(relief));
            return Ok(());
        }
        match relief {
            Relief::Boot(node) => return self.boot(node),
            Relief::Renew(node) => return self.renew(node),
            Relief::Host(node, group) => return self.host(node, group),
            Relief::Quick(node) => self.executors.set_slow(node, false),
            Relief::Room(node) => self.make_room(node),
            _ => {}
        }
        let calm = self.course.is_calm();
        if let Relief::Orphan(_, victim) = relief
            && !calm
        {
            self.burst(&[victim]);
        }
        let next = relieve(&relief, &mut self.fabric, &self.options, calm, &mut self.faults);
        for (span, relief) in next {
            self.fabric.later(span, Extra::Relief(relief));
        }
        Ok(())
    }

    /// The faults are over.
    pub(super) fn heal(&mut self) -> Verdict {
        if self.course.is_calm() {
            return Ok(());
        }
        let now = self.fabric.now();
        self.course.calm_down(now);
        self.disturb_gap();
        self.fabric.network.heal();
        self.fabric.network.set_weather(self.options.weather.calm());
        self.mend_disks();
        self.calm_hosts();
        for node in 0..self.options.nodes {
            self.executors.set_slow(node, false);
            self.fabric.lag(node, None);
            self.fabric.resume(node);
            self.boot(node)?;
        }
        self.end_the_forlorn();
        self.end_lies();
        self.executors.heal();
        self.end_hangs();
        // Without a quorum a node alone knows no group but its own, and says so.
        if self.options.quorum == Quorum::Majority {
            // A node whose disk fails leaves, even if no other serves its groups: stateless groups
            // may be gone for a while.
            let groups = self.options.groups.iter().filter(|_| self.options.disks.is_some());
            let stateless = groups.filter(|group| group.options.style == Style::Stateless);
            // A group deployed late was not there for clients that called it before.
            let deployed = self.deployed();
            // So it is with one whose hosts have yet to come.
            let late = self.options.groups.iter().filter(|group| self.waits_for_hosts(group));
            let late = late.map(|group| group.name.as_str());
            let mut gone: Vec<&str> =
                stateless.chain(deployed).map(|group| group.name.as_str()).chain(late).collect();
            // A call of a group that calls one of them has no reply either.
            let calls = |gone: &[&str], group: &GroupPlan| {
                group.callee.as_ref().is_some_and(|(callee, _)| gone.contains(&callee.as_str()))
            };
            for _ in &self.options.groups {
                let callers = self.options.groups.iter().filter(|group| calls(&gone, group));
                gone.extend(callers.map(|group| group.name.as_str()).collect::<Vec<_>>());
            }
            let gone: Vec<GroupId> = gone.into_iter().map(GroupId::of).collect();
            match &mut self.gateways {
                Some(gateways) => gateways.calm(now + liveness::WITHIN, &gone),
                None => self.customers.iter_mut().for_each(|it| it.calm(now, &gone)),
            }
        }
        self.fabric.say(|| "ALL HEALS".into());
        self.fabric.later(LOOK, Extra::Look);
        Ok(())
    }

    /// Looks whether all is well again, step by step: rings and groups, new calls, silence.
    pub(super) fn look(&mut self) -> Verdict {
        // Those who could notice may have gone since.
        self.end_lies();
        let now = self.fabric.now();
        let undeployed = self.missing_deployment();
        let missing = undeployed.or_else(|| self.missing());
        self.mind_ranks(missing.is_none())?;
        let missing = missing.or_else(|| self.missing_rank()).or_else(|| self.busy());
        let late = self.course.look(now, missing.is_some());
        if let Some(missing) = &missing {
            self.fabric.say(|| format!("not yet: {missing}"));
        }
        match (self.course.epilogue, &missing) {
            (Epilogue::Healing, None) if self.may_demand() => {
                self.course.epilogue = Epilogue::Calling;
                self.call_again()?;
            }
            // The cells above and below go on talking.
            (Epilogue::Calling, None) if self.under_way() == 0 && self.celling.is_some() => {
                self.course.epilogue = Epilogue::Over;
                return Ok(());
            }
            (Epilogue::Calling, None) if self.under_way() == 0 => {
                self.course.epilogue = Epilogue::Quiet(Silence::new(now));
            }
            (Epilogue::Quiet(mut silence), None) => {
                if silence.listen(now, self.fabric.datagrams, self.options.idle())? {
                    self.course.epilogue = Epilogue::Over;
                    return Ok(());
                }
                self.course.epilogue = Epilogue::Quiet(silence);
            }
            (_, Some(_)) if late => return liveness::finish(missing),
            _ => {}
        }
        self.fabric.later(LOOK, Extra::Look);
        Ok(())
    }

    /// Every client calls every group once more.
    fn call_again(&mut self) -> Verdict {
        let now = self.fabric.now();
        if self.gateways.is_some() {
            self.count_demanded(TIMEOUT);
            return Ok(());
        }
        for client in 0..self.customers.len() {
            for group in &self.options.groups {
                let key = client as u64 % KEYS;
                let begun = self.customers[client].demand(now, group, key, TIMEOUT);
                begun.iter().for_each(|begun| self.watch.begun(now, client, begun));
            }
            self.customer_ran(client)?;
        }
        Ok(())
    }

    /// Returns something that is not right yet.
    pub(super) fn missing(&self) -> Option<String> {
        let statuses: Vec<Option<Status>> = self
            .fabric
            .hosts
            .iter()
            .map(|host| host.process.as_ref().map(|p| p.status()))
            .collect();
        let state = |status: &Status| liveness::NodeState {
            operational: status.ring.state == "operational",
            members: status.ring.members.len(),
            quorate: status.ring.quorate == Some(true),
            ring: mix(status.ring.id.sequence, u64::from(status.ring.id.representative.0)),
        };
        let ours = statuses.iter().enumerate().filter(|(node, _)| self.is_of_cluster(*node));
        let nodes: Vec<_> = ours.map(|(_, status)| status.as_ref().map(state)).collect();
        if let Some(missing) = liveness::rings(&nodes) {
            return Some(missing);
        }
        if let Some(missing) = self.watch.votes.missing() {
            return Some(missing);
        }
        let missing = self.missing_key(&statuses).or_else(|| self.missing_bench());
        let missing = missing.or_else(|| self.missing_growth());
        let missing = missing.or_else(|| self.missing_of_cell(&statuses));
        if let Some(missing) = missing.or_else(|| self.missing_level()) {
            return Some(missing);
        }
        let groups = &self.options.groups;
        groups.iter().find_map(|group| self.missing_in_group(group, &statuses))
    }

    fn missing_in_group(&self, plan: &GroupPlan, statuses: &[Option<Status>]) -> Option<String> {
        for status in statuses.iter().flatten() {
            let Some(group) = find(status, &plan.name) else {
                return Some(format!("{} does not know {}", status.me, plan.name));
            };
            let synced = group.replicas.iter().filter(|replica| replica.synced).count();
            let members = group.replicas.len();
            let missing = liveness::group(&plan.name, plan.hosts.len(), synced, members);
            if missing.is_some() {
                return missing;
            }
        }
        let views = statuses.iter().flatten().filter_map(|status| find(status, &plan.name));
        let newest = views.map(|group| group.view).max();
        let behind = newest.and_then(|newest| self.untold(plan, newest));
        if behind.is_some() {
            return behind;
        }
        let known = statuses.iter().flatten();
        let nodes: Vec<_> = known
            .filter_map(|status| {
                let group = find(status, &plan.name)?;
                let is_primary = group.primary == Some(status.me);
                Some((group.view.0, is_primary, group.log.map(|log| log.runs)))
            })
            .collect();
        liveness::handed_over(&plan.name, &nodes)
    }

    /// A replica that has something to do. That passes, and comes again with each call and each
    /// checkpoint.
    pub(super) fn busy(&self) -> Option<String> {
        let idle = |node: usize, id| {
            let process = self.fabric.hosts[node].process.as_ref();
            process.is_none_or(|process| process.has_followed(id))
                && self.executors.get(node, id).is_some_and(|e| e.is_idle())
        };
        let all = self.options.groups.iter().flat_map(|plan| {
            plan.hosts.iter().map(move |node| (*node, GroupId::of(&plan.name), &plan.name))
        });
        let busy = all.filter(|(node, id, _)| !idle(*node, *id)).map(|(node, id, name)| {
            let process = self.fabric.hosts[node].process.as_ref();
            let lead = process.and_then(|process| process.explain_lead(id)).unwrap_or_default();
            format!("the replica of {name} at node {} is busy: {lead}", node + 1)
        });
        let busy: Vec<String> = busy.collect();
        (!busy.is_empty()).then(|| busy.join("; "))
    }

    /// A client that watches a group, and does not know its view. Not where the other end of its
    /// connection is of an earlier life: nobody tells it that.
    fn untold(&self, plan: &GroupPlan, newest: ViewNumber) -> Option<String> {
        self.customers.iter().enumerate().find_map(|(place, customer)| {
            let (known, links) = customer.session.watched(GroupId::of(&plan.name))?;
            let lives = |link: &Link| {
                let stream = self.streams.get(&customer.connection(place, *link));
                stream.is_some_and(|stream| {
                    let host = &self.fabric.hosts[stream.node];
                    stream.node_open && stream.life == Some(host.incarnation)
                })
            };
            let client = customer.session.client();
            (known < newest && links.iter().any(lives)).then(|| {
                format!("{client} watches {} and knows view {known}, not {newest}", plan.name)
            })
        })
    }
}

fn find<'a>(status: &'a Status, name: &str) -> Option<&'a GroupStatus> {
    status.groups.iter().find(|group| group.name == name)
}
