//! Comparisons of replicas (`docs/protocol/group.md`, "Replicas are compared"): when the next one is
//! due, and what the digests of the last one show.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use wire::ordered::{Compared, StateDigest};
use wire::{Duration, GroupId, Member, RingId, Time, ViewNumber};

/// Parts of the time between two comparisons: a group is compared so soon after its first call, and
/// looked at as often.
const PARTS: u32 = 60;

/// The digests that are there after so many of these parts are looked at, if others are silent.
const PATIENCE: u32 = 10;

/// The state that a comparison shows: the number of calls, and the group's view.
type Shown = (u64, ViewNumber);

/// The comparison of a group that was begun last.
#[derive(Clone, Debug)]
struct Comparison {
    at: (RingId, u64),
    /// Those who may tell a digest.
    of: Vec<Member>,
    told: BTreeMap<Member, (u64, StateDigest)>,
    /// Those who are silent by then may have no digest. They may also be busy with earlier calls.
    until: Option<Time>,
}

/// When a group is compared next.
#[derive(Clone, Debug, Default)]
struct Plan {
    /// Not before.
    from: Time,
    /// The state that the last one has shown.
    shown: Option<Shown>,
    /// This node is to order one then.
    due: Option<Time>,
}

/// The comparisons of the groups whose replicas are here.
#[derive(Clone, Debug)]
pub(crate) struct Comparisons {
    every: Duration,
    open: BTreeMap<GroupId, Comparison>,
    plans: BTreeMap<GroupId, Plan>,
    /// Groups are not looked at before.
    from: Time,
    /// A digest has come since then.
    news: bool,
}

/// A comparison's result for a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// No other has told a digest that can be compared.
    Nothing,
    /// Its state is that of most.
    Same,
    /// Its state is another one, as this text says.
    Apart(String),
}

impl Comparisons {
    pub(crate) fn new(every: Duration) -> Comparisons {
        Comparisons {
            every,
            open: BTreeMap::new(),
            plans: BTreeMap::new(),
            from: Time::ZERO,
            news: false,
        }
    }

    /// There may be something to do.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.news || now >= self.from
    }

    /// All groups have been looked at.
    pub(crate) fn looked(&mut self, now: Time) {
        (self.from, self.news) = (now + self.every / PARTS, false);
    }

    /// This node's group shows this. True if it is to be compared now.
    pub(crate) fn is_to_begin(&mut self, now: Time, group: GroupId, shown: Shown) -> bool {
        let soon = now + self.every / PARTS;
        let plan = self.plans.entry(group).or_default();
        if plan.shown == Some(shown) || shown.0 == 0 {
            plan.due = None;
            return false;
        }
        let due = *plan.due.get_or_insert(soon.max(plan.from));
        if due > now {
            return false;
        }
        *plan = Plan { from: now + self.every, shown: Some(shown), due: None };
        true
    }

    /// It is not for this node to have the group compared.
    pub(crate) fn is_for_others(&mut self, group: GroupId) {
        if let Some(plan) = self.plans.get_mut(&group) {
            plan.due = None;
        }
    }

    /// A comparison of these replicas begins at this place.
    pub(crate) fn begin(
        &mut self,
        now: Time,
        (group, shown): (GroupId, Shown),
        at: (RingId, u64),
        of: Vec<Member>,
    ) {
        let until = Some(now + self.every / PARTS * PATIENCE);
        self.open.insert(group, Comparison { at, of, told: BTreeMap::new(), until });
        let plan = Plan { from: now + self.every, shown: Some(shown), due: None };
        self.plans.insert(group, plan);
    }

    /// A replica tells its digest.
    pub(crate) fn told(&mut self, sender: Member, compared: Compared) {
        let Compared { group, ring, sequence, executed, state } = compared;
        let Some(open) = self.open.get_mut(&group) else { return };
        if open.at == (ring, sequence) && open.of.contains(&sender) {
            open.told.insert(sender, (executed, state));
            self.news = true;
        }
    }

    /// The groups under comparison.
    pub(crate) fn open(&self) -> Vec<GroupId> {
        self.open.keys().copied().collect()
    }

    /// The finding of a group's comparison about `me`, if all that have the state, which `synced` says,
    /// have told theirs or had the time.
    pub(crate) fn show(
        &mut self,
        now: Time,
        group: GroupId,
        me: Member,
        synced: &[Member],
    ) -> Option<Finding> {
        let open = self.open.get_mut(&group)?;
        open.of.retain(|member| synced.contains(member));
        open.told.retain(|member, _| synced.contains(member));
        let all = open.of.iter().all(|member| open.told.contains_key(member));
        if !all && open.until.is_none_or(|until| now < until) {
            return None;
        }
        open.until = None;
        let finding = find(me, &open.told);
        if all {
            self.open.remove(&group);
        }
        Some(finding)
    }

    /// The replica is gone.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.open.remove(&group);
        self.plans.remove(&group);
    }

    /// Digests from before are not told any more.
    pub(crate) fn in_new_component(&mut self) {
        self.open.clear();
    }

    /// When a group is to be compared, or a comparison ends: not before groups are looked at again,
    /// so that one comparison of times tells each turn whether there is anything to do.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let due = self.plans.values().filter_map(|plan| plan.due).min();
        let until = self.open.values().filter_map(|open| open.until).min();
        due.into_iter().chain(until).min().map(|at| at.max(self.from))
    }
}

