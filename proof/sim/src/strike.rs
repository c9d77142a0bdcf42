//! A fault becomes concrete: its victim, and its span.

use wire::{Duration, Member, NodeId};

use crate::draw::Draw;
use crate::fabric::{Fabric, node_id};
use crate::faults::{Cuts, FaultKind, FaultPlan, deaf, one_way, partition};
use crate::network::Weather;
use crate::options::Options;
use crate::process::Process;

/// A fault that happens now.
#[derive(Clone, Debug)]
pub enum Strike {
    /// A node's life ends; with `power`, its host's too.
    End {
        /// The node's place.
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
    /// The processes of these nodes are killed, as far as the promise survives it.
    Burst(Vec<usize>),
    /// Ways fail and work by turns.
    Flap(Cuts),
    /// This node takes so long to read a datagram.
    Lag(usize, Duration),
    /// The wall clock of this node is set by so many milliseconds.
    WallJump(usize, i64),
    /// This node gives up its replica of a group: the first that it hosts from this one on.
    Unhost(usize, usize),
    /// These ways are cut for an instant; then those, and this node's life ends as far as the
    /// promise survives it.
    Orphan(Cuts, Cuts, usize),
}

/// A fault ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relief {
    /// The node starts again.
    Boot(usize),
    /// The node's process ends, and starts again with another program.
    Renew(usize),
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
    /// A link that flaps changes its mind: these ways are mended, or cut again, so many times more.
    Flap(Cuts, u64),
    /// The node reads its socket as it comes.
    Keep(usize),
    /// The node hosts its replica of this group again.
    Host(usize, usize),
    /// No end yet: other ways are cut instead, and this node's life ends.
    Orphan(Cuts, usize),
    /// The disk of this node has room again.
    Room(usize),
}

/// Chooses a strike of this kind. `covered` says whether the promise survives a death.
pub fn choose<P: Process, X>(
    kind: FaultKind,
    fabric: &Fabric<P, X>,
    places: usize,
    draw: &mut Draw,
    covered: impl Fn(Member) -> bool,
) -> Option<Strike> {
    let nodes = fabric.hosts.len();
    let node = draw.count(0, nodes - 1);
    let runs = fabric.hosts[node].process.is_some();
    let may_end = || runs && covered(fabric.member(node));
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
        FaultKind::Burst => {
            let many = draw.count(1, nodes);
            Some(Strike::Burst(draw.distinct(many, nodes)))
        }
        FaultKind::Flap => {
            let mut cuts = one_way(draw, nodes);
            if draw.one_in(2) {
                cuts.extend(cuts.clone().into_iter().map(|(from, to)| (to, from)));
            }
            Some(Strike::Flap(cuts))
        }
        FaultKind::Lag => {
            let span = draw.scale(Duration::from_micros(20), Duration::from_millis(5));
            Some(Strike::Lag(node, span))
        }
        FaultKind::WallJump => {
            let far = draw.pick(&[5, 1_000, 60_000]);
            let by = draw.between(1, far) as i64;
            Some(Strike::WallJump(node, if draw.one_in(2) { by } else { -by }))
        }
        FaultKind::Unhost => Some(Strike::Unhost(node, draw.count(0, 7))),
        // The victim depends on which nodes host which groups.
        FaultKind::Orphan => None,
    }
}

/// Nodes that are stopped, or do not see the majority of the others.
pub fn away<P: Process, X>(fabric: &Fabric<P, X>) -> Vec<NodeId> {
    let nodes = fabric.hosts.len();
    let sees = |node: usize| {
        let joined = |&other: &usize| fabric.network.joined(node, other);
        2 * (0..nodes).filter(joined).count() > nodes
    };
    (0..nodes).filter(|&node| fabric.hosts[node].paused || !sees(node)).map(node_id).collect()
}

