//! What rot and full disks do to a cluster.

use store::OpenError;
use wire::ordered::Style;
use wire::{Duration, GroupId};

use crate::check::Violation;
use crate::check::decay::{self, Found};
use crate::cluster::disks::{Opened, SEGMENT, open};
use crate::cluster::{Cluster, Extra};
use crate::options::GroupPlan;
use crate::strike::Relief;

impl Cluster {
    /// A fault may strike: a disk fills up, or the next that ends rots.
    pub(in crate::cluster) fn decays(&mut self) {
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
    pub(in crate::cluster) fn rot(&mut self, node: usize) {
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
    pub(in crate::cluster) fn look_for_rot(
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
    pub(in crate::cluster) fn make_room(&mut self, node: usize) {
        self.disks[node].disk.capacity = crate::cluster::disks::ROOM;
    }
}
