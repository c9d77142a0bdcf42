//! How a rank leaves a node that is being emptied: it saves, another node gets the copies, it saves what
//! has changed meanwhile, and as soon as that is there too it goes on from it.

use serde::{Deserialize, Serialize};
use wire::NodeId;

use crate::Generation;
use crate::bug::{Bug, Planted};
use crate::catalogue::Catalogue;

/// A rank is to go on elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Where.
    pub to: NodeId,
    /// A state is awaited there that is newer than this image.
    after: u64,
    /// States that have come there.
    came: u8,
}

/// States that come to the other node at most, before the rank leaves.
const LONGEST: u8 = 8;

/// The next step of a move.
pub(crate) enum Step {
    /// The rank is to save once more.
    Save,
    /// It has saved meanwhile: that is to come, too.
    Wait,
    /// All of its state is there: its start is over.
    Leave,
}

impl Move {
    /// A rank with these images is to go to this node.
    pub(crate) fn new(to: NodeId, images: &Catalogue) -> Move {
        Move { to, after: images.next() - 1, came: 0 }
    }

    /// A copy has come to a node: perhaps it is the one that was awaited.
    pub(crate) fn arrived(&mut self, images: &Catalogue, planted: Planted) -> Option<Step> {
        let there = |image: &&Generation| image.holders.iter().any(|holder| holder.node == self.to);
        let awaited = images.restorable().find(|state| {
            let all = state.iter().all(there) || planted.is(Bug::MoveTooEarly);
            state[0].place.generation > self.after && all
        });
        self.after = awaited?[0].place.generation;
        self.came += 1;
        let newest = images.restorable().next().map(|state| state[0].place.generation);
        match self.came {
            1 => Some(Step::Save),
            // One that saves again and again is not waited for.
            LONGEST.. => Some(Step::Leave),
            // An increment is small, so little is computed twice while it goes over.
            _ if newest == Some(self.after) => Some(Step::Leave),
            _ => Some(Step::Wait),
        }
    }
}
