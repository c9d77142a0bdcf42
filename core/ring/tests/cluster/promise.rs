//! A recovery that one member finished, and the others did not: what it delivered binds them.

use wire::ring::Message;

use super::{Cluster, Seen, Tune, check, millis};

/// Node 3 sends a message that nobody gets, and dies. Node 1 sends one after it. In the recovery
/// without node 3 all tell that they have node 1's message; node 1 is the first to know that all
/// do, installs the ring, delivers its message after the gap, and dies too. Nodes 0 and 2 form
/// their ring without it, and owe it its message.
pub fn run(tune: Tune) -> Cluster {
    let mut cluster = Cluster::started(4, tune);
    cluster.multicast(3, 0);
    cluster.run(millis(1));
    cluster.filter = |from, _, message| from == 3 && matches!(message, Message::Data(_));
    cluster.multicast(3, 0);
    cluster.multicast(1, 0);
    cluster.run_until(5, |cluster| cluster.ring(1).holds_token());
    cluster.crash(3);
    cluster.filter = |from, _, message| {
        from == 1
            && match message {
                Message::Token(token) => token.received == 0b111,
                Message::Data(data) => data.origin.is_none() && data.ring.sequence > 4_001,
                _ => false,
            }
    };
    let first = cluster.ring(1).id();
    cluster.run_until(100, |cluster| cluster.ring(1).id() != first);
    assert_eq!(cluster.ring(1).members().len(), 3);
    assert!(cluster.ring(0).id() == first && cluster.ring(2).id() == first);
    cluster.crash(1);
    cluster.run_until(100, |cluster| cluster.ring(0).members().len() == 2 && cluster.is_one_ring());
    check::all(&cluster);
    for life in [0, 1, 2] {
        let owed = cluster.lives[life].seen.iter().any(|seen| {
            matches!(seen, Seen::Delivery(d) if d.sender == cluster.lives[1].member && !d.contiguous)
        });
        assert!(owed, "{} delivers what was promised to node 1", cluster.lives[life].member);
    }
    cluster
}
