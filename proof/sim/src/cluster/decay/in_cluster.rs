//! The effects of rot and full disks on a cluster.

use store::OpenError;
use wire::GroupId;
use wire::ordered::Style;

use crate::check::Violation;
use crate::check::decay::{self, Found};
use crate::cluster::disks::{Opened, open};
use crate::cluster::{Cluster, Extra};
use crate::options::GroupPlan;
use crate::strike::Relief;

impl Cluster {
    /// A fault may strike: a disk fills up, or the next that ends rots.
    pub(in crate::cluster) fn decays(&mut self) {
        if !self.disks.decay() {
            return;
        }
        let bears = self.bears_rot();
        if let Some((node, left, span)) = self.disks.strike(bears, &self.options.faults) {
            self.fabric.say(|| format!("FAULT the disk of n{} has room for {left}", node + 1));
            self.fabric.later(span, Extra::Relief(Relief::Room(node)));
        }
    }

    /// All is there, and of each group on disk at least two nodes have the state: a disk may be
    /// lost.
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
        if let Some(bit) = self.disks.rot(node) {
            self.fabric.say(|| format!("FAULT n{}: {bit:?} rots", node + 1));
        }
    }

    /// A node is about to open a store below which a bit has rotted. If that is told it gets an
    /// empty disk.
    pub(in crate::cluster) fn look_for_rot(
        &mut self,
        node: usize,
        config: store::Config,
    ) -> Result<(), Violation> {
        let now = self.fabric.now();
        let own = self.disks.of(node);
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
                self.fabric.say(|| format!("n{} has an empty disk", node + 1));
            }
        }
        Ok(())
    }

    /// The disk of this node has room again.
    pub(in crate::cluster) fn make_room(&mut self, node: usize) {
        self.disks.of(node).disk.capacity = crate::cluster::disks::ROOM;
    }
}
