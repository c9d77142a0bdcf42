//! Replicas that are compared often, and states that drift apart.

use wire::Duration;

use super::Options;
use super::conditions::{ComparePlan, Pipe};
use crate::draw::Draw;

impl Options {
    /// In one of eight seeds with calls that are ordered.
    pub(super) fn with_comparisons(self, seed: u64) -> Options {
        let mut draw = Draw::new(seed ^ 0xc03a);
        let wanted = draw.one_in(8) && self.world.is_cluster() && !self.smooth;
        let every = draw.pick(&[100, 300]).pipe(Duration::from_millis);
        let drifts = draw.pick(&[0, 100, 500]);
        // Elsewhere replicas, or the rules, change on purpose.
        let steady = self.programs.is_none() && self.deploy.is_none() && self.poison.is_none();
        let steady = steady && self.growth.is_none() && self.gateways.is_none();
        let drifts = (drifts > 0 && steady).then(|| Duration::from_millis(drifts));
        Options { compare: wanted.then_some(ComparePlan { every, drifts }), ..self }
    }

    /// Time between two comparisons: elsewhere no run takes so long.
    pub fn compare_every(&self) -> Duration {
        self.compare.map_or(Duration::from_secs(60 * 60), |plan| plan.every)
    }
}
