//! Calls that kill the service that executes them, and programs that die
//! (`docs/protocol/poison.md`).
//!
//! Whether a call kills follows from its name: so it does so at each replica, and whenever it is
//! executed. A death waits for a time at which the promise covers it; all that the call does
//! meanwhile is to take long.

mod in_cluster;

use std::collections::{BTreeMap, BTreeSet};

use wire::{ClientId, Duration, Member, Time};

use crate::check::replies::CallKey;
use crate::draw::Draw;
use crate::trace::mix;

/// A death that the promise does not cover yet is looked at again after this long.
const AGAIN: Duration = Duration::from_millis(5);

/// A death is put off so often.
const TIMEOUT: u32 = 10;

/// A node that was asked for a call so long ago knows that its client asks when it decides whether
/// to try the call.
const KNOWN: Duration = Duration::from_millis(200);

/// A replica that leaves a group on disk takes its state along. No node dies until the disks of the
/// remaining replicas have all of it.
const STORED: Duration = Duration::from_millis(150);

/// A program that has died is started again within this time.
const RESTART: Duration = Duration::from_millis(60);

/// Which calls kill, and how often programs die.
#[derive(Clone, Copy, Debug)]
pub struct PoisonPlan {
    /// One call of so many kills.
    pub calls: u64,
    /// One of so many of these ends the node of the program that executes it.
    pub nodes: u64,
    /// Programs die this often on average, one or all of a group.
    pub falls: Option<Duration>,
    /// Messages after which a replica gives its state to its node.
    pub snapshot_after: u64,
    /// All that is drawn later.
    pub seed: u64,
}

impl PoisonPlan {
    /// Draws the plan.
    pub fn draw(draw: &mut Draw, disks: bool) -> PoisonPlan {
        let falls = if disks { draw.pick(&[0, 300]) } else { draw.pick(&[0, 30, 100, 300]) };
        PoisonPlan {
            calls: draw.pick(&[4, 8, 20]),
            nodes: draw.pick(&[4, 1_000]),
            falls: (falls > 0).then(|| Duration::from_millis(falls)),
            snapshot_after: draw.pick(&[3, 20, 10_000]),
            seed: draw.bits(),
        }
    }
}

/// The effect of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It kills every service that executes it.
    Always,
    /// It kills the first service that executes it.
    Once,
    /// It kills the first who executes it, and the second soon after its answer.
    Late,
}

/// The knowledge of such calls.
pub(super) struct Poisoning {
    plan: PoisonPlan,
    pub(super) draw: Draw,
    clients: BTreeSet<ClientId>,
    killed: BTreeMap<CallKey, u64>,
    /// The last executor that there was when a call was asked for first.
    since: BTreeMap<CallKey, u64>,
    /// How often a death by a call was put off: one that waits for too long kills nobody any more.
    put_off: BTreeMap<CallKey, u32>,
    /// Which lives of nodes were asked for a call by its client, and when first.
    asked: BTreeMap<(Member, CallKey), Time>,
}

impl Poisoning {
    pub(super) fn new(plan: PoisonPlan, clients: BTreeSet<ClientId>) -> Poisoning {
        let draw = Draw::new(plan.seed);
        Poisoning {
            plan,
            draw,
            clients,
            killed: BTreeMap::new(),
            since: BTreeMap::new(),
            put_off: BTreeMap::new(),
            asked: BTreeMap::new(),
        }
    }

    /// Returns the effect of this call, and whether its node dies of it.
    fn of(&self, call: CallKey) -> Option<(Kind, bool)> {
        let (group, client, number) = call;
        let name = mix(mix(self.plan.seed, client.0), mix(group.0, number));
        let mut draw = Draw::new(name);
        if !self.clients.contains(&client) || !draw.one_in(self.plan.calls) {
            return None;
        }
        let kind = draw.pick(&[Kind::Always, Kind::Always, Kind::Once, Kind::Late]);
        Some((kind, draw.one_in(self.plan.nodes)))
    }
}

/// A service that is about to die.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dying {
    call: CallKey,
    kind: Kind,
    /// With its node.
    node: bool,
    /// It has answered the call.
    late: bool,
}
