//! Disks below a cluster rot and fill up (`docs/protocol/store.md`).
//!
//! - A bit rots at a node that is down. If its store does not open then, somebody gives the node an
//!   empty disk: one node at a time, never half of them, and not before all have again what they
//!   should have.
//! - A disk has no room for some time. Its node leaves when it is refused, and comes back when
//!   there is room.

mod in_cluster;

use crate::draw::Draw;

/// The parameters of decay that a seed draws.
#[derive(Clone, Copy, Debug)]
pub struct DecayPlan {
    /// Ends of a life, per 1,000 that the promise covers, at which a bit rots.
    pub rot: u64,
    /// Whenever a fault may strike a disk is full instead, once in so many.
    pub full: u64,
    /// The file system takes room for what is written over, too.
    pub copies: bool,
    /// All that is drawn later.
    pub seed: u64,
}

impl DecayPlan {
    /// Draws the plan.
    pub fn draw(draw: &mut Draw) -> DecayPlan {
        DecayPlan {
            rot: draw.pick(&[0, 300, 700]),
            full: draw.pick(&[2, 4, 1_000]),
            copies: draw.one_in(2),
            seed: draw.bits(),
        }
    }
}

/// The state of the plan's execution.
pub(super) struct Decay {
    plan: DecayPlan,
    pub draw: Draw,
    /// A bit is to rot at the next node whose life ends.
    pub rots: bool,
}

impl Decay {
    pub fn new(plan: DecayPlan) -> Decay {
        Decay { plan, draw: Draw::new(plan.seed), rots: false }
    }

    /// A fault may strike: the node whose disk fills up, if one does.
    pub fn strike(&mut self, bears: bool, nodes: usize) -> Option<usize> {
        self.rots = bears && self.draw.permille(self.plan.rot);
        self.draw.one_in(self.plan.full).then(|| self.draw.count(0, nodes - 1))
    }
}
