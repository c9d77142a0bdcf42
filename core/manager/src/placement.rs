//! Where replicas are to be: compares what people said with what is, and asks for what differs (`docs/protocol/deployment.md`;
//! `jgroup-arm.txt`, section 2: distribution policy, replication policy).
//!
//! - here: the machine, and which nodes can take a replica at all
//! - [`policy`]: which of those is the best, and how many are to be there now: small traits, for policies of one's own too
//! - `placement/plan.rs`: the next step of one deployment
//! - `placement/survey.rs`: what there is to say of it to people
//!
//! It is driven by levels, as [`Manager`](crate::Manager) is: it keeps nothing that must survive but since when replicas are missing, and whoever leads
//! next begins to count anew.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use wire::{Duration, GroupId, NodeId, RingId, Share, Time};

use crate::book::{Book, Command, Deployment, Distribution, Placed, Refusal};
use crate::bound::{Policy, Task};
use crate::bug::{Bug, Planted};
use crate::picture::{Picture, Shape};

mod plan;
pub mod policy;
mod survey;

pub use plan::{Step, Why};
use policy::Host;
pub use survey::{Seat, preview, survey};

/// What was asked for and has not come is asked for again after so long, or on another ring.
const AGAIN: Duration = Duration::from_millis(500);

/// A new program is to have the state after so long, or the upgrade is taken back.
pub const UPGRADE_WITHIN: Duration = Duration::from_secs(60);

/// The machine. Only that of the node that leads the manager's group is asked.
#[derive(Clone, Debug, Default)]
pub struct Placer {
    planted: Planted,
    /// Since when a deployment has fewer replicas than are wanted.
    missing: BTreeMap<String, Time>,
    /// Which placement was to be changed when, and on which ring.
    asked: BTreeMap<String, (RingId, u64, Time)>,
    /// Since when a node that is there has been changing over to a new program.
    changing: BTreeMap<String, (NodeId, Time)>,
    /// Hosts that were drained when it began to lead. Nothing depends on it but planted mistakes.
    #[cfg(feature = "planted-bugs")]
    before: Option<BTreeSet<NodeId>>,
}

/// All that a decision depends on.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) picture: &'a Picture,
    pub(crate) book: &'a Book,
    /// Ordered time, as far as this node's clock can tell.
    pub(crate) wall: Time,
    pub(crate) planted: Planted,
}

impl Placer {
    /// It has seen nothing yet.
    pub fn new(#[cfg(feature = "planted-bugs")] bug: Option<Bug>) -> Placer {
        let planted = Planted {
            #[cfg(feature = "planted-bugs")]
            bug,
        };
        Placer { planted, ..Placer::default() }
    }

    /// What follows, as far as it was not asked for already. `now` is a clock that does not jump, `wall` the one of ordered time, in nanoseconds
    /// since the Unix epoch.
    pub fn look(
        &mut self,
        now: Time,
        wall: Time,
        picture: &Picture,
        book: &Book,
    ) -> Vec<(Step, Command)> {
        #[cfg(feature = "planted-bugs")]
        let (forgetful, mistaken) = self.mistakes(book);
        #[cfg(feature = "planted-bugs")]
        let book = &forgetful;
        let site = Site { picture, book, wall, planted: self.planted };
        let known = |group: &String| book.of(group).is_some();
        self.missing.retain(|group, _| known(group));
        self.asked.retain(|group, _| known(group));
        self.changing.retain(|group, _| known(group));
        // Each node that is drained is emptied of one replica at a time.
        let mut busy = BTreeSet::new();
        #[cfg(feature = "planted-bugs")]
        let mut steps = mistaken;
        #[cfg(not(feature = "planted-bugs"))]
        let mut steps = Vec::new();
        for placed in book.placed() {
            let group = &placed.deployment.group;
            let missing = site.is_missing(placed);
            if !missing {
                self.missing.remove(group);
            }
            let since = missing.then(|| *self.missing.entry(group.clone()).or_insert(now));
            let missing_for = since.map_or(Duration::ZERO, |since| now.since(since));
            let late =
                self.is_late(now, &site, placed).map(|node| Step::of(placed, Why::Undo(node)));
            let step = late.or_else(|| site.step(placed, missing_for, &mut busy));
            let Some(step) = step else { continue };
            let asked = self.asked.get(group);
            let again = asked.is_none_or(|(ring, number, at)| {
                *ring != picture.ring || *number != placed.number || now >= *at + AGAIN
            });
            if again {
                self.asked.insert(group.clone(), (picture.ring, placed.number, now));
                let command = step.command(placed);
                steps.push((step, command));
            }
        }
        steps
    }

