//! The draws for calls that kill, and for programs that die.

use engine::Quorum;
use wire::limits::MAX_WAITING;
use wire::ordered::{GroupOptions, Style};

use super::{GroupPlan, Options, World};
use crate::cluster::{DiskPlan, PoisonPlan};
use crate::draw::Draw;
use crate::faults::FaultKind;

/// Styles whose calls are ordered before they are executed: such a call kills two services at most.
const GUARDED: [Style; 4] = [Style::SemiActive, Style::Active, Style::Voting, Style::ColdPassive];

impl GroupPlan {
    /// In each of its styles a call is ordered before it is executed.
    fn is_guarded(&self) -> bool {
        let mut styles = self.styles.iter().chain([&self.options.style]);
        styles.all(|style| GUARDED.contains(style))
    }
}

impl Options {
    /// Some calls kill every service that executes them. One world in eight has such calls; in the
    /// world of poison each has.
    pub(super) fn with_poison(mut self, seed: u64) -> Options {
        let draw = &mut Draw::new(seed ^ STREAM);
        let wanted = Draw::new(seed ^ SHARE).one_in(8) || self.world == World::Poison;
        if self.world == World::Poison {
            (self.quorum, self.smooth) = (Quorum::Majority, false);
            self = self.on_some_disks(draw);
        }
        let possible = self.world.is_cluster() && !self.smooth && self.trial.is_none();
        if !wanted || !possible || self.quorum != Quorum::Majority {
            return self;
        }
        // After these nobody can say whether a replica that goes is the last.
        self.faults.kinds.retain(|(kind, _)| {
            !matches!(kind, FaultKind::Orphan | FaultKind::Flap | FaultKind::Ambush)
        });
        self.groups.iter_mut().for_each(|group| group.lies = None);
        // Where there are disks, the promise demands that groups with a state are on them.
        let durability = self.durability();
        if !self.groups.iter().any(GroupPlan::is_guarded) {
            let first = &mut self.groups[0];
            first.options = GroupOptions { style: Style::SemiActive, durability, ..first.options };
            first.styles.clear();
        }
        for group in &mut self.groups {
            // A node's journal of a cold passive group is of no use in another style, and vice
            // versa (docs, "Known gaps").
            let changes = group.is_cold() && !group.styles.is_empty();
            group.program = !draw.one_in(4) && !changes;
            group.poisonous = group.is_guarded();
        }
        let disks = self.disks.is_some();
        Options { waiting: MAX_WAITING, poison: Some(PoisonPlan::draw(draw, disks)), ..self }
    }

    /// A third of the worlds have disks.
    pub(super) fn on_some_disks(mut self, draw: &mut Draw) -> Options {
        let plan = DiskPlan::draw(draw);
        if !draw.one_in(3) {
            return self;
        }
        for group in &mut self.groups {
            group.settle();
            group.styles.clear();
        }
        Options { restyles: None, ..self }.on_disks(plan)
    }
}

/// Whether a world has such calls, and what it draws then.
const SHARE: u64 = 0x0090_1507;
const STREAM: u64 = 0x0090_150e;
