//! Logs of requests, as they go to disk.

use proptest::collection::vec;
use proptest::prelude::*;
use wire::NodeId;
use wire::ordered::{Blamed, LoggedState};

use super::{bytes, nested_end, ordered_request};

pub fn logged_state() -> impl Strategy<Value = LoggedState> {
    let blamed = (any::<u32>(), vec(1..9_u32, 0..4), any::<bool>(), any::<bool>()).prop_map(
        |(number, nodes, answered, tried)| {
            let tried_at = tried.then_some(NodeId(2));
            let deaths = nodes.into_iter().map(NodeId).collect();
            Blamed { number: number.into(), deaths, answered, tried_at }
        },
    );
    let log = (vec(ordered_request(), 0..5), vec((any::<u64>(), nested_end()), 0..3));
    (any::<u32>(), any::<u32>(), bytes(64), log, vec(blamed, 0..3)).prop_map(
        |(covered, cut, checkpoint, (log, mut ends), blamed)| {
            let (covered, length) = (u64::from(covered), log.len() as u64);
            let logged = covered + length;
            let cut = (covered + u64::from(cut % 5)).min(logged);
            // Each is behind one of the requests.
            ends.retain(|_| length > 0);
            ends.iter_mut().for_each(|(after, _)| *after = covered + 1 + *after % length);
            let (proven, poisoned) = (logged / 2, vec![(cut / 2, vec![NodeId(3)])]);
            LoggedState { logged, cut, proven, poisoned, checkpoint, log, ends, blamed }
        },
    )
}
