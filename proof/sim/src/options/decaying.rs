//! The world of decay: clusters with disks that rot and fill up.

use wire::ordered::Style;

use super::Options;
use crate::cluster::DecayPlan;
use crate::draw::Draw;

impl Options {
    /// Disks rot and fill up. Each group has a state that another node has, too, and there are
    /// nodes enough that one may forget all.
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
        // A piece of an update or a checkpoint is larger than what these small segments take at a
        // time.
        for group in &mut self.groups {
            let passive = [Style::WarmPassive, Style::ColdPassive];
            group.styles.retain(|style| !passive.contains(style));
            if passive.contains(&group.options.style) {
                group.options.style = Style::SemiActive;
            }
        }
        Options { decay: Some(DecayPlan::draw(&mut draw)), ..self }
    }
}
