//! The cluster as nodes come and go.

use engine::{Event, RosterNews};
use wire::ordered::Place;
use wire::roster::Roster;
use wire::{Duration, Incarnation, Member, NodeId, NodeList, NodeSet, RingId, VersionRange};

use super::{Cluster, Extra};
use crate::check::Verdict;
use crate::fabric::{node_id, place_of};
use crate::options::GroupPlan;
use crate::strike::Relief;

/// The longest that a disk takes to keep a roster.
const DISK: Duration = Duration::from_millis(20);

impl Cluster {
    /// The nodes in the configuration of a node that starts, and the roster on its disk.
    pub(super) fn configure_nodes(
        &mut self,
        node: usize,
        (ring, config): (&mut ring::Config, &mut engine::Config),
    ) {
        let Some(growth) = &mut self.growth else { return };
        let mut nodes = growth.configured(node);
        config.nodes.clone_from(&nodes);
        config.roster.clone_from(&growth.kept[node]);
        ring.nodes.clone_from(&nodes);
        // Nodes come and go by rules of level 2.
        config.program.rules = VersionRange::new(1, 2);
        ring.speaks.rules = config.program.rules;
        nodes.sort_unstable();
        growth.lists[node] = NodeList::new(&nodes);
    }

    /// Whether a node may start: a spare one does when it was proposed, one that has gone only while
    /// faults happen.
    pub(super) fn may_start(&self, node: usize) -> bool {
        let calm = self.course.is_calm();
        self.growth.as_ref().is_none_or(|growth| {
            growth.called.contains(&node) && !(calm && growth.retired.contains(&node))
        })
    }

    /// No host of this group has come yet.
    pub(super) fn waits_for_hosts(&self, group: &GroupPlan) -> bool {
        self.growth.as_ref().is_some_and(|growth| {
            let here = |host: &usize| *host < growth.plan.founders || growth.came.contains(host);
            !group.hosts.iter().any(here)
        })
    }

    /// Whether a node is one of the cluster's in the end.
    pub(super) fn is_of_cluster(&self, node: usize) -> bool {
        self.growth.as_ref().is_none_or(|growth| !growth.retired.contains(&node))
    }

    /// The places of hosts, for those of nodes as a node has them.
    pub(super) fn hosts_of(&self, node: usize, to: NodeSet) -> NodeSet {
        let Some(growth) = &self.growth else { return to };
        let mut hosts = NodeSet::EMPTY;
        to.iter().for_each(|place| hosts.insert(place_of(growth.lists[node].node(place))));
        hosts
    }

    /// A node has other places for nodes from here on.
    pub(super) fn places_changed(&mut self, node: usize, list: NodeList) {
        self.growth.iter_mut().for_each(|growth| growth.lists[node] = list.clone());
    }

    /// A node's roster is to be kept; its disk confirms that a little later.
    pub(super) fn keep_roster(&mut self, node: usize, roster: Roster) {
        let life = self.fabric.hosts[node].incarnation;
        let at = self.fabric.now() + self.load.span(Duration::from_micros(50), DISK);
        self.fabric.deliver(at, node, Extra::RosterKept(Box::new(roster), life));
    }

    /// A node's disk has its roster.
    pub(super) fn roster_kept(&mut self, node: usize, roster: Roster, life: Incarnation) {
        let now = self.fabric.local(node);
        let host = &mut self.fabric.hosts[node];
        let Some(stack) = host.process.as_mut().filter(|_| host.incarnation == life) else {
            return;
        };
        stack.handle_roster_kept(now, roster.stamp);
        let Some(growth) = &mut self.growth else { return };
        // A disk writes one after the other.
        if growth.kept[node].as_ref().is_some_and(|kept| kept.stamp > roster.stamp) {
            return;
        }
        for gone in growth.watch.kept(node_id(node), &roster) {
            let gone = place_of(gone);
            growth.retired.insert(gone);
            // Nobody hosts anything there any more.
            for group in &mut self.options.groups {
                group.hosts.retain(|host| *host != gone);
            }
            let soon = growth.draw.span(Duration::ZERO, Duration::from_millis(50));
            self.fabric.later(soon, Extra::Ended(gone));
        }
        growth.kept[node] = Some(roster);
    }

    pub(super) fn plan_growth(&mut self) {
        let Some(growth) = &mut self.growth else { return };
        // In the end all that are to come do so in time.
        let calm = self.course.is_calm();
        let most = if calm { Duration::from_millis(20) } else { growth.plan.apart * 2 };
        let wait = growth.draw.span(Duration::from_millis(5), most);
        self.fabric.later(wait, Extra::Grow);
    }

