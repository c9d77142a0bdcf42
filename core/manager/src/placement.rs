//! Where replicas are to be: compares what people said with what is, and asks for what differs
//! (`docs/protocol/deployment.md`; `jgroup-arm.txt`, section 2: distribution policy, replication
//! policy).
//!
//! - here: the machine
//! - `placement/site.rs`: which nodes can take a replica at all
//! - [`policy`]: which of those is the best, and how many are to be there now: small traits, for
//!   policies of one's own too
//! - `placement/plan.rs`: the next step of one deployment
//! - `placement/survey.rs`: what there is to say of it to people
//!
//! It is driven by levels, as [`Manager`](crate::Manager) is: it keeps nothing that must survive.
//! It only measures how long replicas have been missing, and the next leader measures anew.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use wire::{Duration, NodeId, RingId, Time};

use crate::bug::{Bug, Planted};
use crate::cluster_state::{ClusterState, Command, Placed};
use crate::picture::Picture;

mod plan;
pub mod policy;
mod site;
mod survey;

pub use plan::{Step, Why};
use site::Site;
pub use survey::{Seat, preview, survey};

/// A request without effect is repeated after this time, or on another ring.
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

impl Placer {
    /// It has seen nothing yet.
    pub fn new(planted: Planted) -> Placer {
        Placer { planted, ..Placer::default() }
    }

    /// Returns the steps to request, except those already requested. `now` is a clock that does not
    /// jump; `wall` is ordered time, in nanoseconds since the Unix epoch.
    pub fn look(
        &mut self,
        now: Time,
        wall: Time,
        picture: &Picture,
        cluster_state: &ClusterState,
    ) -> Vec<(Step, Command)> {
        #[cfg(feature = "planted-bugs")]
        let (forgetful, mistaken) = self.mistakes(cluster_state);
        #[cfg(feature = "planted-bugs")]
        let cluster_state = &forgetful;
        let site = Site { picture, cluster_state, wall, planted: self.planted };
        let known = |group: &String| cluster_state.of(group).is_some();
        self.missing.retain(|group, _| known(group));
        self.asked.retain(|group, _| known(group));
        self.changing.retain(|group, _| known(group));
        // Each node that is drained is emptied of one replica at a time.
        let mut busy = BTreeSet::new();
        #[cfg(feature = "planted-bugs")]
        let mut steps = mistaken;
        #[cfg(not(feature = "planted-bugs"))]
        let mut steps = Vec::new();
        for placed in cluster_state.placed() {
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

    /// The cluster state as this leader sees it, and what it asks for by mistake.
    #[cfg(feature = "planted-bugs")]
    fn mistakes(&mut self, cluster_state: &ClusterState) -> (ClusterState, Vec<(Step, Command)>) {
        let (mut seen, mut steps) = (cluster_state.clone(), Vec::new());
        let drained = || {
            cluster_state
                .nodes()
                .map(|(node, _)| node)
                .filter(|node| cluster_state.is_drained(*node))
        };
        let begins = self.before.is_none();
        let before = self.before.get_or_insert_with(|| drained().collect());
        if self.planted.is(Bug::ForgetDrains) {
            for node in before.iter().copied().filter(|node| cluster_state.is_drained(*node)) {
                seen.apply(Time::ZERO, Command::Return { node }).expect("it is drained");
            }
        }
        if self.planted.is(Bug::TakeForDone) && begins {
            for placed in cluster_state.placed() {
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
