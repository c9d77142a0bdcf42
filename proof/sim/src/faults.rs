//! Which faults strike when: drawn as the run goes, so that the promise can be kept in view.

use wire::Duration;

use crate::draw::Draw;

/// The kinds of faults, beside the weather of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// A process is killed; its host lives and says so.
    Kill,
    /// A host loses power: silence.
    PowerLoss,
    /// A node is told to leave, and starts again later.
    Leave,
    /// A process is stopped for a while (SIGSTOP, a starved machine).
    Pause,
    /// The hosts fall into two parts that do not see each other.
    Partition,
    /// One host is heard by nobody, or hears nobody.
    Deaf,
    /// One way between two hosts is cut.
    OneWay,
    /// Much is lost for a while.
    Storm,
    /// Much is lost for an instant, then the hosts fall apart: messages reach some, and those who
    /// could send them again are gone.
    Ambush,
    /// A client's connection is reset.
    Reset,
    /// Executors of a node become slow for a while.
    Slow,
    /// Several processes are killed within a moment, and start again within another.
    Burst,
    /// A link works and fails by turns, for a long spell.
    Flap,
    /// A node reads its socket slowly, and what does not fit there is lost.
    Lag,
    /// A wall clock is set forward or back.
    WallJump,
    /// A node gives a replica up, and hosts it again later.
    Unhost,
    /// Some hosts of a group miss an instant of what goes on. At its end another dies, and they, or
    /// all the others, are cut off.
    Orphan,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [FaultKind; 17] = [
        FaultKind::Kill,
        FaultKind::PowerLoss,
        FaultKind::Leave,
        FaultKind::Pause,
        FaultKind::Partition,
        FaultKind::Deaf,
        FaultKind::OneWay,
        FaultKind::Storm,
        FaultKind::Ambush,
        FaultKind::Reset,
        FaultKind::Slow,
        FaultKind::Burst,
        FaultKind::Flap,
        FaultKind::Lag,
        FaultKind::WallJump,
        FaultKind::Unhost,
        FaultKind::Orphan,
    ];

    /// A bare ring can suffer it.
    pub fn concerns_rings(self) -> bool {
        use FaultKind::{Orphan, Reset, Slow, Unhost, WallJump};
        !matches!(self, Reset | Slow | WallJump | Unhost | Orphan)
    }
}

/// The faults of one seed.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// The kinds that exist, with their weights.
    pub kinds: Vec<(FaultKind, u64)>,
    /// The mean time between two.
    pub every: Duration,
    /// How long faults happen; then everything heals.
    pub phase: Duration,
    /// The longest pause, partition or outage.
    pub longest: Duration,
}

impl FaultPlan {
    /// When the next fault strikes.
    pub fn wait(&self, draw: &mut Draw) -> Duration {
        draw.span(Duration::from_millis(1), self.every * 2)
    }

    /// Which kind it is, if there is any.
    pub fn kind(&self, draw: &mut Draw) -> Option<FaultKind> {
        let total: u64 = self.kinds.iter().map(|(_, weight)| weight).sum();
        if total == 0 {
            return None;
        }
        let mut point = draw.between(1, total);
        let strikes = |&&(_, weight): &&(FaultKind, u64)| {
            let here = point <= weight;
            point = point.saturating_sub(weight);
            here
        };
        self.kinds.iter().find(strikes).map(|&(kind, _)| kind)
    }

    /// One of these kinds exists.
    pub fn has(&self, kinds: &[FaultKind]) -> bool {
        self.kinds.iter().any(|(kind, _)| kinds.contains(kind))
    }

    /// How long it lasts.
    pub fn span(&self, draw: &mut Draw) -> Duration {
        draw.scale(Duration::from_millis(5), self.longest)
    }
}

/// The cuts of a partition: from each of these places to each of those.
pub type Cuts = Vec<(usize, usize)>;

/// The nodes fall into two or three parts that do not see each other. Clients fall with them, or
/// see all: then those of a part without the quorum meet nodes that do not know yet that they have
/// lost it.
pub fn partition(draw: &mut Draw, nodes: usize, places: usize) -> Cuts {
    let parts = draw.pick(&[2, 2, 3]);
    let reach = if draw.one_in(2) { nodes } else { places };
    let sides: Vec<u64> = (0..reach).map(|_| draw.between(1, parts)).collect();
    let all = (0..reach).flat_map(|a| (0..reach).map(move |b| (a, b)));
    all.filter(|&(a, b)| sides[a] != sides[b]).collect()
}

/// One of the first `nodes` places is heard by nobody, or hears nobody; or so the other nodes only.
pub fn deaf(draw: &mut Draw, nodes: usize, places: usize) -> Cuts {
    let one = draw.count(0, nodes - 1);
    let mute = draw.one_in(2);
    let reach = if draw.one_in(2) { nodes } else { places };
    let others = (0..reach).filter(|&other| other != one);
    others.map(|other| if mute { (one, other) } else { (other, one) }).collect()
}

/// These of the nodes hear nothing of the others, nor they of them. Clients see all.
pub fn apart(few: &[usize], nodes: usize) -> Cuts {
    let all = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b)));
    all.filter(|(a, b)| few.contains(a) != few.contains(b)).collect()
}

/// One way between two nodes.
pub fn one_way(draw: &mut Draw, nodes: usize) -> Cuts {
    match draw.distinct(2, nodes)[..] {
        [from, to] => vec![(from, to)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_cuts_both_ways_and_a_weight_of_zero_never_strikes() {
        let mut draw = Draw::new(3);
        let cuts = partition(&mut draw, 4, 6);
        assert!(cuts.iter().all(|&(a, b)| cuts.contains(&(b, a))));
        let plan = FaultPlan {
            kinds: vec![(FaultKind::Kill, 0), (FaultKind::Pause, 2), (FaultKind::Slow, 1)],
            every: Duration::from_millis(1),
            phase: Duration::from_millis(1),
            longest: Duration::from_millis(9),
        };
        let drawn: Vec<_> = (0..300).filter_map(|_| plan.kind(&mut draw)).collect();
        let count = |kind| drawn.iter().filter(|&&drawn| drawn == kind).count();
        assert_eq!(count(FaultKind::Kill), 0);
        assert!(count(FaultKind::Pause) > 150 && count(FaultKind::Slow) > 60);
    }
}
