//! The members know how far each other's disks are.

mod cluster;

use cluster::{Cluster, Tune, millis};
use steadfast_ring::Level;
use wire::ring::Message;

/// A member reports the messages on its disk once, to all; a member that missed the report asks.
#[test]
fn what_is_on_a_disk_is_told_and_can_be_asked_for() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.run(millis(1));
    let ring = cluster.ring(0).id();
    let sequence = cluster.ring(0).delivered();
    let member = cluster.ring(1).members()[1];
    let stored = |cluster: &Cluster| [0, 1, 2].map(|node| cluster.ring(node).stored(ring, member));
    cluster.counts.clear();
    cluster.tell_stored(1, sequence + 5);
    assert_eq!(stored(&cluster), [0, sequence, 0], "no more than was delivered");
    cluster.run(cluster.delay());
    assert_eq!(stored(&cluster), [sequence; 3]);
    assert_eq!(cluster.counts["stored"], 2);
    // It is told no second time, and the wire is as it was for everybody else.
    cluster.tell_stored(1, sequence);
    assert_eq!(cluster.counts["stored"], 2);

    cluster.multicast_at(Level::Held, 0, 0);
    cluster.run(millis(1));
    cluster.filter = |_, to, message| to == 2 && matches!(message, Message::Stored(_));
    cluster.tell_stored(1, sequence + 1);
    cluster.run(millis(1));
    assert_eq!(stored(&cluster), [sequence + 1, sequence + 1, sequence], "node 2 did not hear it");
    cluster.filter = |_, _, _| false;
    cluster.ask_stored(2);
    cluster.run(millis(1));
    assert_eq!(stored(&cluster), [sequence + 1; 3]);
}
