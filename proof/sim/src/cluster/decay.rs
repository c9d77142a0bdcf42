//! Disks below a cluster rot and fill up (`docs/protocol/store.md`).
//!
//! - A bit rots at a node that is down. If its store does not open then, somebody gives the node an empty disk: one node at a time, never half
//!   of them, and not before all have again what they should have.
//! - A disk has no room for some time. Its node leaves when it is refused, and comes back when there is room.

use store::OpenError;
use wire::ordered::Style;
use wire::{Duration, GroupId};

use super::disks::{Opened, SEGMENT, open};
use super::{Cluster, Extra};
use crate::check::Violation;
use crate::check::decay::{self, Found};
use crate::draw::Draw;
use crate::options::GroupPlan;
use crate::strike::Relief;

/// What a seed draws.
#[derive(Clone, Copy, Debug)]
pub struct DecayPlan {
    /// A bit rots at a node whose life ends, of 1,000 such ends that the promise covers.
    pub rot: u64,
    /// Whenever a fault may strike a disk is full instead, once in so many.
    pub full: u64,
    /// The file system takes room for what is written over, too.
    pub copies: bool,
    /// All that is drawn later.
    pub seed: u64,
}

impl DecayPlan {
    /// What a seed draws.
    pub fn draw(draw: &mut Draw) -> DecayPlan {
        DecayPlan {
            rot: draw.pick(&[0, 300, 700]),
            full: draw.pick(&[2, 4, 1_000]),
            copies: draw.one_in(2),
            seed: draw.bits(),
        }
    }
}

/// What becomes of the plan.
pub(super) struct Decay {
    pub plan: DecayPlan,
    draw: Draw,
    /// A bit is to rot at the next node whose life ends.
    rots: bool,
}

impl Decay {
    pub fn new(plan: DecayPlan) -> Decay {
        Decay { plan, draw: Draw::new(plan.seed), rots: false }
    }
}

impl Cluster {
    /// A fault may strike: a disk fills up, or the next that ends rots.
    pub(super) fn decays(&mut self) {
        if self.decay.is_none() {
            return;
        }
        let bears = self.bears_rot();
        let Some(decay) = &mut self.decay else { return };
        decay.rots = bears && decay.draw.permille(decay.plan.rot);
        if !decay.draw.one_in(decay.plan.full) {
            return;
        }
        let node = decay.draw.count(0, self.options.nodes - 1);
        let left = decay.draw.count(0, 2 * SEGMENT as usize);
        let span = self.options.faults.span(&mut decay.draw) + Duration::from_millis(300);
        let disk = &mut self.disks[node].disk;
        disk.capacity = disk.used() + left;
        let at = self.fabric.now();
        self.fabric
            .trace
            .say(at, || format!("FAULT the disk of n{} has room for {left}", node + 1));
        self.fabric.later(span, Extra::Relief(Relief::Room(node)));
    }

    /// All is there, and of each group on disk at least two nodes have the state: a disk may be lost.
    fn bears_rot(&self) -> bool {
        let kept = |group: &&GroupPlan| group.options.style != Style::Stateless;
        let mut kept = self.options.groups.iter().filter(kept);
        self.is_whole()
            && self.is_one_ring()
            && kept.all(|group| self.watch.promise.newest(GroupId::of(&group.name)).len() > 1)
            && self.missing().is_none()
    }

    /// A node is down: now bits may rot there.
    pub(super) fn rot(&mut self, node: usize) {
        let Some(decay) = &mut self.decay else { return };
        if !std::mem::take(&mut decay.rots) {
            return;
        }
        let disk = &mut self.disks[node].disk;
        let whole = disk.clone();
        let Some(bit) = disk.rot() else { return };
        self.fabric.trace.say(self.fabric.now(), || format!("FAULT n{}: {bit:?} rots", node + 1));
        self.disks[node].rotten = Some((bit, whole));
    }

    /// A node is about to open a store below which a bit has rotted. If that is told it gets an empty disk.
    pub(super) fn look_for_rot(
        &mut self,
        node: usize,
        config: store::Config,
    ) -> Result<(), Violation> {
        let now = self.fabric.now();
        let own = &mut self.disks[node];
        let Some((bit, mut whole)) = own.rotten.take() else { return Ok(()) };
        whole.troubles = crate::disk::Troubles::default();
        let last = whole.is_recent(bit);
        let pieces = |opened: Result<Opened, OpenError>| opened.map(|opened| opened.pieces);
        let well = pieces(open(&mut whole, config, now));
        let found = pieces(open(&mut own.disk.clone(), config, now));
        let is_full = |it: &Result<_, OpenError>| matches!(it, Err(OpenError::Full(_)));
        let told = match &well {
            // There is no room to look: it is as if it had not rotted.
            _ if is_full(&well) || is_full(&found) => Found::Unnoticed,
            Err(error) => panic!("nothing had rotted before: {error}"),
            Ok(well) => decay::opened(bit, last, well, found.as_deref())?,
        };
        match told {
            Found::Unnoticed => _ = own.disk.flip(bit),
            Found::Told => {
                own.renew();
                self.summary.rotten += 1;
                self.fabric.trace.say(now, || format!("n{} has an empty disk", node + 1));
            }
        }
        Ok(())
    }

    /// The disk of this node has room again.
    pub(super) fn make_room(&mut self, node: usize) {
        self.disks[node].disk.capacity = super::disks::ROOM;
    }
}
