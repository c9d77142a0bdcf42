//! The data that a node keeps on its disk.

use bytes::Bytes;
use wire::Incarnation;
use wire::kept::{NodeRecord, Recollection};
use wire::ordered::Component;

use super::{PLACE, RING, group, member};

/// A record of each kind, and the snapshot.
pub fn kept() -> Vec<(&'static str, Bytes)> {
    let component = || Component { epoch: 5, ring: RING, members: vec![member(1), member(2)] };
    let installed = NodeRecord::Installed {
        component: component(),
        groups: vec![group()],
        volatile: true,
        level: 2,
    };
    let recollection = Recollection {
        since: Incarnation(0x71),
        last: component(),
        attempts: vec![component()],
        groups: vec![(group(), PLACE)],
        volatile: true,
        level: 2,
    };
    vec![
        ("since", NodeRecord::Since(Incarnation(0x71)).encode()),
        ("installed", installed.encode()),
        ("effective", NodeRecord::Effective.encode()),
        ("changed", NodeRecord::Changed(group()).encode()),
        ("volatile", NodeRecord::Volatile(true).encode()),
        ("level", NodeRecord::Level(2).encode()),
        ("recollection", recollection.encode()),
    ]
}
