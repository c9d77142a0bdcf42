//! The world of decay: clusters with disks that rot and fill up.

use super::Options;
use crate::cluster::DecayPlan;
use crate::draw::Draw;

impl Options {
    /// Disks rot and fill up. Each group has a state that another node has, too, and there are nodes enough that one may forget all.
    pub(super) fn with_decay(mut self, seed: u64) -> Options {
        if self.disks.is_none() {
            return self;
        }
        let mut draw = Draw::new(seed ^ 0xdeca);
        if self.nodes < 3 {
            self.resize(3, &mut draw);
        }
        let nodes = self.nodes;
        for group in self.groups.iter_mut().filter(|group| group.hosts.len() < 2) {
            group.hosts = draw.distinct(3, nodes);
        }
        Options { decay: Some(DecayPlan::draw(&mut draw)), ..self }
    }
}