/// The finding of these digests about `me`: only those of one form, and of as many calls, are compared.
fn find(me: Member, told: &BTreeMap<Member, (u64, StateDigest)>) -> Finding {
    let Some((executed, own)) = told.get(&me) else { return Finding::Nothing };
    let like =
        told.iter().filter(|(_, (calls, state))| calls == executed && state.form == own.form);
    let like: Vec<(Member, u64)> =
        like.map(|(member, (_, state))| (*member, state.value)).collect();
    let same = like.iter().filter(|(_, value)| *value == own.value).count();
    if like.len() < 2 {
        return Finding::Nothing;
    }
    if same * 2 > like.len() {
        return Finding::Same;
    }
    let others = like.iter().filter(|(_, value)| *value != own.value);
    let others: Vec<String> =
        others.map(|(member, value)| format!("{} has {value:016x}", member.node)).collect();
    Finding::Apart(format!(
        "after call {executed} its digest is {:016x}, and {}",
        own.value,
        others.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use wire::{Incarnation, NodeId};

    use super::*;

    const GROUP: GroupId = GroupId(7);
    const RING: RingId = RingId { sequence: 1, representative: NodeId(1) };
    const EVERY: Duration = Duration::from_secs(60);

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn compared(executed: u64, form: u64, value: u64) -> Compared {
        let state = StateDigest { form, value };
        Compared { group: GROUP, ring: RING, sequence: 5, executed, state }
    }

    /// The finding at each of the members that told these.
    fn findings(told: &[(u64, u64, u64)]) -> Vec<Finding> {
        let members: Vec<Member> = (1..=told.len() as u32).map(member).collect();
        let find = |me: &Member| {
            let mut all = Comparisons::new(EVERY);
            let shown = (9, ViewNumber(1));
            all.begin(Time::ZERO, (GROUP, shown), (RING, 5), members.clone());
            for (member, (executed, form, value)) in members.iter().zip(told) {
                assert_eq!(all.show(Time::ZERO, GROUP, *me, &members), None, "not all have told");
                all.told(*member, compared(*executed, *form, *value));
            }
            all.show(Time::ZERO, GROUP, *me, &members).expect("all have told")
        };
        members.iter().map(find).collect()
    }

    fn apart(finding: &Finding) -> bool {
        matches!(finding, Finding::Apart(_))
    }

    #[test]
    fn the_one_that_differs_from_most_is_apart_and_of_two_both_are() {
        assert_eq!(findings(&[(9, 1, 5); 3]), [Finding::Same, Finding::Same, Finding::Same]);
        let odd = findings(&[(9, 1, 5), (9, 1, 6), (9, 1, 5)]);
        let text = "after call 9 its digest is 0000000000000006, and n1 has 0000000000000005, \
                    n3 has 0000000000000005";
        assert_eq!(odd, [Finding::Same, Finding::Apart(text.into()), Finding::Same]);
        assert!(findings(&[(9, 1, 5), (9, 1, 6)]).iter().all(apart));
        assert!(findings(&[(9, 1, 5), (9, 1, 6), (9, 1, 7)]).iter().all(apart));
    }

    #[test]
    fn digests_of_other_calls_or_forms_are_not_compared() {
        assert_eq!(findings(&[(9, 1, 5), (8, 1, 6)]), [Finding::Nothing, Finding::Nothing]);
        assert_eq!(findings(&[(9, 1, 5), (9, 2, 6)]), [Finding::Nothing, Finding::Nothing]);
        let mixed = findings(&[(9, 1, 5), (9, 1, 5), (9, 2, 6)]);
        assert_eq!(mixed, [Finding::Same, Finding::Same, Finding::Nothing]);
    }

    #[test]
    fn who_is_silent_or_gone_is_not_waited_for_and_may_still_tell() {
        let (one, two, three) = (member(1), member(2), member(3));
        let mut all = Comparisons::new(EVERY);
        let shown = (9, ViewNumber(1));
        all.begin(Time::ZERO, (GROUP, shown), (RING, 5), [one, two, three].to_vec());
        all.told(one, compared(9, 1, 5));
        all.told(two, compared(9, 1, 6));
        let late = all.next_timeout().expect("somebody may be silent");
        assert_eq!(all.show(Time::ZERO, GROUP, one, &[one, two, three]), None);
        assert!(all.show(late, GROUP, one, &[one, two, three]).is_some_and(|it| apart(&it)));
        assert_eq!(all.show(late, GROUP, one, &[one, two, three]), None, "it was shown");
        all.told(three, compared(9, 1, 5));
        assert_eq!(all.show(late, GROUP, one, &[one, two, three]), Some(Finding::Same));
        all.begin(Time::ZERO, (GROUP, shown), (RING, 5), [one, two, three].to_vec());
        all.told(one, compared(9, 1, 5));
        all.told(three, compared(9, 1, 5));
        assert_eq!(all.show(Time::ZERO, GROUP, one, &[one, three]), Some(Finding::Same));
    }

    #[test]
    fn a_group_is_compared_soon_and_then_once_in_a_while_if_it_was_called() {
        let mut all = Comparisons::new(EVERY);
        let (view, begun) = (ViewNumber(1), Time::ZERO + EVERY);
        assert!(!all.is_to_begin(begun, GROUP, (0, view)), "nobody has called it");
        assert!(!all.is_to_begin(begun, GROUP, (1, view)));
        let soon = all.next_timeout().expect("it was called");
        assert_eq!(soon, begun + Duration::from_secs(1));
        assert!(all.is_to_begin(soon, GROUP, (2, view)));
        assert!(!all.is_to_begin(soon + EVERY, GROUP, (2, view)), "nothing is new");
        assert!(!all.is_to_begin(soon, GROUP, (3, view)));
        assert_eq!(all.next_timeout(), Some(soon + EVERY));
        assert!(all.is_to_begin(soon + EVERY, GROUP, (3, view)));
        assert!(!all.is_to_begin(soon + EVERY, GROUP, (3, ViewNumber(2))));
        assert!(all.is_to_begin(soon + EVERY * 2, GROUP, (3, ViewNumber(2))), "a replica has come");
    }
}
