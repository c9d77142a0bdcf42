//! One operation of people, step by step, and the death of the leader after one of its steps (world
//! `interruptions`).
//!
//! A *step* is a command that changes the cluster state, or a view of a deployed group: every
//! decision and every consequence. Until the leader dies, a run equals the undisturbed run of the
//! same seed. So the steps of the undisturbed run are the steps of all.

mod in_cluster;

use std::collections::BTreeSet;

use wire::{GroupId, NodeId, Time, ViewNumber};

use crate::draw::Draw;

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A node with replicas is drained.
    Drain,
    /// A program is replaced by one that serves.
    Upgrade,
    /// A program is replaced by one that ends as often as it is started.
    Broken,
    /// A primary is handed over.
    Move,
}

impl Operation {
    /// All of them, in the order of their numbers.
    pub const ALL: [Operation; 4] =
        [Operation::Drain, Operation::Upgrade, Operation::Broken, Operation::Move];
}

/// The happenings of a run of this world.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// The operation.
    pub operation: Operation,
    /// The leader dies right after this step; no leader dies if none is named.
    pub after: Option<u64>,
    /// All that is drawn.
    pub seed: u64,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Some deployed groups are not complete yet.
    Deploying,
    /// Since then it is under way.
    UnderWay(Time),
    /// It has ended.
    Over,
}

/// The state of a script's execution.
pub(super) struct Scripted {
    script: Script,
    stage: Stage,
    draw: Draw,
    steps: u64,
    /// Commands that the cluster state has had, and views that were seen.
    version: u64,
    views: BTreeSet<(GroupId, ViewNumber)>,
    /// The leader is to die at the end of this happening.
    due: bool,
    /// The node that is drained, or gets the primary.
    target: NodeId,
    asked: Option<Time>,
}

impl Scripted {
    pub fn new(script: Script) -> Scripted {
        Scripted {
            script,
            stage: Stage::Deploying,
            draw: Draw::new(script.seed),
            steps: 0,
            version: 0,
            views: BTreeSet::new(),
            due: false,
            target: NodeId(0),
            asked: None,
        }
    }

    fn step(&mut self) {
        if matches!(self.stage, Stage::UnderWay(_)) {
            self.steps += 1;
            self.due |= self.script.after == Some(self.steps);
        }
    }

    /// The cluster state at some node has been changed so often.
    pub fn cluster_state(&mut self, version: u64) {
        if version > self.version {
            self.version = version;
            self.step();
        }
    }

    /// A node installs a view of a deployed group.
    pub fn view(&mut self, group: GroupId, view: ViewNumber) {
        if self.views.insert((group, view)) {
            self.step();
        }
    }
}
