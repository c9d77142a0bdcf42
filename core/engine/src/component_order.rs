//! The order of places in the history of components.
//!
//! Epoch and ring give the order where all know of each other. But a disk alone may know of an
//! attempt. Nodes whose disks lack it begin anew with small epochs and rings, and answer. Such an
//! attempt is **void**: it was never effective, and never will be (`docs/protocol/store.md`,
//! "Attempts that only some disks know").

use alloc::collections::{BTreeMap, BTreeSet};

use wire::ordered::{Announce, Component, Place};
use wire::{Member, RingId};

/// A component's identity. Later ones compare as larger, if neither is void.
type Age = (u64, RingId);

pub(crate) fn age(component: &Component) -> Age {
    (component.epoch, component.ring)
}

/// A place among all known ones: a later one compares as larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    /// The component, or the one from which a void attempt went out.
    component: Age,
    /// The void attempt: after all messages of the component, and before all others.
    branch: Age,
    sequence: u64,
}

/// The order of the components that the members of a configuration name.
#[derive(Clone, Debug)]
pub(crate) struct ComponentOrder {
    /// Void attempts, each with the last component before it that is not.
    void: BTreeMap<Age, Age>,
}

impl ComponentOrder {
    /// Nothing is void.
    pub(crate) const fn new() -> ComponentOrder {
        ComponentOrder { void: BTreeMap::new() }
    }

    /// The order that these announcements show, if all named components had the quorum.
    pub(crate) fn of(announces: &BTreeMap<Member, Announce>) -> ComponentOrder {
        let mut component_order = ComponentOrder::new();
        if announces.values().all(|announce| announce.attempts.is_empty()) {
            return component_order;
        }
        let named: BTreeMap<Age, &Component> =
            announces.values().flat_map(components).map(|named| (age(named), named)).collect();
        let lasts: BTreeSet<Age> = announces.values().map(|announce| age(&announce.last)).collect();
        let is_void = |attempt: &Component| {
            let contradicts = |other: &Component| is_later_in_ignorance(other, attempt);
            !lasts.contains(&age(attempt)) && named.values().any(|other| contradicts(other))
        };
        for announce in announces.values() {
            let mut base = age(&announce.last);
            for attempt in &announce.attempts {
                if !is_void(attempt) {
                    base = age(attempt);
                    continue;
                }
                // Like all its members, the installer had the furthest of their histories.
                let known = component_order.void.entry(age(attempt)).or_insert(base);
                *known = base.max(*known);
            }
        }
        component_order
    }

    /// The component was never effective: no request was answered in it, and its members need not
    /// be outvoted.
    pub(crate) fn is_void(&self, component: &Component) -> bool {
        self.void.contains_key(&age(component))
    }

    pub(crate) fn moment(&self, place: Place) -> Moment {
        let Place { epoch, ring, sequence } = place;
        match self.void.get(&(epoch, ring)) {
            Some(base) => Moment { component: *base, branch: (epoch, ring), sequence },
            None => Moment { component: (epoch, ring), branch: Age::default(), sequence },
        }
    }

    /// Whether `one` is later than `other`.
    pub(crate) fn is_after(&self, one: Place, other: Place) -> bool {
        self.moment(one) > self.moment(other)
    }

    /// The latest of these.
    pub(crate) fn latest(&self, places: impl Iterator<Item = Place>) -> Option<Place> {
        places.max_by_key(|place| self.moment(*place))
    }
}

/// All components that a member names.
fn components(announce: &Announce) -> impl Iterator<Item = &Component> {
    core::iter::once(&announce.last).chain(&announce.attempts)
}

/// `other` was installed after `attempt`, and none of its announced members knew that one: its
/// number would be larger.
fn is_later_in_ignorance(other: &Component, attempt: &Component) -> bool {
    other.epoch <= attempt.epoch && age(other) != age(attempt) && came_after(other, attempt)
}