    /// The book as this leader sees it, and what it asks for by mistake.
    #[cfg(feature = "planted-bugs")]
    fn mistakes(&mut self, book: &Book) -> (Book, Vec<(Step, Command)>) {
        let (mut seen, mut steps) = (book.clone(), Vec::new());
        let drained = || book.nodes().map(|(node, _)| node).filter(|node| book.is_drained(*node));
        let begins = self.before.is_none();
        let before = self.before.get_or_insert_with(|| drained().collect());
        if self.planted.is(Bug::ForgetDrains) {
            for node in before.iter().copied().filter(|node| book.is_drained(*node)) {
                seen.apply(Time::ZERO, Command::Return { node }).expect("it is drained");
            }
        }
        if self.planted.is(Bug::TakeForDone) && begins {
            for placed in book.placed() {
                let changing = placed.upgrade.as_ref().and_then(|upgrade| upgrade.under_way);
                let Some(node) = changing else { continue };
                let (group, number) = (placed.deployment.group.clone(), placed.number);
                let done = Command::Upgraded { group, number, node };
                steps.push((Step::of(placed, Why::Upgrade(node)), done));
            }
        }
        (seen, steps)
    }

    /// The node at which a new program has had time enough.
    fn is_late(&mut self, now: Time, site: &Site<'_>, placed: &Placed) -> Option<NodeId> {
        let group = &placed.deployment.group;
        let upgrade = placed.upgrade.as_ref().filter(|upgrade| !upgrade.undoes);
        let node = upgrade.and_then(|it| it.under_way).filter(|node| site.is_present(*node));
        let Some(node) = node.filter(|_| !self.planted.is(Bug::UndoNothing)) else {
            self.changing.remove(group);
            return None;
        };
        let (known, since) = *self.changing.entry(group.clone()).or_insert((node, now));
        if known != node {
            self.changing.insert(group.clone(), (node, now));
            return None;
        }
        (now >= since + UPGRADE_WITHIN).then_some(node)
    }
}

impl<'a> Site<'a> {
    pub(crate) fn shape(&self, deployment: &Deployment) -> Option<&'a Shape> {
        let id = GroupId::of(&deployment.group);
        self.picture.groups.iter().find(|shape| shape.id == id)
    }

    /// The node is in the component.
    pub(crate) fn is_present(&self, node: NodeId) -> bool {
        self.picture.nodes.binary_search_by_key(&node, |(node, _)| *node).is_ok()
    }

    /// The replica there has the state.
    pub(crate) fn is_synced(&self, deployment: &Deployment, node: NodeId) -> bool {
        let here = |shape: &Shape| shape.primary == node || shape.backups.contains(&node);
        self.shape(deployment).is_some_and(here)
    }

    /// What policies see of a node.
    pub(crate) fn host(&self, node: NodeId, beside: &Deployment) -> Option<Host<'a>> {
        let introduced = self.book.node(node)?;
        let others = self
            .book
            .placed()
            .filter(|placed| placed.on.contains(&node) && placed.deployment.group != beside.group);
        Some(Host {
            node,
            labels: &introduced.labels,
            capacity: introduced.capacity,
            used: self.picture.usage(node).map(|usage| usage.used),
            replicas: others.count(),
        })
    }

    /// Why this node is not to have a replica of this deployment now, and is not to keep one; `None`: it may.
    pub(crate) fn objection(&self, placed: &Placed, node: NodeId) -> Option<String> {
        if !self.is_present(node) {
            return Some("it is not in the cluster now".into());
        }
        if self.book.is_drained(node) && !self.planted.is(Bug::PlaceOnDrained) {
            return Some("it is being drained".into());
        }
        let fails = |until: Time| self.wall < until;
        if placed.failing.get(&node).is_some_and(|failing| fails(failing.until)) {
            return Some("the program ended there again and again".into());
        }
        unfit(self.book, &placed.deployment, node)
    }

    /// Nodes that could have one more replica, the best first.
    pub(crate) fn candidates(&self, placed: &Placed, beside: &[NodeId]) -> Vec<NodeId> {
        let deployment = &placed.deployment;
        let policy = policy::distribution(deployment);
        let others: Vec<Host<'_>> =
            beside.iter().filter_map(|node| self.host(*node, deployment)).collect();
        let mut costs: Vec<_> = self
            .book
            .nodes()
            .map(|(node, _)| node)
            .filter(|node| {
                let there = placed.on.contains(node) || self.is_synced(deployment, *node);
                !there || self.planted.is(Bug::PlaceTwice)
            })
            .filter(|node| self.objection(placed, *node).is_none())
            .filter(|node| has_room(self.book, deployment, *node))
            .filter_map(|node| {
                let host = self.host(node, deployment)?;
                Some((policy.cost(&host, &others)?, node))
            })
            .collect();
        costs.sort_unstable();
        costs.into_iter().map(|(_, node)| node).collect()
    }
}

