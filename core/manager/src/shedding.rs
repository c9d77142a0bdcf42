//! Calls are refused where no move helps, the least critical first (`docs/protocol/manager.md`,
//! "Shedding"; `flare.txt`, section 3.5, ends where nobody has room).
//!
//! Each host has a level: calls below it are refused there. It goes up by one class of calls at a
//! time while the host has too much to do, and down by one when it has had room for long enough;
//! the class that is most critical there is never refused.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;

use wire::limits::MAX_SHEDDING_ROOM;
use wire::ordered::{Classes, Shedding};
use wire::{Duration, NodeId, Share, Time};

use crate::bug::{Bug, Planted};
use crate::cluster::Cluster;
use crate::picture::Picture;

/// A refusal lasts for this many times the span in which a host settles, unless it is renewed.
const TERM: u32 = 3;

/// A host must have had room for so many times that span before it refuses less: what it refuses
/// now comes back then.
const BACKOFF: u32 = 2;

/// If that was too early, for twice as long the next time, up to so many times.
const MOST_BACKOFF: u32 = 8;

/// Room is so many percent of what a host can do, below its bound.
const ROOM: u64 = 5;

/// Where clients are sent that many must be free.
const MUCH_ROOM: u64 = 10;

/// All hosts of which calls are to be refused, or were.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    /// In which a host that does something else shows it.
    settle: Duration,
    hosts: BTreeMap<NodeId, Step>,
    planted: Planted,
}

/// How far one host has gone.
#[derive(Clone, Debug)]
struct Step {
    level: u8,
    /// Since when it has had too much to do, that no move solves.
    hard: Option<Time>,
    /// Since when it has had room.
    calm: Option<Time>,
    /// For how long it must have room, in spans.
    backoff: u32,
    /// When it began to refuse less.
    fell: Option<Time>,
    /// The level requested last, and when.
    asked: Option<(u8, Time)>,
}

impl Levels {
    pub(crate) fn new(settle: Duration, planted: Planted) -> Levels {
        Levels { settle, hosts: BTreeMap::new(), planted }
    }

    /// Somebody else decides.
    pub(crate) fn forget(&mut self) {
        self.hosts.clear();
    }

    /// Hosts that refuse something: no primary goes there.
    pub(crate) fn closed(&self, now: Time, picture: &Picture) -> BTreeSet<NodeId> {
        let own = self.hosts.iter().filter(|(_, step)| step.level > 0).map(|(node, _)| *node);
        let told = picture.sheds.keys().copied();
        own.chain(told.filter(|node| picture.level(now, *node) > 0)).collect()
    }

    /// The changes of shedding to request now. `unsolved`: hosts whose overload no move solves.
    /// `unsettled`: hosts that do not show yet what was done.
    pub(crate) fn look(
        &mut self,
        now: Time,
        cluster: &Cluster,
        picture: &Picture,
        unsolved: &BTreeSet<NodeId>,
        unsettled: impl Fn(NodeId) -> bool,
    ) -> Vec<Shedding> {
        let told = picture.sheds.keys().copied();
        let nodes: BTreeSet<NodeId> =
            unsolved.iter().chain(self.hosts.keys()).copied().chain(told).collect();
        let mut orders = Vec::new();
        for node in nodes {
            let Some(usage) = picture.usage(node) else {
                // It is gone, or nothing is known of it: what it was told ends by itself.
                self.hosts.remove(&node);
                continue;
            };
            let step = self.hosts.entry(node).or_insert_with(|| Step {
                level: picture.level(now, node),
                hard: None,
                calm: None,
                backoff: BACKOFF,
                fell: None,
                asked: None,
            });
            let is_hard = unsolved.contains(&node);
            if !is_hard {
                // The request may be lost, or over: it is not needed any more.
                step.level = step.level.min(picture.level(now, node));
            }
            let has_room = has_room(cluster, node, ROOM);
            if !unsettled(node) {
                step.go(now, self.settle, usage.classes, (is_hard, has_room), self.planted);
            }
            let has_asked = step.asks(now, self.settle, picture, node);
            let (level, is_over) = (step.level, step.is_over(now, self.settle));
            if has_asked {
                let term_ms = u32::try_from((self.settle * TERM).as_millis()).unwrap_or(u32::MAX);
                let room =
                    if level > 0 { self.room(now, cluster, picture, node) } else { Vec::new() };
                orders.push(Shedding { node, level, term_ms, room });
            } else if is_over && picture.level(now, node) == 0 {
                self.hosts.remove(&node);
            }
        }
        orders
    }

