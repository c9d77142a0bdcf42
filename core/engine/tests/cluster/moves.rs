//! Primaries that move.

use steadfast_engine::{Event, MoveError};
use wire::NodeId;
use wire::client::Outcome;

use crate::base::Base;
use crate::harness::{Cluster, ms};

pub fn a_primary_moves_and_no_call_waits_for_it<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    cluster.learn_view(client, "log");
    // Node 4 has no replica, and may be asked all the same.
    cluster.move_primary(4, "log", 3).expect("begun");
    let before = cluster.call(client, "log", 1, "before");
    cluster.moved(4).expect("moved");
    cluster.run_for(ms(1));
    assert_eq!(cluster.replicas("log"), [3, 1, 2], "who was primary is the next");
    // The client has not heard of it: who was primary serves it once more, and tells it.
    let late = cluster.call(client, "log", 2, "late");
    let reply = cluster.whole_reply(late);
    assert_eq!(reply.outcome, Outcome::Ok("2:late".into()));
    let targets = reply.targets.expect("the targets are news");
    assert_eq!(targets.nodes[0].node, NodeId(3));
    assert_eq!(cluster.reply(before), Outcome::Ok("1:before".into()));
    let other = cluster.connect_as(client, 3);
    cluster.learn_view(other, "log");
    let next = cluster.call(other, "log", 3, "next");
    assert_eq!(cluster.reply(next), Outcome::Ok("3:next".into()));
    for call in [before, late, next] {
        assert!(cluster.waited(call) < ms(2), "{:?}", cluster.waited(call));
    }
    cluster.run_for(ms(5));
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), ["before", "late", "next"]);
    }
    let tells = |event: &Event| matches!(event, Event::Moved { from, to, .. } if (from.node.0, to.node.0) == (1, 3));
    assert!((1..=5).all(|node| cluster.told(node, tells)), "everybody is told");
}

pub fn a_move_is_refused_with_what_to_do<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2]);
    let view = cluster.node(1).status().groups[0].view;
    let mut ask = |group, to| {
        cluster.move_primary(2, group, to).expect("begun");
        cluster.moved(2)
    };
    assert_eq!(ask("log", 1), Ok(view), "it is there already");
    assert_eq!(ask("log", 4), Err(MoveError::NotAReplica(NodeId(4))));
    assert_eq!(ask("lag", 1), Err(MoveError::NoSuchGroup));
    assert_eq!(cluster.replicas("log"), [1, 2]);
    cluster.move_primary(5, "log", 2).expect("begun");
    let again = cluster.move_primary(5, "log", 1);
    assert_eq!(again, Err(MoveError::UnderWay(NodeId(2))));
    // A target that is held up does not take over, and the asker is not kept waiting.
    cluster.moved(5).expect("moved");
    cluster.partition(&[4, 5]);
    cluster.run_for(ms(2_000));
    cluster.move_primary(4, "log", 1).expect("begun");
    assert_eq!(cluster.moved(4), Err(MoveError::NoQuorum));
}

pub fn moves_at_the_same_time_take_place_one_after_the_other<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    cluster.move_primary(4, "log", 2).expect("begun");
    cluster.move_primary(5, "log", 3).expect("begun");
    let (first, second) = (cluster.moved(4).expect("moved"), cluster.moved(5).expect("moved"));
    assert_ne!(first, second, "each has a view of its own");
    cluster.run_for(ms(2));
    let last = if first > second { 2 } else { 3 };
    assert!((1..=5).all(|node| cluster.primary(node, "log") == Some(last)));
}

pub fn a_move_outlives_the_death_of_either_side<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    // The node that is to take over dies: the move has no target.
    cluster.move_primary(4, "log", 3).expect("begun");
    cluster.kill(3);
    assert!(matches!(cluster.moved(4), Err(MoveError::NotAReplica(_)) | Ok(_)));
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    // The primary dies: the proposal is ordered anew on the next ring, if necessary.
    cluster.restart(3);
    cluster.host_on_later("log", 3);
    cluster.run_until_synced("log", 3);
    cluster.move_primary(4, "log", 3).expect("begun");
    cluster.kill(1);
    cluster.moved(4).expect("moved");
    let client = cluster.client(3);
    let call = cluster.call(client, "log", 1, "b");
    assert_eq!(cluster.reply(call), Outcome::Ok("2:b".into()));
}

pub fn who_stops_hands_its_primary_over_before_it_goes<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    cluster.learn_view(client, "log");
    cluster.leave(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()), "it serves until it is relieved");
    cluster.run_for(ms(600));
    assert!(cluster.has_left(1));
    let moved = |event: &Event| matches!(event, Event::Moved { to, .. } if to.node.0 == 2);
    assert!(cluster.told(2, moved));
    assert_eq!(cluster.primary(2, "log"), Some(2));
}
