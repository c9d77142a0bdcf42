//! A call that kills every service that executes it is executed by two services at most, and
//! answered alike by all; no other call is refused for it.
//!
//! Source: docs/protocol/poison.md.

use std::collections::BTreeSet;

use super::hashed::{HashMap, HashSet};

use wire::limits::MAX_POISONED;
use wire::ordered::Poison;
use wire::{Duration, GroupId, Member, NodeId, RingId, Time};

use super::replies::CallKey;
use super::{Verdict, demand};

const PROPERTY: &str = "poisonous calls";

/// So many services die of one call, where its client goes on asking.
const ENOUGH: usize = 2;

/// A replica or node that is told to leave is out of its groups after this time.
const GOING: Duration = Duration::from_millis(500);

/// Calls of a replica's history that nobody executes.
#[derive(Clone, Default)]
struct Skipped {
    /// So many came with its state.
    before: Option<u64>,
    /// It has said so of these since, by number.
    told: BTreeSet<u64>,
}

/// Reports of poisonous calls, and deaths.
#[derive(Clone, Default)]
pub struct Poisons {
    /// When a client first asked a node for a call.
    asked: HashMap<CallKey, Time>,
    /// Where services died of a call, as was told first in a component's history.
    told: HashMap<CallKey, (RingId, Vec<NodeId>)>,
    /// Calls whose clients were told that they are poisonous.
    refused: HashSet<CallKey>,
    /// How many calls of the history that a replica has were executed by nobody.
    skipped: HashMap<(Member, GroupId), Skipped>,
    /// Nodes that died, or whose services died or hung.
    died: HashSet<NodeId>,
    /// When nodes, or services of theirs, died or were cut off, and of which group's call if of
    /// one.
    deaths: Vec<(NodeId, Time, Option<GroupId>)>,
    /// When replicas, or nodes, were told to go.
    going: Vec<Time>,
    /// Lives that ended by a call of this group.
    ended: HashMap<Member, GroupId>,
    /// Where services died of a call.
    killed: HashMap<CallKey, Vec<NodeId>>,
    /// Deaths by a call that nobody is to blame for, beyond those that are enough.
    spared: HashMap<CallKey, usize>,
}

impl Poisons {
    /// A client asks a node for a call.
    pub fn asked(&mut self, call: CallKey, now: Time) {
        self.asked.entry(call).or_insert(now);
    }

    /// This life, or a service of it, has ended or is hung.
    pub fn died(&mut self, member: Member, now: Time) {
        self.died.insert(member.node);
        self.deaths.push((member.node, now, self.ended.get(&member).copied()));
    }

