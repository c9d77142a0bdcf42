//! The cluster's key changes while all goes on, and nobody is locked out who is not said to be.

use steadfast_engine::ordering::Ring;
use steadfast_engine::{Event, KeyError, KeyStatus};
use wire::NodeId;
use wire::client::Outcome;

use crate::harness::{Cluster, ms};
use crate::vault::key_name;

fn status(cluster: &Cluster<Ring>, node: u32) -> KeyStatus {
    cluster.node(node).status().keys.expect("its datagrams are sealed")
}

fn lacking(cluster: &Cluster<Ring>, node: u32) -> Vec<u32> {
    let change = status(cluster, node).change.expect("a change is under way");
    change.lacking.iter().map(|node| node.0).collect()
}

/// Everybody has this key and no other.
fn changed_to(cluster: &Cluster<Ring>, nodes: &[u32], number: u8) {
    for node in nodes {
        assert_eq!(cluster.keys(*node), [number], "node {node}");
        let status = status(cluster, *node);
        assert_eq!((status.sealing, status.change), (key_name(number), None), "node {node}");
    }
}

#[test]
fn a_key_changes_while_calls_go_on() {
    let mut cluster = Cluster::new(4);
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    let ring = cluster.node(1).status().ring.id;
    let call = |cluster: &mut Cluster, number| {
        let call = cluster.call(client, "log", number, "x");
        assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
    };
    call(&mut cluster, 1);
    cluster.change_key(3, 2).unwrap();
    for number in 2..50 {
        call(&mut cluster, number);
    }
    cluster.run_for(ms(100));
    changed_to(&cluster, &[1, 2, 3, 4], 2);
    for node in 1..=4 {
        for event in [Event::KeyOffered, Event::KeySwitched, Event::KeyRetired] {
            assert!(cluster.saw(node, &event(key_name(2))));
        }
    }
    assert_eq!(cluster.unopened(), 0, "not one datagram was lost");
    assert_eq!(cluster.node(1).status().ring.id, ring, "nor the ring");
    call(&mut cluster, 50);
    cluster.change_key(1, 1).unwrap();
    cluster.run_for(ms(100));
    changed_to(&cluster, &[1, 2, 3, 4], 1);
}

#[test]
fn nobody_seals_with_a_key_that_somebody_has_not_written_down() {
    let mut cluster = Cluster::new(3);
    cluster.vault(2).held = true;
    cluster.change_key(1, 2).unwrap();
    cluster.run_for(ms(500));
    assert_eq!(lacking(&cluster, 3), [2], "and all know who is waited for");
    assert_eq!(cluster.keys(1), [2, 1]);
    assert_eq!(cluster.change_key(1, 3), Err(KeyError::UnderWay(2)));
    cluster.release_disk(2);
    cluster.run_for(ms(100));
    changed_to(&cluster, &[1, 2, 3], 2);
    assert_eq!(cluster.unopened(), 0);
}

#[test]
fn a_change_waits_for_a_node_that_is_away_and_ends_when_it_comes() {
    let mut cluster = Cluster::new(3);
    cluster.kill(3);
    cluster.run_for(ms(300));
    cluster.change_key(1, 2).unwrap();
    cluster.run_for(ms(1_000));
    assert_eq!(lacking(&cluster, 2), [3]);
    cluster.restart(3);
    cluster.run_for(ms(1_000));
    changed_to(&cluster, &[1, 2, 3], 2);
}

#[test]
fn a_change_outlives_the_node_that_began_it() {
    for delay in [0, 20, 50, 70, 100, 150, 200, 300, 400] {
        let mut cluster = Cluster::new(4);
        cluster.change_key(2, 2).unwrap();
        cluster.run_for(core::time::Duration::from_micros(delay));
        cluster.kill(2);
        cluster.run_for(ms(1_000));
        let begun = cluster.keys(1).contains(&2);
        if begun && cluster.keys(1) != [2] {
            assert_eq!(lacking(&cluster, 4), [2], "after {delay} µs");
        }
        cluster.restart(2);
        cluster.run_for(ms(1_000));
        changed_to(&cluster, &[1, 2, 3, 4], if begun { 2 } else { 1 });
        assert_eq!(cluster.node(2).status().ring.members.len(), 4);
    }
}