    /// Hosts with much room that have a replica of a group of which this one has one, too: the
    /// least used first.
    fn room(&self, now: Time, cluster: &Cluster, picture: &Picture, node: NodeId) -> Vec<NodeId> {
        let closed = self.closed(now, picture);
        let groups = cluster.primaries(node).chain(cluster.backups(node));
        let hosts = groups.filter_map(|id| cluster.group(id));
        let hosts = hosts.flat_map(|group| group.backups.iter().copied().chain([group.primary]));
        let is_open =
            |it: &NodeId| *it != node && !closed.contains(it) && has_room(cluster, *it, MUCH_ROOM);
        let hosts: BTreeSet<NodeId> = hosts.filter(is_open).collect();
        let mut hosts: Vec<NodeId> = hosts.into_iter().collect();
        let left = |node: &NodeId| {
            let capacity = cluster.host(*node).map_or(Share::ZERO, |host| host.capacity);
            capacity.saturating_sub(cluster.used(*node))
        };
        hosts.sort_by_key(|node| (Reverse(left(node)), *node));
        hosts.truncate(MAX_SHEDDING_ROOM);
        hosts
    }
}

fn has_room(cluster: &Cluster, node: NodeId, percent: u64) -> bool {
    cluster.host(node).is_some_and(|host| {
        let more = Share(host.capacity.0 / 100 * percent);
        cluster.has_room(node, more)
    })
}

impl Step {
    /// The host has been looked at: it may refuse more now, or less.
    fn go(
        &mut self,
        now: Time,
        settle: Duration,
        classes: Classes,
        (is_hard, has_room): (bool, bool),
        planted: Planted,
    ) {
        self.hard = self.hard.filter(|_| is_hard).or(is_hard.then_some(now));
        self.calm = self.calm.filter(|_| has_room).or(has_room.then_some(now));
        // Calls of this priority come no more: the level would refuse all that are left.
        let most = classes.iter().last().unwrap_or(0);
        if !planted.is(Bug::ShedCriticalFirst) {
            self.level = self.level.min(most);
        }
        if self.hard.is_some_and(|since| now >= since + settle) {
            let mut taken = classes.iter().filter(|class| *class >= self.level);
            let next = taken.by_ref().nth(1);
            let next = next.or(planted.is(Bug::ShedCriticalFirst).then_some(u8::MAX));
            if let Some(next) = next.filter(|next| *next > self.level) {
                let regrets = self.fell.is_some_and(|at| now < at + settle * TERM);
                let backoff = if regrets { self.backoff * 2 } else { self.backoff };
                self.backoff = backoff.min(MOST_BACKOFF);
                self.level = next;
            }
            self.hard = Some(now);
        } else if self.level > 0
            && self.calm.is_some_and(|since| now >= since + settle * self.backoff)
            && !planted.is(Bug::ShedWithoutEnd)
        {
            let mut below = classes.iter().filter(|class| *class < self.level);
            // Below the least critical class there is nothing to refuse.
            let first = below.next();
            self.level = below.last().filter(|_| first.is_some()).unwrap_or(0);
            (self.fell, self.calm) = (Some(now), Some(now));
        }
    }

    /// The host does not know, or will soon forget; and nothing is on its way.
    fn asks(&mut self, now: Time, settle: Duration, picture: &Picture, node: NodeId) -> bool {
        let (known, until) = (picture.level(now, node), picture.sheds.get(&node));
        let until = until.map_or(now, |(_, until)| *until);
        let lasts = self.level == 0 || now + settle * TERM / 2 < until;
        if known == self.level && lasts {
            return false;
        }
        let is_asked =
            self.asked.is_some_and(|(level, at)| level == self.level && now < at + settle / 2);
        if !is_asked {
            self.asked = Some((self.level, now));
        }
        !is_asked
    }

    /// It refuses nothing, and that it did is long ago.
    fn is_over(&self, now: Time, settle: Duration) -> bool {
        let rests = self.fell.is_some_and(|at| now < at + settle * MOST_BACKOFF);
        self.level == 0 && self.hard.is_none() && !rests
    }
}