    /// Nodes with a death since then, except deaths by a call of this group.
    fn by_chance(&self, group: GroupId, since: Time) -> impl Iterator<Item = NodeId> + '_ {
        let others = move |(_, at, cause): &&(_, Time, Option<GroupId>)| {
            *at >= since && *cause != Some(group)
        };
        self.deaths.iter().filter(others).map(|(node, ..)| *node)
    }

    /// This life is taken for dead.
    pub fn excluded(&mut self, member: Member, now: Time) {
        self.died(member, now);
    }

    /// A replica, or a node with all it has, is to go by its own will.
    pub fn goes(&mut self, now: Time) {
        self.going.push(now);
    }

    /// No program or node has died since this call was asked for, except programs ended by calls of
    /// its group; and no replica has left. A replica that leaves may still answer a call that it
    /// led; then the call is refused only while its client asks.
    pub fn is_quiet(&self, call: CallKey) -> bool {
        let since = self.asked.get(&call).copied().unwrap_or_default();
        let gone = self.going.iter().any(|at| *at + GOING >= since);
        !gone && !self.deaths.iter().any(|(_, at, _)| *at >= since)
    }

    /// A service dies of this call, and with its node if that `ends`. `lasting`: the call kills
    /// every executor. `known`: the node could have known of earlier deaths by it, and that its
    /// client asks.
    pub fn kills(
        &mut self,
        call: CallKey,
        member: Member,
        ends: bool,
        (lasting, known): (bool, bool),
    ) -> Verdict {
        self.died.insert(member.node);
        if ends {
            self.ended.insert(member, call.0);
        }
        if !known {
            self.spare(call);
        }
        self.killed.entry(call).or_default().push(member.node);
        let killed = self.killed[&call].len();
        let since = self.asked.get(&call).copied().unwrap_or_default();
        let others = self.by_chance(call.0, since).count();
        let most = ENOUGH + others + self.spared.get(&call).copied().unwrap_or_default();
        demand(!lasting || killed <= most, PROPERTY, || {
            format!("{killed} services have died of {call:?}, {most} are enough")
        })
    }

    /// The executor of this call takes so long that another may try it meanwhile.
    pub fn spare(&mut self, call: CallKey) {
        *self.spared.entry(call).or_default() += 1;
    }

    /// A replica says that nobody executes a call, in the history of this component. While no client
    /// was told of it that history may be lost with its members, and another one knows other deaths
    /// (seed 60020253).
    pub fn told(
        &mut self,
        by: Member,
        (group, ring): (GroupId, RingId),
        poison: &Poison,
    ) -> Verdict {
        let call = (group, poison.client, poison.call);
        self.skipped.entry((by, group)).or_default().told.insert(poison.number);
        let known = (ring, poison.nodes.clone());
        let (before, nodes) = self.told.entry(call).or_insert_with(|| known.clone());
        if *before != ring && !self.refused.contains(&call) {
            (*before, *nodes) = known;
        }
        demand(*nodes == poison.nodes, PROPERTY, || {
            format!("{by} says that services died of {call:?} at {:?}: {nodes:?}", poison.nodes)
        })?;
        let innocent = nodes.iter().find(|node| !self.died.contains(node));
        demand(innocent.is_none() && nodes.len() >= ENOUGH, PROPERTY, || {
            format!("{by} says that {nodes:?} died of {call:?}, and {innocent:?} did not")
        })?;
        // A service may die of another call that it was given together with this one, and then this
        // one is tried alone.
        let since = self.asked.get(&call).copied().unwrap_or_default();
        let (nodes, killed) = (&poison.nodes, self.killed.get(&call));
        let by_it = |node: &NodeId| killed.is_some_and(|killed| killed.contains(node));
        let by_chance = |node: &NodeId| self.by_chance(group, since).any(|it| it == *node);
        let others = nodes.iter().filter(|node| !by_it(node) && !by_chance(node)).count();
        demand(others <= 1, PROPERTY, || {
            format!("{by} says that {nodes:?} died of {call:?}: {others} of them died of others")
        })
    }

    /// A replica executes a call.
    pub fn executed(&self, by: Member, call: CallKey) -> Verdict {
        demand(!self.refused.contains(&call), PROPERTY, || {
            format!("{by} executes {call:?}, whose client was told that nobody does")
        })
    }

    /// A replica gives its history up for another. The calls that it reported as poisonous may be in
    /// no history: no disk had them when its node was lost.
    pub fn gave_up(&mut self, by: Member, group: GroupId) {
        self.skipped.remove(&(by, group));
    }

    /// The `told`-th call of a group is the `place`-th that the service has executed: those between
    /// were executed by nobody.
    pub fn counted(&mut self, by: Member, group: GroupId, told: u64, place: u64) -> u64 {
        let most = self.told.keys().filter(|(of, ..)| *of == group).count() as u64;
        let skipped = self.skipped.entry((by, group)).or_default();
        let here = skipped.told.range(..told).count() as u64;
        let before = told.saturating_sub(place + here).min(most);
        place + here + *skipped.before.get_or_insert(before)
    }

    /// A client is told this of a call.
    pub fn refused(&mut self, call: CallKey) -> Verdict {
        self.refused.insert(call);
        demand(self.told.contains_key(&call), PROPERTY, || {
            format!("{call:?} is refused as poisonous, and no replica has said so")
        })
    }

    /// At the end these replicas have these lists of poisonous calls.
    pub fn finish(&self, group: GroupId, lists: &[(Member, &[Poison])]) -> Verdict {
        let Some(&(first, list)) = lists.first() else { return Ok(()) };
        let other = lists.iter().find(|(_, other)| *other != list);
        demand(other.is_none(), PROPERTY, || {
            format!("{first} has {list:?} as poisonous calls of {group}, and not {other:?}")
        })?;
        let has = |call: &CallKey| list.iter().any(|it| (group, it.client, it.call) == *call);
        let mut missing = self.refused.iter().filter(|call| call.0 == group && !has(call));
        let missing = missing.next().filter(|_| list.len() < MAX_POISONED);
        demand(missing.is_none(), PROPERTY, || {
            format!("{missing:?} was refused as poisonous, and is not in the list of {group}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{ClientId, Incarnation, MethodId};

    const GROUP: GroupId = GroupId(1);
    const CALL: CallKey = (GROUP, ClientId(4), 5);
    const RING: RingId = RingId { sequence: 1, representative: NodeId(1) };

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

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

    /// These died by themselves.
    fn after_deaths(nodes: &[u32]) -> Poisons {
        let mut poisons = Poisons::default();
        nodes.iter().for_each(|node| poisons.died(member(*node), Time(9)));
        poisons
    }

    #[test]
    fn who_is_said_to_have_died_did_and_all_say_the_same() {
        let by = member(3);
        let mut poisons = Poisons::default();
        poisons.refused(CALL).unwrap_err();
        poisons.told(by, (GROUP, RING), &poison(&[1, 2])).unwrap_err();
        let mut poisons = after_deaths(&[1, 2]);
        poisons.told(by, (GROUP, RING), &poison(&[1, 2])).unwrap();
        poisons.refused(CALL).unwrap();
        poisons.told(by, (GROUP, RING), &poison(&[2, 1])).unwrap_err();
        let next = RingId { sequence: 2, ..RING };
        poisons.told(by, (GROUP, next), &poison(&[2, 1])).unwrap_err(); // a client knows the other
        after_deaths(&[1]).told(by, (GROUP, RING), &poison(&[1])).unwrap_err();
    }

    #[test]
    fn a_history_that_told_no_client_may_be_lost() {
        let (by, next) = (member(3), RingId { sequence: 2, ..RING });
        let mut poisons = after_deaths(&[1, 2]);
        poisons.told(by, (GROUP, RING), &poison(&[1, 2])).unwrap();
        poisons.told(by, (GROUP, next), &poison(&[2, 2])).unwrap();
        poisons.told(by, (GROUP, next), &poison(&[1, 2])).unwrap_err();
    }

    #[test]
    fn two_die_and_no_third() {
        let mut poisons = Poisons::default();
        poisons.kills(CALL, member(1), false, (true, true)).unwrap();
        poisons.kills(CALL, member(2), true, (true, true)).unwrap();
        poisons.excluded(member(2), Time(3)); // as it died
        poisons.kills(CALL, member(3), false, (true, true)).unwrap_err();
    }

    #[test]
    fn a_third_dies_if_another_was_cut_off_or_could_not_know() {
        let die = |poisons: &mut Poisons, known| {
            for node in [1, 2] {
                poisons.kills(CALL, member(node), false, (true, true)).unwrap();
            }
            poisons.kills(CALL, member(3), false, (true, known))
        };
        die(&mut Poisons::default(), true).unwrap_err();
        die(&mut Poisons::default(), false).unwrap();
        let mut poisons = after_deaths(&[4]);
        poisons.asked(CALL, Time(9));
        die(&mut poisons, true).unwrap();
        let mut poisons = after_deaths(&[4]);
        poisons.asked(CALL, Time(10));
        die(&mut poisons, true).unwrap_err();
    }

    #[test]
    fn a_call_that_killed_nobody_is_not_poisonous() {
        let other = (GROUP, ClientId(8), 1);
        let told = |chance: &[u32]| {
            let mut poisons = after_deaths(chance);
            for node in [1, 2] {
                poisons.kills(other, member(node), false, (true, true)).unwrap();
            }
            poisons.told(member(3), (GROUP, RING), &poison(&[1, 2]))
        };
        told(&[]).unwrap_err();
        told(&[2]).unwrap();
    }

    #[test]
    fn who_died_of_another_groups_call_died_by_chance() {
        for (group, right) in [(GROUP, false), (GroupId(2), true)] {
            let mut poisons = Poisons::default();
            let call = (group, ClientId(8), 1);
            for node in [1, 2] {
                poisons.kills(call, member(node), true, (true, true)).unwrap();
                poisons.died(member(node), Time(1));
            }
            assert_eq!(poisons.told(member(3), (GROUP, RING), &poison(&[1, 2])).is_ok(), right);
        }
    }

    #[test]
    fn what_was_refused_is_executed_by_nobody_and_is_in_all_lists() {
        let mut poisons = after_deaths(&[1, 2]);
        poisons.executed(member(3), CALL).unwrap();
        poisons.told(member(3), (GROUP, RING), &poison(&[1, 2])).unwrap();
        poisons.refused(CALL).unwrap();
        poisons.executed(member(3), CALL).unwrap_err();
        let list = [poison(&[1, 2])];
        poisons.finish(GROUP, &[(member(1), &list), (member(2), &list)]).unwrap();
        poisons.finish(GROUP, &[(member(1), &list), (member(2), &[])]).unwrap_err();
        poisons.finish(GROUP, &[(member(1), &[]), (member(2), &[])]).unwrap_err();
        poisons.finish(GroupId(2), &[(member(1), &[])]).unwrap();
    }

    #[test]
    fn it_is_not_quiet_while_somebody_goes() {
        let mut poisons = Poisons::default();
        poisons.asked(CALL, Time::ZERO + GOING + GOING);
        poisons.goes(Time::ZERO);
        assert!(poisons.is_quiet(CALL), "it has gone by then");
        poisons.goes(Time::ZERO + GOING);
        assert!(!poisons.is_quiet(CALL));
    }

    #[test]
    fn places_count_what_nobody_executed() {
        let by = member(3);
        let mut poisons = after_deaths(&[1, 2]);
        assert_eq!(poisons.counted(by, GROUP, 2, 2), 2);
        poisons.told(by, (GROUP, RING), &poison(&[1, 2])).unwrap();
        assert_eq!(poisons.counted(by, GROUP, 4, 3), 4);
        poisons.gave_up(by, GROUP);
        assert_eq!(poisons.counted(by, GROUP, 6, 5), 6, "it came with a state");
        assert_eq!(poisons.counted(by, GROUP, 9, 6), 7, "and no more than that");
        poisons.gave_up(by, GROUP);
        assert_eq!(
            poisons.counted(by, GROUP, 7, 7),
            7,
            "it came with a state in which all are executed"
        );
    }
}
