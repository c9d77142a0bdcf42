//! A call that kills whoever executes it is executed by two services at most, and answered alike by all.
//!
//! Source: docs/protocol/poison.md.

use super::hashed::{HashMap, HashSet};

use wire::ordered::Poison;
use wire::{GroupId, Member, NodeId};

use super::replies::CallKey;
use super::{Verdict, demand};

const PROPERTY: &str = "poisonous calls";

/// So many services die of one call, where its client goes on asking.
const ENOUGH: usize = 2;

/// What was said of poisonous calls, and who died.
#[derive(Default)]
pub struct Poisons {
    /// Where services died of a call, as was told first.
    told: HashMap<CallKey, Vec<NodeId>>,
    /// How many calls of the history that a replica has were executed by nobody.
    skipped: HashMap<(Member, GroupId), u64>,
    /// Nodes that died, or whose services died or hung.
    died: HashSet<NodeId>,
    /// Services that died of a call.
    killed: HashMap<CallKey, usize>,
}

impl Poisons {
    /// A node, or a service of it, has died or is hung.
    pub fn died(&mut self, node: NodeId) {
        self.died.insert(node);
    }

    /// A service dies of this call. `asked`: its client goes on asking for it.
    pub fn kills(&mut self, call: CallKey, asked: bool) -> Verdict {
        let killed = self.killed.entry(call).or_default();
        *killed += 1;
        let most = ENOUGH + usize::from(!asked);
        demand(*killed <= most, PROPERTY, || format!("{killed} services have died of {call:?}"))
    }

    /// A replica says that nobody executes a call.
    pub fn told(&mut self, by: Member, group: GroupId, poison: &Poison) -> Verdict {
        let call = (group, poison.client, poison.call);
        if let Some(skipped) = self.skipped.get_mut(&(by, group)) {
            *skipped += 1;
        }
        let nodes = self.told.entry(call).or_insert_with(|| poison.nodes.clone());
        demand(*nodes == poison.nodes, PROPERTY, || {
            format!("{by} says that services died of {call:?} at {:?}: {nodes:?}", poison.nodes)
        })?;
        let innocent = nodes.iter().find(|node| !self.died.contains(node));
        demand(innocent.is_none() && nodes.len() >= ENOUGH, PROPERTY, || {
            format!("{by} says that {nodes:?} died of {call:?}, and {innocent:?} did not")
        })
    }

    /// A replica's history is another one now.
    pub fn replaced(&mut self, by: Member, group: GroupId) {
        self.skipped.remove(&(by, group));
    }

    /// The `told`-th call of a group is the `place`-th that the service has executed: those between were executed by nobody.
    pub fn counted(&mut self, by: Member, group: GroupId, told: u64, place: u64) -> u64 {
        let most = self.told.keys().filter(|(of, ..)| *of == group).count() as u64;
        let skipped = self.skipped.entry((by, group));
        place + *skipped.or_insert_with(|| told.saturating_sub(place).min(most))
    }

    /// A client is told this of a call.
    pub fn refused(&self, call: CallKey) -> Verdict {
        demand(self.told.contains_key(&call), PROPERTY, || {
            format!("{call:?} is refused as poisonous, and no replica has said so")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{ClientId, Incarnation, MethodId, Time};

    const GROUP: GroupId = GroupId(1);

    fn poison(nodes: &[u32]) -> Poison {
        Poison {
            number: 3,
            client: ClientId(4),
            call: 5,
            method: MethodId(6),
            json: false,
            time: Time(7),
            nodes: nodes.iter().copied().map(NodeId).collect(),
            size: 0,
            body: Vec::new(),
        }
    }

    #[test]
    fn who_is_said_to_have_died_did_and_all_say_the_same() {
        let by = Member { node: NodeId(3), incarnation: Incarnation(1) };
        let call = (GROUP, ClientId(4), 5);
        let mut poisons = Poisons::default();
        poisons.refused(call).unwrap_err();
        poisons.told(by, GROUP, &poison(&[1, 2])).unwrap_err();
        [1, 2].into_iter().for_each(|node| poisons.died(NodeId(node)));
        poisons.told(by, GROUP, &poison(&[1, 2])).unwrap();
        poisons.refused(call).unwrap();
        poisons.told(by, GROUP, &poison(&[2, 1])).unwrap_err();
        let mut poisons = Poisons::default();
        poisons.died(NodeId(1));
        poisons.told(by, GROUP, &poison(&[1])).unwrap_err();
    }

    #[test]
    fn two_die_and_no_third() {
        let call = (GROUP, ClientId(4), 5);
        let mut poisons = Poisons::default();
        poisons.kills(call, true).unwrap();
        poisons.kills(call, true).unwrap();
        poisons.kills(call, true).unwrap_err();
    }

    #[test]
    fn places_count_what_nobody_executed() {
        let by = Member { node: NodeId(3), incarnation: Incarnation(1) };
        let mut poisons = Poisons::default();
        [1, 2].into_iter().for_each(|node| poisons.died(NodeId(node)));
        assert_eq!(poisons.counted(by, GROUP, 2, 2), 2);
        poisons.told(by, GROUP, &poison(&[1, 2])).unwrap();
        assert_eq!(poisons.counted(by, GROUP, 4, 3), 4);
        poisons.replaced(by, GROUP);
        assert_eq!(poisons.counted(by, GROUP, 6, 5), 6, "it came with a state");
        assert_eq!(poisons.counted(by, GROUP, 9, 6), 7, "and no more than that");
    }
}
