//! Trials of bare rings once their faults are over and all is well. Each tries one of the bounds
//! that docs/protocol/ring.md states, in a network that is otherwise as the formula assumes it.

use wire::Duration;

use crate::draw::Draw;
use crate::faults::{Cuts, deaf, one_way};

/// How somebody falls silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The host loses power.
    Power,
    /// The process is stopped.
    Stopped,
    /// Nothing comes from the host nor to it.
    Cut,
    /// The process is killed, and its host says so.
    Killed,
}

/// The others' load meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    None,
    /// One of them sends steadily.
    One,
    /// Two send by turns, so often that one of them always waits for the token.
    Two,
    /// All send.
    All,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Some have all that they can send, the others a message now and then.
    Wait,
    /// One falls silent.
    Silence(Silence, Work),
    /// One takes in datagrams so slowly that another, with all that it can send, waits for it most
    /// of the time.
    Slow,
    /// Ways are cut, and stay so; `cold`: before the nodes start.
    Shape {
        /// From the first to the second nothing passes.
        cuts: Cuts,
        /// All nodes start anew in it.
        cold: bool,
        /// It is one of those in which rings come to rest: only one node or one pair is at odds
        /// with the others.
        rests: bool,
    },
    /// Ways fail and work by turns.
    Flap {
        /// Which.
        cuts: Cuts,
        /// How long they fail, and how long they work.
        each: Duration,
    },
}

/// More nodes than these are not put to a trial: it would cost what a hundred other seeds do.
const LARGEST: usize = 7;

impl Trial {
    /// Draws a trial for so many nodes: mostly none.
    pub fn draw(draw: &mut Draw, nodes: usize) -> Option<Trial> {
        if !(2..=LARGEST).contains(&nodes) || !draw.one_in(4) {
            return None;
        }
        let silence = [Silence::Power, Silence::Stopped, Silence::Cut, Silence::Killed];
        let work = [Work::None, Work::One, Work::Two, Work::All];
        Some(match draw.between(0, 8) {
            8 if nodes >= 3 => Trial::Slow,
            0 | 1 => Trial::Wait,
            2..=4 => Trial::Silence(draw.pick(&silence), draw.pick(&work)),
            5 | 6 => {
                let (cuts, rests) = shape(draw, nodes);
                Trial::Shape { cuts, cold: draw.one_in(3), rests }
            }
            _ => Trial::Flap {
                cuts: pair(draw, nodes),
                each: draw.pick(&[20, 60, 150, 250].map(Duration::from_millis)),
            },
        })
    }

    /// A bound of time is tried: it says something about a network that does not hold messages up.
    pub fn is_timed(&self) -> bool {
        matches!(self, Trial::Wait | Trial::Silence(..) | Trial::Slow)
    }
}

/// A network's shape: one way is cut (corosync#760), some are, a node is deaf or mute, or two do
/// not hear each other. Whether rings rest in it: in a tangle of several cuts a node that cannot be
/// taken in may try again as often as it is let.
fn shape(draw: &mut Draw, nodes: usize) -> (Cuts, bool) {
    match draw.between(0, 4) {
        0 | 1 => (one_way(draw, nodes), true),
        2 => (pair(draw, nodes), true),
        3 => (deaf(draw, nodes, nodes), true),
        _ => {
            let some = draw.between(1, 300);
            let all = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b)));
            let cuts: Cuts = all.filter(|(a, b)| a != b && draw.permille(some)).collect();
            let rests = cuts.len() < 2;
            (cuts, rests)
        }
    }
}

/// Both ways between two nodes, or one.
fn pair(draw: &mut Draw, nodes: usize) -> Cuts {
    let mut cuts = one_way(draw, nodes);
    if draw.one_in(2) {
        cuts.extend(cuts.clone().into_iter().map(|(from, to)| (to, from)));
    }
    cuts
}
