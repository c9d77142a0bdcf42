//! The cluster state: deployments that people requested, and decisions about them. The state of the
//! group `steadfast.manager` (`docs/protocol/deployment.md`; `jgroup-arm.txt`, section 2: the
//! replication manager's own state).
//!
//! A deterministic state machine: all replicas apply the same [`Command`]s in one order, at ordered
//! times, and have the same cluster state. It decides only which commands are valid.
//! [`placement`](crate::placement) chooses the hosts of replicas, and requests them by a command
//! too. Its content is bounded ([`wire::limits`]); its whole state is
//! [`encode`](ClusterState::encode)d for transfers.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use wire::limits::{MAX_COMMAND, MAX_DEPLOYMENTS, MAX_MEMBERS};
use wire::{NodeId, Share, Time};

mod command;
mod deployment;
mod placed;
mod refusal;
mod room;
mod upgrade;

pub use command::{Answer, Command};
pub use deployment::{
    Deployment, Disk, Distribution, Labels, Need, Program, Replication, Reservation, check_labels,
};
pub use placed::{BACK_OFF, Failing, LONGEST_BACK_OFF, Placed};
pub use refusal::Refusal;
pub use upgrade::{Fault, Undone, Upgrade};

/// The facts about a node that do not change from second to second, as it reported them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Introduced {
    /// Its labels.
    pub labels: Labels,
    /// The capacity of its host.
    pub capacity: Share,
}

/// The deployments and drains that people requested, and the decisions about them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterState {
    placed: BTreeMap<String, Placed>,
    nodes: BTreeMap<NodeId, Introduced>,
    drained: BTreeSet<NodeId>,
    /// The last number that was given out.
    number: u64,
    /// Commands that were applied: tells one cluster state from another.
    version: u64,
}

impl ClusterState {
    /// Applies a command at an ordered time. A refusal changes nothing.
    ///
    /// # Errors
    /// The reason why the command is impossible, and the remedy.
    pub fn apply(&mut self, now: Time, command: Command) -> Result<Answer, Refusal> {
        let answer = match command {
            Command::Deploy(deployment) => self.deploy(deployment)?,
            Command::Withdraw { group } => {
                self.placed.remove(&group).ok_or(Refusal::NotDeployed(group))?;
                Answer::Done
            }
            Command::Drain { node } => {
                if !self.nodes.contains_key(&node) {
                    return Err(Refusal::UnknownNode(node));
                }
                self.drained.insert(node);
                Answer::Done
            }
            Command::Return { node } => {
                if !self.drained.remove(&node) {
                    return Err(Refusal::NotDrained(node));
                }
                Answer::Done
            }
            Command::Introduce { node, labels, capacity } => {
                check_labels(&labels)?;
                if !self.nodes.contains_key(&node) && self.nodes.len() >= MAX_MEMBERS {
                    return Err(Refusal::TooManyNodes);
                }
                self.nodes.insert(node, Introduced { labels, capacity });
                Answer::Done
            }
            Command::Place { group, number, on, filled } => self.place(&group, number, on, filled),
            Command::Failing { group, number, node } => {
                self.change(&group, number, |placed| placed.fails(now, node))
            }
            Command::Advance { group, number, node } => {
                self.change(&group, number, |placed| placed.advance(node))
            }
            Command::Upgraded { group, number, node } => {
                self.change(&group, number, |placed| placed.upgraded(node))
            }
            Command::Undo { group, number, node } => {
                self.change(&group, number, |placed| placed.undo(node, Fault::Late))
            }
            Command::Refuse { group, number, node, reason } => {
                let fault = Fault::refused(reason);
                self.change(&group, number, |placed| placed.undo(node, fault))
            }
            Command::Forget { node } => {
                let placed = self.placed.values().any(|placed| placed.on.contains(&node));
                if placed || self.nodes.remove(&node).is_none() {
                    Answer::Void
                } else {
                    self.drained.remove(&node);
                    Answer::Done
                }
            }
        };
        if answer != Answer::Void {
            self.version += 1;
        }
        self.check_invariants();
        Ok(answer)
    }