/// Why a node can never have a replica of this deployment, as it is labelled now.
fn unfit(book: &Book, deployment: &Deployment, node: NodeId) -> Option<String> {
    let Some(introduced) = book.node(node) else { return Some("it never told of itself".into()) };
    let lacks = deployment
        .labels
        .iter()
        .find(|(name, value)| introduced.labels.get(name.as_str()) != Some(value));
    if let Some((name, value)) = lacks {
        return Some(match introduced.labels.get(name.as_str()) {
            Some(other) => format!("its label {name} is {other}, not {value}"),
            None => format!("it has no label {name}"),
        });
    }
    match &deployment.distribution {
        Distribution::Pinned(nodes) if !nodes.contains(&node) => {
            Some("it is not one of those that it is pinned to".into())
        }
        Distribution::Spread(label) if !introduced.labels.contains_key(label) => {
            Some(format!("it has no label {label} to spread over"))
        }
        _ => None,
    }
}

/// Whether a node's host could serve this deployment in time beside those that are placed there.
fn has_room(book: &Book, deployment: &Deployment, node: NodeId) -> bool {
    let Some(need) = &deployment.need else { return true };
    let Some(introduced) = book.node(node) else { return false };
    let others = book.at(node).filter(|other| other.group != deployment.group);
    let mut tasks: Vec<Task> =
        others.filter_map(|other| other.need.as_ref()).map(|need| need.task()).collect();
    tasks.push(need.task());
    Policy::default().admits(&tasks, Share::ZERO, introduced.capacity)
}

/// Whether a deployment has places enough, on the nodes that ever told of themselves.
///
/// # Errors
/// Too few, and why.
pub(crate) fn fits(book: &Book, deployment: &Deployment) -> Result<(), Refusal> {
    let mut found = 0;
    let mut why = Vec::new();
    for (node, _) in book.nodes() {
        match unfit(book, deployment, node) {
            Some(reason) => why.push(format!("{node}: {reason}")),
            None if !has_room(book, deployment, node) => {
                why.push(format!(
                    "{node}: what is placed there leaves too little of its processors"
                ));
            }
            None => found += 1,
        }
    }
    let wanted = deployment.replicas as usize;
    if found >= wanted {
        return Ok(());
    }
    if why.is_empty() {
        why.push(match book.nodes().count() {
            0 => "no node has told of itself: set on = true in [manager], and an admin socket, at each".to_string(),
            nodes => format!("{nodes} nodes have told of themselves, and each takes one replica of a group"),
        });
    }
    Err(Refusal::NoRoom { found, wanted, why: why.join("; ") })
}