    /// People have a node come or go, or give that up.
    pub(super) fn grow(&mut self) -> Verdict {
        self.plan_growth();
        let calm = self.course.is_calm();
        let Some(growth) = &mut self.growth else { return Ok(()) };
        let asked = growth.draw.count(0, self.options.nodes - 1);
        let dice = growth.draw.between(0, 9);
        // A group stays with its last host.
        let going = &growth.going;
        let stays = |node: &&usize| !going.contains(*node);
        let lasts = self.options.groups.iter().filter_map(|group| {
            let mut hosts = group.hosts.iter().filter(stays);
            hosts.next().filter(|_| hosts.next().is_none()).copied()
        });
        let needed: Vec<usize> = lasts.collect();
        let Some(motion) = growth.motion(dice, calm, self.options.nodes, &needed) else {
            return Ok(());
        };
        let withdraws = !calm && growth.draw.between(0, 9) < growth.plan.withdraws;
        let now = self.fabric.local(asked);
        let Some(process) = self.fabric.running(asked) else { return Ok(()) };
        let outcome = match withdraws {
            true => process.withdraw_move(now),
            false => process.move_node(now, motion.clone(), |_| Vec::new()),
        };
        let what = if withdraws { "to withdraw".into() } else { format!("to {motion:?}") };
        self.fabric.say(|| format!("node {} is asked {what}: {outcome:?}", asked + 1));
        self.drain(asked)
    }

    /// A node tells something about nodes.
    pub(super) fn told_of_growth(&mut self, node: usize, me: Member, event: &Event) -> Verdict {
        let Some(growth) = &mut self.growth else { return Ok(()) };
        match event {
            Event::Quorum { ring, quorate: true, epoch } => {
                let Some(stack) = &self.fabric.hosts[node].process else { return Ok(()) };
                let status = stack.status();
                // The end of an old ring is delivered when the next one stands.
                if status.ring.id != *ring {
                    growth.watch.missed(me);
                    return Ok(());
                }
                let ring: RingId = *ring;
                let component = (*epoch, ring);
                growth.watch.installed(me, component, &status.ring.members, &status.growth)
            }
            Event::Roster { news, stamp } => self.moved(node, me, *news, *stamp),
            _ => Ok(()),
        }
    }

    fn moved(&mut self, node: usize, me: Member, news: RosterNews, stamp: Place) -> Verdict {
        let Some(growth) = &mut self.growth else { return Ok(()) };
        growth.watch.moved(me, news, stamp)?;
        match news {
            RosterNews::Coming(other) if growth.called.insert(place_of(other)) => {
                let soon = growth.draw.span(Duration::ZERO, Duration::from_millis(100));
                self.fabric.later(soon, Extra::Relief(Relief::Boot(place_of(other))));
            }
            RosterNews::Admitted(other) => _ = growth.came.insert(place_of(other)),
            RosterNews::Going(other) => _ = growth.going.insert(place_of(other)),
            RosterNews::Withdrawn(other) => _ = growth.going.remove(&place_of(other)),
            RosterNews::Dismissed => {
                self.fabric.later(Duration::ZERO, Extra::Ended(node));
            }
            _ => {}
        }
        Ok(())
    }

    /// People end nodes that have gone and know nobody who could tell them.
    pub(super) fn end_the_forlorn(&mut self) {
        let Some(growth) = &self.growth else { return };
        let forlorn = |node: &usize| {
            let knows = |other: NodeId| !growth.retired.contains(&place_of(other));
            growth.retired.contains(node) && !growth.lists[*node].iter().any(|(_, it)| knows(it))
        };
        let forlorn: Vec<usize> = (0..self.options.nodes).filter(forlorn).collect();
        for node in forlorn {
            if self.fabric.hosts[node].process.is_some() {
                self.end(node, false);
            }
        }
    }

    /// A node that has gone ends. While faults happen it may come again, with its old disk.
    pub(super) fn ended(&mut self, node: usize) {
        if self.fabric.hosts[node].process.is_none() {
            return;
        }
        self.end(node, false);
        let Some(growth) = &mut self.growth else { return };
        if growth.draw.one_in(3) {
            let span = growth.draw.span(Duration::from_millis(10), Duration::from_millis(300));
            self.fabric.later(span, Extra::Relief(Relief::Boot(node)));
        }
    }

    /// A node that is to come in the end and has not, or a change that is under way.
    pub(super) fn missing_growth(&self) -> Option<String> {
        let growth = self.growth.as_ref()?;
        let nodes = (0..self.options.nodes).filter(|node| self.is_of_cluster(*node));
        let all: Vec<NodeId> = nodes.map(node_id).collect();
        for (node, host) in self.fabric.hosts.iter().enumerate() {
            let Some(process) = host.process.as_ref() else { continue };
            if !self.is_of_cluster(node) {
                return Some(format!("node {} was retired, and has not ended", node + 1));
            }
            let status = process.status().growth;
            let counted: Vec<NodeId> = status.seats.iter().map(|seat| seat.node).collect();
            if counted != all || status.moving.is_some() {
                return Some(format!("node {} has {status:?}, not {all:?}", node + 1));
            }
        }
        let waits = (0..self.options.nodes).find(|node| !growth.called.contains(node));
        waits.map(|node| format!("node {} was not asked to come", node + 1))
    }
}
