//! The world of interruptions: nothing goes wrong but what the script says.

use wire::Duration;

use super::Options;
use crate::cluster::{Script, Wanted};
use crate::draw::Draw;

impl Options {
    /// People do one thing, when all is there; a node more than have replicas are left when one is
    /// drained and another dies.
    pub fn scripted(mut self, script: Script) -> Options {
        let mut draw = Draw::new(script.seed ^ 0x57e9);
        self.resize(draw.pick(&[4, 5, 5, 6]), &mut draw);
        self = self.without_faults();
        self.faults.phase = Duration::from_secs(60);
        (self.moves, self.restyles, self.hangs, self.hosts) = (None, None, None, None);
        (self.benches, self.outsider, self.budget) = (false, None, u64::MAX);
        self.load.timeout = self.load.timeout.max(Duration::from_millis(100));
        let nodes = self.nodes;
        if let Some(plan) = &mut self.deploy {
            let many = plan.wanted.len();
            self.groups.truncate(many);
            (plan.drains, plan.upgrades) = (u64::MAX, u64::MAX);
            for wanted in &mut plan.wanted {
                let replicas = draw.count(2, 3.min(nodes - 2)) as u32;
                *wanted = Wanted { replicas, ..*wanted };
            }
        }
        self.groups.iter_mut().for_each(|group| group.hosts = (0..nodes).collect());
        if let Some(disks) = &mut self.disks {
            (disks.unsynced, disks.spoilt) = (0, 0);
        }
        Options { script: Some(script), ..self }
    }
}
