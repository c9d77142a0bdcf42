//! How far a run is: faults, then calm, then what is left to be shown.

use wire::{Member, Time};

use super::script::Scripted;

use crate::check::alone::Alone;
use crate::check::bounded::Silence;
use crate::check::liveness;

/// The checks that remain once all has healed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Epilogue {
    /// Rings, groups and old calls.
    Healing,
    /// New calls.
    Calling,
    /// Silence.
    Quiet(Silence),
    /// Nothing.
    Over,
}

/// How far a run is.
pub(super) struct Course {
    calm: Option<Time>,
    /// Since when each look has found something that is not right.
    amiss: Option<Time>,
    /// No fault strikes before.
    undisturbed: Time,
    /// When a node said last that there is a quorum.
    formed: Time,
    /// In a seed of smooth moves: since when all groups are whole.
    pub(super) whole: Option<Time>,
    /// The member that measures the ring now.
    pub(super) measures: Option<Member>,
    pub(super) epilogue: Epilogue,
    /// The reads that a node was asked for at the end, when it was cut off.
    pub(super) alone: Alone,
    /// The one operation of a world of interruptions.
    pub(super) script: Option<Scripted>,
}

impl Course {
    pub(super) fn new(script: Option<Scripted>) -> Course {
        Course {
            calm: None,
            amiss: None,
            undisturbed: Time::ZERO,
            formed: Time::ZERO,
            whole: None,
            measures: None,
            epilogue: Epilogue::Healing,
            alone: Alone::default(),
            script,
        }
    }

    /// The faults are over.
    pub(super) fn is_calm(&self) -> bool {
        self.calm.is_some()
    }

    /// Since when they are.
    pub(super) fn calm(&self) -> Option<Time> {
        self.calm
    }

    pub(super) fn calm_down(&mut self, now: Time) {
        self.calm = Some(now);
    }

    /// No fault is to strike before this time.
    pub(super) fn spare_until(&mut self, time: Time) {
        self.undisturbed = self.undisturbed.max(time);
    }

    pub(super) fn is_spared(&self, now: Time) -> bool {
        now < self.undisturbed
    }

    /// A node says that there is a quorum.
    pub(super) fn form(&mut self, now: Time) {
        self.formed = now;
    }

    pub(super) fn formed(&self) -> Time {
        self.formed
    }

    /// A look has found all right, or not. True if that is so for longer than it may be.
    pub(super) fn look(&mut self, now: Time, is_amiss: bool) -> bool {
        self.amiss = is_amiss.then(|| self.amiss.unwrap_or(now));
        let healed = now.since(self.calm.expect("looks come after the calm"));
        liveness::is_over(healed, now.since(self.amiss.unwrap_or(now)))
    }
}
