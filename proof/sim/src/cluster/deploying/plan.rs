//! The deployments that people want, as a seed draws them.

use manager::cluster_state::Replication;
use wire::Duration;

use crate::draw::Draw;

/// The wanted deployment of one of the seed's groups.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Replicas that are wanted.
    pub replicas: u32,
    /// They are spread over the racks, if there are any.
    pub spread: bool,
    /// When those that are lost are replaced.
    pub replication: Replication,
}

impl Wanted {
    /// Draws the wish for one more group.
    fn draw(draw: &mut Draw, nodes: usize) -> Wanted {
        let later = Replication::KeepAfter(Duration::from_millis(draw.pick(&[100, 1_000])));
        Wanted {
            replicas: draw.count(1, nodes.min(3)) as u32,
            spread: draw.one_in(2),
            replication: draw.pick(&[Replication::Keep, Replication::Keep, later]),
        }
    }
}

/// The wanted deployments of the seed's first groups.
#[derive(Clone, Debug)]
pub struct DeployPlan {
    /// The wanted deployment of each group.
    pub wanted: Vec<Wanted>,
    /// Racks that hosts are in, if they are.
    pub racks: Option<usize>,
    /// Nodes are drained and returned, once in so many looks.
    pub drains: u64,
    /// The program is replaced by another, once in so many looks.
    pub upgrades: u64,
    /// All that is drawn later.
    pub seed: u64,
}

impl DeployPlan {
    /// Draws the plan.
    pub fn draw(draw: &mut Draw, nodes: usize) -> DeployPlan {
        let later = Replication::KeepAfter(Duration::from_millis(draw.pick(&[100, 1_000])));
        let replicas = draw.count(1, nodes.min(3)) as u32;
        let racks = draw.one_in(2).then(|| draw.count(2, 3));
        let replication = draw.pick(&[Replication::Keep, Replication::Keep, later]);
        let mut plan = DeployPlan {
            wanted: vec![Wanted { replicas, spread: racks.is_some(), replication }],
            racks,
            drains: draw.pick(&[10, 30, 1_000]),
            upgrades: 0,
            seed: draw.bits(),
        };
        plan.upgrades = [8, 20, 1_000][(plan.seed % 3) as usize];
        plan
    }

    /// So many groups are deployed in all.
    pub fn of(mut self, groups: usize, nodes: usize, draw: &mut Draw) -> DeployPlan {
        self.wanted.resize_with(groups, || Wanted::draw(draw, nodes));
        self
    }
}
