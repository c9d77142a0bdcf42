//! A fault becomes concrete: whom it strikes, and for how long.

use wire::{Duration, Member, NodeId};

use crate::draw::Draw;
use crate::fabric::{Fabric, Process, node_id};
use crate::faults::{Cuts, FaultKind, FaultPlan, deaf, one_way, partition};
use crate::network::Weather;

/// A fault that happens now.
#[derive(Clone, Debug)]
pub enum Strike {
    /// A node's life ends; with `power`, its host's too.
    End {
        /// Whose.
        node: usize,
        /// Its host goes silent.
        power: bool,
    },
    /// A node is told to leave.
    Leave(usize),
    /// A node's process is stopped.
    Pause(usize),
    /// Ways are cut.
    Cut(Cuts),
    /// The weather changes.
    Storm(Weather),
    /// The weather changes, and soon the hosts fall apart.
    Ambush(Weather),
    /// A connection of this client is reset.
    Reset(usize),
    /// The executors of this node become slow.
    Slow(usize),
}

/// A fault ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relief {
    /// The node starts again.
    Boot(usize),
    /// No end yet: an ambush closes.
    Split,
    /// The node's process goes on.
    Resume(usize),
    /// All cuts are mended.
    Mend,
    /// The weather is as the seed drew it.
    Clear,
    /// The executors of this node are quick again.
    Quick(usize),
}

/// Who is struck by a fault of this kind. `covered` says whether the promise survives a death.
pub fn choose<P: Process, X>(
    kind: FaultKind,
    fabric: &Fabric<P, X>,
    places: usize,
    draw: &mut Draw,
    covered: impl Fn(Member, &[NodeId]) -> bool,
) -> Option<Strike> {
    let nodes = fabric.hosts.len();
    let node = draw.count(0, nodes - 1);
    let runs = fabric.hosts[node].process.is_some();
    let may_end = || runs && covered(fabric.member(node), &away(fabric));
    match kind {
        FaultKind::Kill => may_end().then_some(Strike::End { node, power: false }),
        FaultKind::PowerLoss => may_end().then_some(Strike::End { node, power: true }),
        FaultKind::Leave => (fabric.hosts[node].runs() && may_end()).then_some(Strike::Leave(node)),
        FaultKind::Pause => fabric.hosts[node].runs().then_some(Strike::Pause(node)),
        FaultKind::Partition => Some(Strike::Cut(partition(draw, nodes, places))),
        FaultKind::Deaf => Some(Strike::Cut(deaf(draw, nodes, places))),
        FaultKind::OneWay => Some(Strike::Cut(one_way(draw, nodes))),
        FaultKind::Storm => {
            let loss = draw.pick(&[200, 400, 800]);
            Some(Strike::Storm(Weather { loss, ..fabric.network.weather() }))
        }
        FaultKind::Ambush => {
            let loss = draw.pick(&[300, 500, 700]);
            Some(Strike::Ambush(Weather { loss, ..fabric.network.weather() }))
        }
        FaultKind::Reset if places > nodes => {
            Some(Strike::Reset(draw.count(0, places - nodes - 1)))
        }
        FaultKind::Reset => None,
        FaultKind::Slow => Some(Strike::Slow(node)),
    }
}

/// Nodes that are stopped, or do not see the majority of the others.
fn away<P: Process, X>(fabric: &Fabric<P, X>) -> Vec<NodeId> {
    let nodes = fabric.hosts.len();
    let sees = |node: usize| {
        let joined = |&other: &usize| fabric.network.joined(node, other);
        2 * (0..nodes).filter(joined).count() > nodes
    };
    (0..nodes).filter(|&node| fabric.hosts[node].paused || !sees(node)).map(node_id).collect()
}

/// What every world does alike; tells what must follow and when.
pub fn strike<P: Process, X>(
    strike: &Strike,
    fabric: &mut Fabric<P, X>,
    plan: &FaultPlan,
    draw: &mut Draw,
) -> (Duration, Option<Relief>) {
    let mut span = plan.span(draw);
    let relief = match strike {
        Strike::End { node, .. } => Some(Relief::Boot(*node)),
        Strike::Leave(_) | Strike::Reset(_) => None,
        Strike::Pause(node) => {
            fabric.pause(*node);
            Some(Relief::Resume(*node))
        }
        Strike::Cut(cuts) => {
            for &(from, to) in cuts {
                fabric.network.cut(from, to);
            }
            Some(Relief::Mend)
        }
        Strike::Storm(weather) => {
            fabric.network.set_weather(*weather);
            Some(Relief::Clear)
        }
        Strike::Ambush(weather) => {
            fabric.network.set_weather(*weather);
            span = draw.span(Duration::from_micros(200), Duration::from_millis(4));
            Some(Relief::Split)
        }
        Strike::Slow(node) => Some(Relief::Quick(*node)),
    };
    (span, relief)
}