/// A node that was in both was in `other` in a later life, or in a later ring of the same life.
fn came_after(other: &Component, attempt: &Component) -> bool {
    let later = |now: &Member, then: &Member| {
        let (life, ring) = (now.incarnation.cmp(&then.incarnation), other.ring.sequence);
        now.node == then.node && (life.is_gt() || life.is_eq() && ring > attempt.ring.sequence)
    };
    other.members.iter().any(|now| attempt.members.iter().any(|then| later(now, then)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use wire::{Incarnation, NodeId};

    /// A component of these nodes, each in this life.
    fn component(epoch: u64, ring: u64, members: &[(u32, u64)]) -> Component {
        let member = |(node, life): &(u32, u64)| Member {
            node: NodeId(*node),
            incarnation: Incarnation(*life),
        };
        let members: Vec<Member> = members.iter().map(member).collect();
        let ring = RingId { sequence: ring, representative: members[0].node };
        Component { epoch, ring, members }
    }

    fn at(component: &Component, sequence: u64) -> Place {
        Place { epoch: component.epoch, ring: component.ring, sequence }
    }

    /// The knowledge of these nodes, the first of them node 1.
    fn known(announced: &[(&Component, &[&Component])]) -> ComponentOrder {
        let announces = announced.iter().zip(1..).map(|((last, attempts), node)| {
            let attempts = attempts.iter().map(|attempt| (*attempt).clone()).collect();
            let announce = Announce {
                ring: RingId::default(),
                first_life: false,
                last: (*last).clone(),
                attempts,
                position: 0,
                replicas: Vec::new(),
                ahead: Vec::new(),
                address: None,
                recall: None,
                program: wire::Program::this("trial"),
                level: 0,
                extension: wire::Extension::default(),
                roster: Default::default(),
            };
            (Member { node: NodeId(node), incarnation: Incarnation(9) }, announce)
        });
        ComponentOrder::of(&announces.collect())
    }

    /// The simulator's seed 622 of the world of disks.
    #[test]
    fn what_others_did_after_they_had_forgotten_an_attempt_is_later() {
        let first = component(5, 90, &[(1, 1), (2, 1), (3, 1)]);
        let attempt = component(6, 100, &[(1, 1), (2, 1), (3, 1)]);
        let next = component(7, 110, &[(1, 1), (2, 1)]);
        let others = component(6, 10, &[(2, 2), (3, 2)]);
        let announced: [(&Component, &[&Component]); 3] =
            [(&first, &[&attempt, &next]), (&others, &[]), (&others, &[])];
        let component_order = known(&announced);
        let in_order = [at(&first, 80), at(&attempt, 3), at(&attempt, 9), at(&next, 2)];
        let in_order = [&in_order[..], &[at(&others, 1), Place::UNKNOWN]].concat();
        assert!(in_order.is_sorted_by(|one, other| component_order.is_after(*other, *one)));
        assert_eq!(component_order.latest(in_order.iter().copied().take(5)), Some(at(&others, 1)));
        assert!(component_order.is_void(&attempt) && component_order.is_void(&next));
        assert!(!component_order.is_void(&others) && !component_order.is_void(&first));
    }

    #[test]
    fn an_attempt_that_may_have_been_effective_is_not_void() {
        let first = component(5, 90, &[(1, 1), (2, 1), (3, 1)]);
        let attempt = component(6, 100, &[(1, 1), (2, 1), (3, 1)]);
        // Those who were here later knew of it,
        let later = component(7, 10, &[(2, 2), (3, 2)]);
        assert!(!known(&[(&first, &[&attempt]), (&later, &[])]).is_void(&attempt));
        // or were here before.
        let before = component(6, 95, &[(2, 1), (3, 1)]);
        let component_order = known(&[(&first, &[&attempt]), (&first, &[&before])]);
        assert!(!component_order.is_void(&attempt));
        assert!(component_order.is_after(at(&attempt, 1), at(&before, 50)));
        // If each of two is known to some only, the later one makes the other void, too.
        let after = component(6, 4, &[(2, 2), (3, 2)]);
        let component_order = known(&[(&first, &[&attempt]), (&first, &[&after])]);
        assert!(component_order.is_void(&attempt) && !component_order.is_void(&after));
    }

    /// A void attempt comes after all histories that its members brought to it.
    #[test]
    fn a_void_attempt_counts_from_the_last_that_is_not() {
        let first = component(4, 80, &[(1, 1), (2, 1), (3, 1)]);
        let second = component(5, 90, &[(2, 1), (3, 1)]);
        let attempt = component(6, 100, &[(1, 1), (2, 1), (3, 1)]);
        let others = component(6, 10, &[(2, 2), (3, 2)]);
        let announced: [(&Component, &[&Component]); 3] =
            [(&first, &[&attempt]), (&second, &[&attempt]), (&others, &[])];
        let component_order = known(&announced);
        assert!(component_order.is_after(at(&attempt, 1), at(&second, 99)));
    }
}