#[test]
fn whoever_crashes_in_the_middle_comes_back_with_what_it_had_written() {
    for held_stage in 0..2 {
        let mut cluster = Cluster::new(3);
        if held_stage == 0 {
            cluster.vault(3).held = true;
            cluster.change_key(1, 2).unwrap();
        } else {
            // Node 3 has the key, and is to seal with it.
            cluster.vault(2).held = true;
            cluster.change_key(1, 2).unwrap();
            cluster.run_for(ms(10));
            cluster.vault(3).held = true;
            cluster.release_disk(2);
        }
        cluster.run_for(ms(10));
        cluster.kill(3);
        cluster.vault(3).crash();
        cluster.run_for(ms(500));
        assert_eq!(lacking(&cluster, 1), [3]);
        cluster.restart(3);
        cluster.run_for(ms(1_000));
        changed_to(&cluster, &[1, 2, 3], 2);
    }
}

#[test]
fn a_change_that_is_given_up_leaves_the_old_key_alone() {
    let mut cluster = Cluster::new(3);
    cluster.vault(2).held = true;
    cluster.change_key(1, 2).unwrap();
    cluster.run_for(ms(10));
    assert_eq!(cluster.ask(3, |stack, now| stack.abort_key_change(now)), Ok(()));
    cluster.run_for(ms(10));
    cluster.release_disk(2);
    cluster.run_for(ms(10));
    changed_to(&cluster, &[1, 2, 3], 1);
    assert!(cluster.saw(2, &Event::KeyAborted(key_name(2))));
    let nothing = cluster.ask(3, |stack, now| stack.abort_key_change(now));
    assert_eq!(nothing, Err(KeyError::NoChange));
    cluster.change_key(3, 2).unwrap();
    cluster.run_for(ms(100));
    changed_to(&cluster, &[1, 2, 3], 2);
}

#[test]
fn by_force_a_change_ends_without_the_absent_who_need_the_new_key() {
    let mut cluster = Cluster::new(4);
    cluster.kill(4);
    cluster.run_for(ms(300));
    cluster.change_key(1, 2).unwrap();
    cluster.run_for(ms(100));
    assert_eq!(lacking(&cluster, 1), [4]);
    assert_eq!(cluster.ask(2, |stack, now| stack.force_key_change(now)), Ok(()));
    cluster.run_for(ms(100));
    changed_to(&cluster, &[1, 2, 3], 2);
    let ring = cluster.node(1).status().ring.id;
    cluster.restart(4);
    cluster.run_for(ms(1_000));
    assert_eq!(cluster.node(1).status().ring.id, ring, "who has the old key disturbs nobody");
    assert!(cluster.unopened() > 0);
    cluster.kill(4);
    cluster.vault(4).keys = vec![key_name(2)];
    cluster.restart(4);
    cluster.run_for(ms(1_000));
    assert_eq!(cluster.node(1).status().ring.members.len(), 4);
    changed_to(&cluster, &[1, 2, 3, 4], 2);
}

#[test]
fn a_minority_cannot_change_the_key() {
    let mut cluster = Cluster::new(3);
    cluster.partition(&[3]);
    cluster.run_for(ms(500));
    assert_eq!(cluster.change_key(3, 2), Err(KeyError::NoQuorum));
    assert_eq!(cluster.change_key(1, 1), Err(KeyError::NumberTaken(1)));
    cluster.change_key(1, 2).unwrap();
    cluster.run_for(ms(500));
    cluster.heal();
    cluster.run_for(ms(1_000));
    changed_to(&cluster, &[1, 2, 3], 2);
    assert_eq!(status(&cluster, 3).change, None);
    assert!(cluster.node(3).status().ring.members.iter().any(|m| m.node == NodeId(1)));
}

/// All crash between the stages: their files say where to go on, and they do not agree.
#[test]
fn nodes_with_different_files_agree_on_the_key_of_their_first_component() {
    let mut cluster = Cluster::new(3);
    cluster.vault(1).held = true;
    cluster.change_key(2, 2).unwrap();
    cluster.run_for(ms(10));
    for node in 1..=3 {
        cluster.kill(node);
    }
    cluster.vault(3).keys = vec![key_name(1), key_name(2)];
    cluster.vault(1).keys = vec![key_name(2), key_name(1)];
    cluster.vault(1).crash();
    for node in 1..=3 {
        cluster.restart(node);
    }
    cluster.run_for(ms(2_000));
    let sealing = status(&cluster, 1).sealing;
    for node in 1..=3 {
        assert_eq!(cluster.vault(node).sealing(), sealing, "node {node}");
    }
    let other = if sealing == key_name(1) { 2 } else { 1 };
    cluster.change_key(3, other).unwrap();
    cluster.run_for(ms(100));
    changed_to(&cluster, &[1, 2, 3], other);
}
