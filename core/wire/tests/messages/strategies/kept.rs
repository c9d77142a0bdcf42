//! The data that a node keeps on its disk.

use proptest::collection::vec;
use proptest::prelude::*;
use wire::Incarnation;
use wire::kept::{NodeRecord, Recollection};

use super::{component, group, place};

/// Any record that a node keeps of itself.
pub fn node_record() -> impl Strategy<Value = NodeRecord> {
    prop_oneof![
        any::<u64>().prop_map(|since| NodeRecord::Since(Incarnation(since))),
        (component(), vec(group(), 0..3), any::<bool>(), any::<u8>()).prop_map(
            |(component, groups, volatile, level)| {
                NodeRecord::Installed { component, groups, volatile, level }
            }
        ),
        any::<u8>().prop_map(NodeRecord::Level),
        Just(NodeRecord::Effective),
        group().prop_map(NodeRecord::Changed),
        any::<bool>().prop_map(NodeRecord::Volatile),
    ]
}

/// Any snapshot of them.
pub fn recollection() -> impl Strategy<Value = Recollection> {
    let groups = vec((group(), place()), 0..3);
    let figures = (any::<u64>(), any::<bool>(), any::<u8>());
    (figures, component(), vec(component(), 0..3), groups).prop_map(
        |((since, volatile, level), last, attempts, groups)| Recollection {
            since: Incarnation(since),
            last,
            attempts,
            groups,
            volatile,
            level,
        },
    )
}