    fn deploy(&mut self, deployment: Deployment) -> Result<Answer, Refusal> {
        deployment.check()?;
        if deployment.encoded_len() > MAX_COMMAND {
            return Err(Refusal::TooLarge(deployment.encoded_len()));
        }
        if let Some(old) = self.placed.get(&deployment.group)
            && old.deployment.options != deployment.options
        {
            return Err(Refusal::RunsAnother(deployment.group));
        }
        if !self.placed.contains_key(&deployment.group) && self.placed.len() >= MAX_DEPLOYMENTS {
            return Err(Refusal::TooMany);
        }
        self.fits(&deployment)?;
        let old = self.placed.get(&deployment.group);
        let upgrade = old.map_or(Ok(None), |old| old.upgrade_to(&deployment))?;
        let on = old.map(|old| old.on.clone()).unwrap_or_default();
        self.number += 1;
        let (number, group) = (self.number, deployment.group.clone());
        // Said anew: whatever a person has mended since is tried again.
        let (failing, undone) = (BTreeMap::new(), None);
        let mut placed = Placed { deployment, number, on, filled: false, failing, upgrade, undone };
        placed.settle_upgrade();
        self.placed.insert(group, placed);
        Ok(Answer::Done)
    }

    /// Where replicas are to be. Void if it was decided for another placement than there is now, or
    /// names a node twice.
    fn place(&mut self, group: &str, number: u64, mut on: Vec<NodeId>, filled: bool) -> Answer {
        on.sort_unstable();
        let known = on.iter().all(|node| self.nodes.contains_key(node));
        let once = on.windows(2).all(|pair| pair[0] != pair[1]);
        if !known || !once {
            return Answer::Void;
        }
        self.change(group, number, |placed| {
            placed.place_on(on);
            placed.filled = filled;
            placed.settle_upgrade();
            Answer::Done
        })
    }

    /// Changes what follows from a deployment, if that is what it was decided for.
    fn change(
        &mut self,
        group: &str,
        number: u64,
        change: impl FnOnce(&mut Placed) -> Answer,
    ) -> Answer {
        let placed = self.placed.get_mut(group).filter(|placed| placed.number == number);
        let Some(placed) = placed else { return Answer::Void };
        let answer = change(placed);
        if answer == Answer::Done {
            self.number += 1;
            placed.number = self.number;
        }
        answer
    }

    /// All deployments, in order of their groups' names.
    pub fn placed(&self) -> impl Iterator<Item = &Placed> {
        self.placed.values()
    }

    /// The deployment of this group.
    pub fn of(&self, group: &str) -> Option<&Placed> {
        self.placed.get(group)
    }

    /// The deployments that are to run at this node.
    pub fn at(&self, node: NodeId) -> impl Iterator<Item = &Deployment> {
        let here = self.placed.values().filter(move |placed| placed.on.contains(&node));
        here.map(|placed| &placed.deployment)
    }

    /// The facts that nodes have reported about themselves.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Introduced)> {
        self.nodes.iter().map(|(node, introduced)| (*node, introduced))
    }

    /// The facts that this node has reported about itself.
    pub fn node(&self, node: NodeId) -> Option<&Introduced> {
        self.nodes.get(&node)
    }

    /// Whether the node is to be emptied.
    pub fn is_drained(&self, node: NodeId) -> bool {
        self.drained.contains(&node)
    }

    /// Grows with every command that changed something.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The whole state.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a cluster state is plain data")
    }

    /// Decodes the bytes of [`encode`](ClusterState::encode).
    ///
    /// # Errors
    /// The bytes are no cluster state.
    pub fn decode(bytes: &[u8]) -> Result<ClusterState, postcard::Error> {
        let cluster_state: ClusterState = postcard::from_bytes(bytes)?;
        if cluster_state.is_well() {
            Ok(cluster_state)
        } else {
            Err(postcard::Error::SerdeDeCustom)
        }
    }

    fn is_well(&self) -> bool {
        let sorted = |placed: &Placed| placed.on.windows(2).all(|pair| pair[0] < pair[1]);
        let known = |placed: &Placed| placed.on.iter().all(|node| self.nodes.contains_key(node));
        let named = |(group, placed): (&String, &Placed)| *group == placed.deployment.group;
        self.placed.len() <= MAX_DEPLOYMENTS
            && self.nodes.len() <= MAX_MEMBERS
            && self.drained.iter().all(|node| self.nodes.contains_key(node))
            && self.placed.values().all(|placed| sorted(placed) && known(placed))
            && self.placed.values().all(|placed| placed.number <= self.number)
            && self.placed.iter().all(named)
            && self.placed.values().all(Placed::is_upgrade_well)
    }

    /// # Panics
    /// If a rule of the cluster state is broken: a node twice in a placement, or one that never
    /// told of itself.
    pub fn check_invariants(&self) {
        assert!(self.is_well(), "the cluster state is not well: {self:?}");
    }
}
