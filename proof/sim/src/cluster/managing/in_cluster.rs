//! The managers' view of a cluster, and their actions in it.

use manager::{Picture, Proposal};
use wire::{Duration, GroupId, Member};

use super::{BOUND, KNOWN, REPORTS, SAMPLE, other};
use crate::check::Verdict;
use crate::check::liveness;
use crate::check::ranks::twin;
use crate::check::shedding::{self, Sheds};
use crate::cluster::course::Epilogue;
use crate::cluster::{Cluster, Extra};
use crate::fabric::node_id;

impl Cluster {
    pub(in crate::cluster) fn plan_samples(&mut self) {
        if let Some(management) = &mut self.management {
            for node in 0..self.options.nodes {
                let wait = management.draw.span(Duration::ZERO, SAMPLE);
                self.fabric.later(wait, Extra::Sample(node));
            }
        }
    }

    /// A node looks at its host and tells what it sees, if that is due; its manager looks at the
    /// cluster.
    pub(in crate::cluster) fn sample(&mut self, node: usize) -> Verdict {
        let Some(management) = &mut self.management else { return Ok(()) };
        // Nodes without anything to report let the ring rest.
        if matches!(self.course.epilogue, Epilogue::Quiet(_) | Epilogue::Over) {
            return Ok(());
        }
        self.fabric.later(SAMPLE, Extra::Sample(node));
        if !self.course.is_calm() && management.draw.one_in(management.plan.restless) {
            let other = other(&mut management.draw);
            management.plan.others[node] = other.max(management.plan.least);
        }
        if !self.fabric.hosts[node].runs() {
            return Ok(());
        }
        let (at, now, me) = (self.fabric.now(), self.fabric.local(node), self.fabric.member(node));
        let stack = self.fabric.hosts[node].process.as_mut().expect("it runs");
        let groups: Vec<GroupId> =
            self.options.groups.iter().map(|group| GroupId::of(&group.name)).collect();
        let usage = management.usage(node, &stack.picture(), &groups);
        let told = &mut management.nodes[node].told;
        let above = usage.above;
        let due = told.is_none_or(|(told, was_above)| {
            now >= told + management.plan.period || above != was_above
        });
        if due && stack.tell_usage(now, usage) {
            *told = Some((now, above));
        }
        let picture = stack.picture();
        let proposals = management.nodes[node].manager.look(now, picture.clone());
        management.sheds.proposed((at, now), BOUND, &picture, &proposals)?;
        management.ranks.proposed(at, me, management.config.settle / 2, &proposals)?;
        for proposal in proposals {
            self.fabric.trace.say(at, || format!("{me} proposals {proposal:?}"));
            match proposal {
                Proposal::Shed(shedding) => {
                    stack.shed(now, shedding);
                }
                Proposal::Rank { group, view, order } => {
                    stack.rank(now, group, view, order);
                }
                Proposal::Move { group, to, .. } => {
                    (management.still.0, management.steady) = (at, None);
                    // One that somebody asked for is under way: the next look shows what comes of
                    // it.
                    let begun = stack.move_primary(now, group, to);
                    self.fabric.trace.say(at, || format!("{begun:?}"));
                }
            }
        }
        self.drain(node)
    }

    /// A node refuses a call of this priority.
    pub(in crate::cluster) fn refused(&mut self, by: Member, priority: u8) -> Verdict {
        self.summary.refused += 1;
        let (now, sheds) = (self.fabric.now(), self.management.as_ref().map(|it| &it.sheds));
        sheds.map_or_else(
            || Sheds::default().refused(now, by, priority),
            |sheds| sheds.refused(now, by, priority),
        )
    }

    /// A host that has room and refuses calls all the same.
    fn sheds_with_room(&self) -> Option<String> {
        let mut running = self.fabric.hosts.iter().filter_map(|host| host.process.as_ref());
        running.find_map(|stack| {
            let picture = stack.picture();
            let roomy =
                |node| picture.usage(node).is_some_and(|usage| usage.used < shedding::ROOMY);
            let (node, level, _) = stack.sheds().find(|(node, ..)| roomy(*node))?;
            Some(format!("{node} has room, and refuses calls below {level}"))
        })
    }

    /// The faults are over.
    pub(in crate::cluster) fn calm_hosts(&mut self) {
        let now = self.fabric.now();
        self.management.iter_mut().for_each(|management| management.still.0 = now);
    }

    /// A node says that a group's backups have another order.
    pub(in crate::cluster) fn ranked(&mut self, by: Member, group: GroupId) -> Verdict {
        self.summary.ranks += 1;
        match &mut self.management {
            Some(management) if management.steady.is_some() && management.has_room() => {
                management.ranks.ranked(by, group)
            }
            _ => Ok(()),
        }
    }

    /// Sees since when all is as it should be, once rings and groups are whole; at the end the twin
    /// looks as well.
    pub(in crate::cluster) fn mind_ranks(&mut self, whole: bool) -> Verdict {
        let settled = self.unranked().is_none();
        let pictures = self.pictures();
        let now = self.fabric.now();
        let (Some(management), Some(picture)) = (&mut self.management, pictures.first()) else {
            return Ok(());
        };
        let (since, ring) = management.still;
        if ring != picture.ring || !whole {
            management.still = (now, picture.ring);
            management.steady = None;
        } else if settled
            && management.steady.is_none()
            && now >= since + management.plan.period * KNOWN
        {
            management.ranks.steady();
            management.steady = Some(now);
        }
        match self.course.epilogue {
            Epilogue::Calling if settled => twin(picture),
            _ => Ok(()),
        }
    }

    /// Returns an effect of the hosts' reports that is still to come.
    pub(in crate::cluster) fn missing_rank(&self) -> Option<String> {
        let management = self.management.as_ref()?;
        if matches!(self.course.epilogue, Epilogue::Quiet(_)) {
            return None;
        }
        let since = match (self.unranked().or_else(|| self.sheds_with_room()), management.steady) {
            (Some(missing), _) => return Some(missing),
            (None, Some(since)) => since,
            (None, None) => return Some("hosts have yet to tell what is so now".into()),
        };
        // If the cluster became whole late, it is watched for a shorter time.
        let last = self.course.calm().unwrap_or(since) + liveness::WITHIN / 2;
        let awaited = (since + management.plan.period * REPORTS).min(last);
        (self.fabric.now() < awaited).then(|| "nothing is to be ranked so far".into())
    }

    fn pictures(&self) -> Vec<Picture> {
        let running = self.fabric.hosts.iter().filter_map(|host| host.process.as_ref());
        running.map(|stack| stack.picture()).collect()
    }

    /// Returns reports of hosts that a node lacks, or backups that are not yet ranked by them.
    fn unranked(&self) -> Option<String> {
        let management = self.management.as_ref()?;
        let pictures = self.pictures();
        let all = |picture: &Picture| {
            picture.nodes.len() == self.options.nodes
                && picture.nodes.iter().all(|(_, usage)| usage.is_some())
        };
        if let Some(place) = pictures.iter().position(|picture| !all(picture)) {
            return Some(format!("{} has not heard from all hosts", node_id(place)));
        }
        let place = pictures.iter().position(|picture| picture.leads)?;
        let ranking = management.nodes[place].manager.ranking();
        let unlike = pictures[place].groups.iter().find(|shape| {
            let wanted = ranking.targets(shape.id);
            shape.backups.len() > 1 && !wanted.iter().take(2).eq(shape.backups.iter().take(2))
        });
        unlike.map(|shape| {
            format!("{} should be tried {:?}: {shape:?}", shape.id, ranking.targets(shape.id))
        })
    }
}
