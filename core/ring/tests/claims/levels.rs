//! Agreed and safe delivery.

use super::*;

/// Totem (TOCS 1995), section 2, and EVS specification 7: when a member delivers a safe message in
/// a regular configuration, all of that configuration have it. The sender knows after one round
/// trip.
#[test]
fn a_safe_message_is_delivered_one_round_trip_after_an_agreed_one() {
    let mut cluster = Cluster::started(4, Tune::default());
    cluster.multicast(1, 0);
    cluster.run(millis(1));
    let before = deliveries(&cluster, 1);
    cluster.multicast_safe(1);
    assert_eq!(deliveries(&cluster, 1), before, "nobody is known to have it");
    cluster.run(cluster.delay() * 2);
    assert_eq!(deliveries(&cluster, 1), before + 1, "one round trip later all are");
    assert_eq!(deliveries(&cluster, 0), before, "and nobody else can know that");
    cluster.run(cluster.delay());
    assert!((0..4).all(|life| deliveries(&cluster, life) == before + 1));
}

/// One Stable to each member, however many safe messages and acknowledgements there are; and none
/// while data goes out that says the same.
#[test]
fn stability_is_told_once_not_for_each_acknowledgement() {
    let mut cluster = Cluster::started(4, Tune::default());
    cluster.multicast(1, 0);
    cluster.run(millis(1));
    cluster.counts.clear();
    for _ in 0..10 {
        cluster.multicast_safe(1);
    }
    cluster.run(millis(1));
    assert_eq!(cluster.counts["stable"], 3, "{:?}", cluster.counts);
    cluster.counts.clear();
    for _ in 0..40 {
        cluster.multicast_safe(1);
        cluster.run(cluster.delay() / 2);
    }
    cluster.run(millis(1));
    assert_eq!(cluster.counts["stable"], 3, "only the last: {:?}", cluster.counts);
}

/// There is one order: an agreed message waits for a safe one before it, and not for one behind.
#[test]
fn levels_do_not_change_the_order() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.multicast(0, 0);
    cluster.run(millis(1));
    let before = deliveries(&cluster, 0);
    cluster.multicast(0, 0);
    cluster.multicast_safe(0);
    cluster.multicast(0, 0);
    assert_eq!(deliveries(&cluster, 0), before + 1, "only the first can be delivered");
    cluster.run(cluster.delay());
    assert_eq!(deliveries(&cluster, 1), before + 1);
    cluster.run(millis(1));
    assert!((0..3).all(|life| deliveries(&cluster, life) == before + 3));
    check::all(&cluster);
}

/// Without parking a safe message needs what the paper's needs: the token tells who has what.
#[test]
fn without_parking_stability_comes_with_the_token() {
    let mut cluster = Cluster::started(3, Tune { parking: false, ..Tune::default() });
    let before = deliveries(&cluster, 0);
    cluster.multicast_safe(1);
    cluster.run(cluster.delay() * 3 * 3);
    assert!((0..3).all(|life| deliveries(&cluster, life) == before + 1), "within three rotations");
    assert_eq!(cluster.counts.get("ack"), None, "nobody acknowledges: {:?}", cluster.counts);
    assert_eq!(cluster.counts.get("want"), None);
}

/// A slow member holds up safe messages, and what comes after them, for as long as it is silent;
/// then it is left out, and the rest deliver them in the transitional configuration.
#[test]
fn a_silent_member_holds_up_safe_messages_until_it_is_left_out() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.world.refusals = false;
    cluster.multicast(0, 0);
    cluster.run(millis(1));
    cluster.crash(2);
    let before = deliveries(&cluster, 1);
    cluster.multicast_safe(0);
    cluster.multicast(0, 0);
    cluster.run(millis(5));
    assert_eq!(deliveries(&cluster, 1), before);
    cluster.run_until(200, |cluster| cluster.is_one_ring() && cluster.ring(0).members().len() == 2);
    assert_eq!(deliveries(&cluster, 1), before + 2);
    check::all(&cluster);
}