/// Applies a strike, alike in every world. Returns the reliefs that must follow, and when.
pub fn strike<P: Process, X>(
    strike: &Strike,
    fabric: &mut Fabric<P, X>,
    plan: &FaultPlan,
    draw: &mut Draw,
) -> (Duration, Option<Relief>) {
    let mut span = plan.span(draw);
    let relief = match strike {
        Strike::End { node, .. } => Some(Relief::Boot(*node)),
        Strike::Leave(_) | Strike::Reset(_) | Strike::Burst(_) => None,
        Strike::WallJump(node, by) => {
            fabric.jump(*node, *by);
            None
        }
        Strike::Unhost(node, group) => Some(Relief::Host(*node, *group)),
        Strike::Lag(node, gap) => {
            fabric.lag(*node, Some(*gap));
            Some(Relief::Keep(*node))
        }
        Strike::Flap(cuts) => {
            span = draw.span(Duration::from_millis(1), span);
            let times = draw.between(3, 40);
            fabric.network.cut_all(cuts);
            Some(Relief::Flap(cuts.clone(), times))
        }
        Strike::Pause(node) => {
            fabric.pause(*node);
            Some(Relief::Resume(*node))
        }
        Strike::Cut(cuts) => {
            fabric.network.cut_all(cuts);
            // Now and then one way stays cut for so long that the rings must find a way to live
            // with it.
            if cuts.len() == 1 && draw.one_in(3) {
                span *= 5;
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
        Strike::Orphan(first, then, victim) => {
            fabric.network.cut_all(first);
            span = draw.span(Duration::from_micros(200), Duration::from_millis(6));
            Some(Relief::Orphan(then.clone(), *victim))
        }
    };
    (span, relief)
}

/// Ends a fault, alike in every world. Returns the reliefs that must follow, and when. Nothing new
/// begins when all is `calm`.
pub fn relieve<P: Process, X>(
    relief: &Relief,
    fabric: &mut Fabric<P, X>,
    options: &Options,
    calm: bool,
    draw: &mut Draw,
) -> Vec<(Duration, Relief)> {
    let mut next = Vec::new();
    match relief {
        Relief::Resume(node) => fabric.resume(*node),
        Relief::Keep(node) => fabric.lag(*node, None),
        Relief::Mend => fabric.network.heal(),
        Relief::Clear if !calm => fabric.network.set_weather(options.weather),
        Relief::Split if !calm => {
            fabric.network.set_weather(options.weather);
            let places = fabric.network.places();
            fabric.network.cut_all(&partition(draw, options.nodes, places));
            // Half of the time once more, when the parts are about to form rings.
            if draw.one_in(2) {
                let soon = draw.span(Duration::from_millis(50), Duration::from_millis(180));
                next.push((soon, Relief::Split));
            }
            next.push((options.faults.span(draw), Relief::Mend));
        }
        Relief::Flap(cuts, times) if !calm => {
            if times % 2 == 1 {
                fabric.network.mend(cuts);
            } else {
                fabric.network.cut_all(cuts);
            }
            if *times > 0 {
                let soon = draw.scale(Duration::from_millis(1), options.faults.longest);
                next.push((soon, Relief::Flap(cuts.clone(), times - 1)));
            } else {
                fabric.network.mend(cuts);
            }
        }
        Relief::Orphan(cuts, _) if !calm => {
            fabric.network.heal();
            fabric.network.cut_all(cuts);
            // Long enough for each side to form a ring: before, all that anybody has is sent again
            // to all.
            let span = draw.span(Duration::from_millis(100), Duration::from_millis(500));
            next.push((span, Relief::Mend));
        }
        // Others are the worlds' own, or have nothing to end any more.
        Relief::Clear | Relief::Split | Relief::Flap(..) | Relief::Orphan(..) => {}
        Relief::Boot(_) | Relief::Renew(_) | Relief::Quick(_) => {}
        Relief::Host(..) | Relief::Room(_) => {}
    }
    next
}
