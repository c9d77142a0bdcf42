//! A rank in the book.

use alloc::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use wire::{Member, NodeId, Time};

use crate::bug::Planted;
use crate::catalogue::Catalogue;
use crate::moving::{Move, Step};
use crate::progress::{End, Progress, Recovery, Why};
use crate::{MAX_FAILED, MAX_KILLED, MAX_RECOVERIES, Spec, Void};

/// A rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// How it stands.
    pub state: RankState,
    /// The number of its last start; 0: it never began.
    pub start: u64,
    /// Where that runs, or ran.
    pub ran: Option<NodeId>,
    /// How often this start was asked for a checkpoint.
    pub saves: u64,
    /// Its images.
    pub images: Catalogue,
    /// How far it is.
    pub progress: Progress,
    /// The nodes that are to have its images.
    pub keepers: BTreeSet<NodeId>,
    /// Its node is being emptied: it is to go on elsewhere.
    pub moves: Option<Move>,
    /// It has done its work, and waits for the others.
    pub done: bool,
    /// Earlier starts count no more, with all that they have sent: all ranks have gone back.
    pub since: u64,
    /// Its last recoveries, the oldest first.
    pub recoveries: VecDeque<Recovery>,
    /// How far it was at most, by its images.
    reached: u64,
    /// Starts that ended since it was further than ever: by signals, and by themselves.
    killed: u32,
    failed: u32,
    /// Nodes at which it could not begin: tried again only after all others.
    unfit: BTreeSet<NodeId>,
}

/// How a rank stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankState {
    /// It is to be started.
    #[default]
    Waiting,
    /// Its present start runs at this node, or is about to.
    At(Member),
    /// It has finished.
    Finished,
}

impl Rank {
    /// One that never began.
    pub(crate) fn new(spec: &Spec) -> Rank {
        Rank { images: Catalogue::new(spec), ..Rank::default() }
    }

    /// Starts that have ended since it was further than ever.
    pub fn fruitless(&self) -> u32 {
        self.killed + self.failed
    }

    /// It could not begin at this node.
    pub fn is_unfit(&self, node: NodeId) -> bool {
        self.unfit.contains(&node)
    }

    /// The program or its hosts are others by now.
    pub(crate) fn may_begin_anywhere(&mut self) {
        self.unfit.clear();
    }

    /// The node is another one by now.
    pub(crate) fn may_begin_at(&mut self, node: NodeId) {
        self.unfit.remove(&node);
    }

    /// Its start is over.
    pub(crate) fn over(&mut self, now: Time, why: Why, seen: Time) {
        (self.state, self.moves, self.done) = (RankState::Waiting, None, false);
        if self.recoveries.len() == MAX_RECOVERIES {
            self.recoveries.pop_front();
        }
        let (start, told) = (self.start, now);
        let recovery =
            Recovery { start, why, seen, told, ordered: None, at: None, moments: None, step: 0 };
        self.recoveries.push_back(recovery);
    }

    pub(crate) fn begin(&mut self, now: Time, start: u64, node: Member, planted: Planted) {
        (self.state, self.start, self.saves) = (RankState::At(node), start, 0);
        (self.ran, self.moves) = (Some(node.node), None);
        self.images.begin(planted);
        let step = self.images.from().map_or(0, |image| image.step);
        if let Some(last) = self.recoveries.back_mut().filter(|last| last.start + 1 == start) {
            (last.ordered, last.at, last.step) = (Some(now), Some(node), step);
        }
    }

    /// It is to leave its node, or to stay.
    pub(crate) fn set_move(&mut self, start: u64, to: Option<NodeId>) -> Result<(), Void> {
        if start != self.start || !matches!(self.state, RankState::At(_)) {
            return Err(Void::Stale);
        }
        if self.moves.map(|moves| moves.to) != to {
            self.moves = to.map(|to| Move::new(to, &self.images));
            self.saves += u64::from(to.is_some());
            self.images.await_next(to.is_some());
        }
        Ok(())
    }

    /// A copy of an image has come to a node.
    pub(crate) fn arrived(&mut self, now: Time, planted: Planted) {
        let step = self.moves.as_mut().and_then(|moves| moves.arrived(&self.images, planted));
        match step {
            Some(Step::Save) => {
                self.saves += 1;
                self.images.await_next(true);
            }
            Some(Step::Wait) => self.images.await_next(true),
            Some(Step::Leave) => self.over(now, Why::Moved, now),
            None => {}
        }
    }

    /// An image has it so far.
    pub(crate) fn came_to(&mut self, step: u64) {
        if step > self.reached {
            (self.reached, self.killed, self.failed) = (step, 0, 0);
        }
    }

    /// Its last start has ended so. Whether it is of no use to try again. `suiting`: hosts that have
    /// what it needs.
    pub(crate) fn fails(&mut self, end: &End, suiting: &BTreeSet<NodeId>) -> bool {
        match end {
            // The program may be at others: once around counts as one failure. Some of them may not
            // be there.
            End::NotStarted(_) => {
                let again = self.ran.is_some_and(|node| !self.unfit.insert(node));
                if again || suiting.is_subset(&self.unfit) {
                    self.unfit.clear();
                    self.failed += 1;
                }
            }
            End::Failed(_) | End::Diverged(_) => self.failed += 1,
            End::Killed(_) | End::Stalled => self.killed += 1,
            End::Finished | End::Damaged => {}
        }
        self.failed >= MAX_FAILED || self.killed >= MAX_KILLED
    }

    /// It goes on from this state, or anew, because another rank cannot go on with its newer ones.
    pub(crate) fn go_back(&mut self, now: Time, generation: Option<u64>) {
        match self.state {
            RankState::At(_) => self.over(now, Why::Regrouped, now),
            RankState::Waiting | RankState::Finished => self.state = RankState::Waiting,
        }
        self.done = false;
        self.since = self.start + 1;
        self.images.cut(generation);
    }

    /// A user has it try again, anew if it has to.
    pub(crate) fn forgive(&mut self) {
        (self.killed, self.failed) = (0, 0);
        self.unfit.clear();
        if self.images.is_lost() {
            self.images.allow_anew();
        }
    }
}
