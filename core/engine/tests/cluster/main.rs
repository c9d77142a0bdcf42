//! Whole nodes in virtual time over a perfect network: one test per promise of
//! `docs/protocol/group.md`. Faults by the thousand are the simulator's job (`proof/sim`).

mod asks;
mod backups;
mod base;
mod bench;
mod cold;
mod comparing;
mod disk;
mod fake_disk;
mod former;
mod founding;
mod harness;
mod hung;
mod keys;
mod moves;
mod nested;
mod own;
mod parting;
mod passive;
mod poison;
mod ranks;
mod reads;
mod restyles;
mod shedding;
mod stale;
mod state_merge;
mod streams;
mod styles;
mod styles_on_disk;
mod tampered;
mod vault;
mod views;
mod voting;

use backups::{
    a_deposit_is_given_up_on_demand, a_deposit_outlives_changes_of_the_component,
    a_group_that_was_called_is_overwritten_on_demand_only, a_save_is_refused_with_what_to_do,
    a_save_outlives_a_change_of_the_component, a_saved_group_that_ended_goes_on_from_there,
    a_state_is_restored_in_another_cluster, nobody_begins_beside_a_deposit,
};
use base::Base;
use disk::what_was_answered_is_there_after_the_loss_of_all;
use harness::{Cluster, ms};
use moves::{
    a_move_is_refused_with_what_to_do, a_move_outlives_the_death_of_either_side,
    a_primary_moves_and_no_call_waits_for_it,
    moves_at_the_same_time_take_place_one_after_the_other,
    who_stops_hands_its_primary_over_before_it_goes,
};
use own::{
    a_node_calls_its_own_group_in_its_own_name, the_managers_group_is_not_there_for_clients,
};
use ranks::{
    clients_get_the_order_in_which_backups_are_ranked,
    what_hosts_tell_is_known_to_all_until_they_are_gone,
};
use restyles::{
    a_change_that_cannot_be_is_refused_with_what_to_do,
    a_group_goes_through_its_styles_while_it_is_called,
    a_style_outlives_the_death_of_who_ordered_it,
    changes_at_the_same_time_take_place_one_after_the_other,
};
use shedding::{
    a_host_refuses_calls_that_are_less_critical_and_no_others,
    what_a_host_was_told_ends_with_its_term_and_with_its_life, who_may_answer_instead_is_named,
    who_says_nothing_is_as_critical_as_its_group,
};
use steadfast_engine::ordering::InProcess;
use wire::client::{Outcome, Refusal};
use wire::ordered::{AckLevel, GroupOptions};

/// Tests of what must hold whatever orders the messages: once above the ring, once above the
/// sequencer of one process.
macro_rules! whatever_orders {
    ($($test:ident: $size:literal nodes),* $(,)?) => {
        mod above_the_ring {
            use super::harness::Cluster;
            $(#[test] fn $test() { super::$test(Cluster::new($size)); })*
        }
        mod above_a_sequencer {
            use super::harness::Cluster;
            $(#[test] fn $test() { super::$test(Cluster::in_process($size)); })*
        }
    };
}

/// The same, where large states are fetched by streams.
macro_rules! with_streams {
    ($($test:ident),* $(,)?) => {
        mod above_the_ring_with_streams {
            use super::harness::Cluster;
            use super::streams;
            use steadfast_engine::ordering::Ring;
            $(#[test] fn $test() { streams::$test(Cluster::<Ring>::streaming(5)); })*
        }
        mod above_a_sequencer_with_streams {
            use super::harness::Cluster;
            use super::streams;
            use steadfast_engine::ordering::InProcess;
            $(#[test] fn $test() { streams::$test(Cluster::<InProcess>::streaming(5)); })*
        }
    };
}

with_streams! {
    a_large_state_is_fetched_while_requests_flow,
    a_cold_groups_log_is_fetched,
    a_stream_that_breaks_is_replaced_by_chunks,
    a_state_comes_from_the_next_when_its_giver_dies,
    a_deposit_is_there_for_its_own_node,
    a_deposit_is_fetched_from_who_was_asked,
}

#[test]
fn above_the_ring_what_was_answered_is_there_after_the_loss_of_all() {
    what_was_answered_is_there_after_the_loss_of_all(Cluster::new_on_disk(5));
}

#[test]
fn above_a_sequencer_what_was_answered_is_there_after_the_loss_of_all() {
    what_was_answered_is_there_after_the_loss_of_all(Cluster::in_process_on_disk(5));
}

whatever_orders! {
    a_host_refuses_calls_that_are_less_critical_and_no_others: 5 nodes,
    what_a_host_was_told_ends_with_its_term_and_with_its_life: 5 nodes,
    who_may_answer_instead_is_named: 5 nodes,
    who_says_nothing_is_as_critical_as_its_group: 5 nodes,
    a_call_is_executed_by_every_replica_and_answered_by_the_primary: 5 nodes,
    a_retry_at_the_next_primary_gets_the_kept_reply: 5 nodes,
    a_minority_acknowledges_nothing_and_the_majority_goes_on: 5 nodes,
    a_group_cut_off_from_the_majority_goes_on_when_it_is_back: 5 nodes,
    a_killed_replica_comes_back_and_is_given_the_state_while_requests_flow: 5 nodes,
    a_clean_stop_hands_the_primary_over_without_a_time_out: 5 nodes,
    a_primary_moves_and_no_call_waits_for_it: 5 nodes,
    a_move_is_refused_with_what_to_do: 5 nodes,
    moves_at_the_same_time_take_place_one_after_the_other: 5 nodes,
    a_move_outlives_the_death_of_either_side: 5 nodes,
    who_stops_hands_its_primary_over_before_it_goes: 5 nodes,
    clients_get_the_order_in_which_backups_are_ranked: 5 nodes,
    what_hosts_tell_is_known_to_all_until_they_are_gone: 5 nodes,
    a_node_calls_its_own_group_in_its_own_name: 5 nodes,
    the_managers_group_is_not_there_for_clients: 5 nodes,
    a_group_goes_through_its_styles_while_it_is_called: 5 nodes,
    a_change_that_cannot_be_is_refused_with_what_to_do: 5 nodes,
    changes_at_the_same_time_take_place_one_after_the_other: 5 nodes,
    a_style_outlives_the_death_of_who_ordered_it: 5 nodes,
    a_saved_group_that_ended_goes_on_from_there: 5 nodes,
    a_state_is_restored_in_another_cluster: 5 nodes,
    a_group_that_was_called_is_overwritten_on_demand_only: 5 nodes,
    nobody_begins_beside_a_deposit: 5 nodes,
    a_deposit_is_given_up_on_demand: 5 nodes,
    a_deposit_outlives_changes_of_the_component: 5 nodes,
    a_save_is_refused_with_what_to_do: 5 nodes,
    a_save_outlives_a_change_of_the_component: 5 nodes,
}

fn a_call_is_executed_by_every_replica_and_answered_by_the_primary<O: Base>(
    mut cluster: Cluster<O>,
) {
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    cluster.run_for(ms(5));
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), ["a"]);
    }
    assert!(cluster.node(4).status().groups.iter().any(|group| group.name == "log"));
}

fn a_retry_at_the_next_primary_gets_the_kept_reply<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    cluster.kill(1);
    let other = cluster.connect_as(client, 2);
    let retry = cluster.call(other, "log", 1, "a");
    assert_eq!(cluster.reply(retry), Outcome::Ok("1:a".into()));
    assert_eq!(cluster.state(2, "log"), ["a"]);
    let next = cluster.call(other, "log", 2, "b");
    assert_eq!(cluster.reply(next), Outcome::Ok("2:b".into()));
}

#[test]
fn the_next_primary_knows_at_once_that_all_have_the_installation() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("log", &[3, 2, 4]);
    let client = cluster.client(3);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    // Node 1 installs: it alone gets the acknowledgements. Node 2 waits for them too.
    cluster.kill(3);
    let other = cluster.connect_as(client, 2);
    let retry = cluster.call(other, "log", 1, "a");
    assert_eq!(cluster.reply(retry), Outcome::Ok("1:a".into()));
    assert!(cluster.waited(retry) < ms(5), "{:?}", cluster.waited(retry));
}

#[test]
fn a_client_that_comes_to_a_backup_learns_the_targets() {
    let mut cluster = Cluster::in_process(3);
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(2);
    cluster.forget_view(client);
    let call = cluster.call(client, "log", 1, "a");
    let reply = cluster.whole_reply(call);
    assert_eq!(reply.outcome, Outcome::NotPrimary);
    let targets = reply.targets.expect("the client knew no view");
    assert_eq!(targets.nodes.iter().map(|t| t.node.0).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_client_that_cannot_reach_a_living_primary_is_served_by_a_backup() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(3);
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    cluster.run_for(ms(5));
    assert_eq!(cluster.state(1, "log"), ["a"]);
}

#[test]
fn a_backup_answers_what_the_primary_has_ordered() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("log", &[1, 2, 3]);
    let at_1 = cluster.client(1);
    let call = cluster.call(at_1, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    cluster.run_for(ms(1));
    // The connection breaks before the reply arrives; the primary lives.
    let at_3 = cluster.connect_as(at_1, 3);
    let retry = cluster.call(at_3, "log", 1, "a");
    assert_eq!(cluster.reply(retry), Outcome::Ok("1:a".into()));
    // A member that does not hold the token learns with the next heartbeat what others hold.
    assert!(cluster.waited(retry) < ms(30), "{:?}", cluster.waited(retry));
    assert_eq!(cluster.state(3, "log"), ["a"]);
}

#[test]
fn a_call_at_a_backup_waits_for_the_view_without_the_dead_primary() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(2);
    cluster.learn_view(client, "log");
    cluster.kill(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    assert!(
        cluster.waited(call) < ms(5),
        "a refused datagram tells at once: {:?}",
        cluster.waited(call)
    );
}

fn a_killed_replica_comes_back_and_is_given_the_state_while_requests_flow<O: Base>(
    mut cluster: Cluster<O>,
) {
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(2);
    cluster.kill(1);
    cluster.run_for(ms(5));
    cluster.restart(1);
    cluster.host_on_later("log", 1);
    let big = "x".repeat(100_000);
    for number in 1..=40 {
        let call = cluster.call(client, "log", number, &big);
        assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
    }
    cluster.run_until_synced("log", 3);
    cluster.run_for(ms(5));
    assert_eq!(cluster.state(1, "log"), cluster.state(2, "log"));
    assert_eq!(cluster.state(1, "log").len(), 40);
    // It has the sessions too: alone, it answers a retry from them.
    cluster.kill(2);
    cluster.kill(3);
    let at_1 = cluster.connect_as(client, 1);
    let retry = cluster.call(at_1, "log", 40, &big);
    assert_eq!(cluster.reply(retry), Outcome::Ok(format!("40:{big}").into()));
    assert_eq!(cluster.state(1, "log").len(), 40);
}

fn a_minority_acknowledges_nothing_and_the_majority_goes_on<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    let at_1 = cluster.client(1);
    let at_3 = cluster.client(3);
    cluster.partition(&[1, 2]);
    let lost = cluster.call(at_1, "log", 1, "lost");
    cluster.run_for(ms(300));
    assert!(!cluster.is_answered(lost), "nobody here knows what the others made of it");
    let late = cluster.call(at_1, "log", 2, "late");
    assert_eq!(cluster.reply(late), Outcome::NoReplica);
    let kept = cluster.call(at_3, "log", 1, "kept");
    assert_eq!(cluster.reply(kept), Outcome::Ok("1:kept".into()));
    cluster.heal();
    cluster.run_until_synced("log", 3);
    // The client of "lost" may still be waiting when the parts meet: then it is ordered after all.
    let state = cluster.state(1, "log");
    assert!(state == ["kept"] || state == ["kept", "lost"], "{state:?}");
    cluster.run_for(ms(20));
    assert_eq!(cluster.state(2, "log"), cluster.state(1, "log"));
    assert_eq!(cluster.state(3, "log"), cluster.state(1, "log"));
}

fn a_group_cut_off_from_the_majority_goes_on_when_it_is_back<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2]);
    let at_1 = cluster.client(1);
    let call = cluster.call(at_1, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    cluster.partition(&[1, 2]);
    cluster.run_for(ms(300));
    let at_3 = cluster.client(3);
    let call = cluster.call(at_3, "log", 1, "b");
    assert_eq!(cluster.reply(call), Outcome::NoReplica);
    cluster.heal();
    cluster.run_until_synced("log", 2);
    let call = cluster.call(at_1, "log", 2, "c");
    assert_eq!(cluster.reply(call), Outcome::Ok("2:c".into()));
}

fn a_clean_stop_hands_the_primary_over_without_a_time_out<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    let before = cluster.call(client, "log", 1, "a");
    cluster.leave(1);
    assert_eq!(cluster.reply(before), Outcome::Ok("1:a".into()));
    cluster.run_for(ms(10));
    assert!(cluster.has_left(1));
    let other = cluster.client(2);
    let call = cluster.call(other, "log", 1, "b");
    assert_eq!(cluster.reply(call), Outcome::Ok("2:b".into()));
    assert!(cluster.waited(call) < ms(5));
}

#[test]
fn a_replica_with_other_options_is_refused() {
    let mut cluster = Cluster::in_process(3);
    cluster.host_on("log", &[1]);
    let options = GroupOptions { ack: AckLevel::All, ..GroupOptions::default() };
    cluster.host_with("log", 2, options);
    cluster.run_for(ms(20));
    assert!(cluster.was_refused(2, "log"));
}

#[test]
fn a_call_to_a_group_whose_first_replica_is_on_its_way_waits_for_it() {
    let mut cluster = Cluster::in_process(3);
    cluster.host_on_later("log", 1);
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
}

#[test]
fn a_client_that_starts_together_with_the_cluster_finds_the_group() {
    let mut cluster = Cluster::<InProcess>::starting(3);
    cluster.host_on_later("log", 2);
    let client = cluster.client(1);
    cluster.forget_view(client);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::NotPrimary, "at 2, and not: no such group");
}

#[test]
fn an_unknown_group_and_an_oversize_body_are_refused_with_the_reason() {
    let mut cluster = Cluster::in_process(3);
    cluster.host_on("log", &[1]);
    let client = cluster.client(1);
    let call = cluster.call(client, "nowhere", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::NoSuchGroup);
    let call = cluster.call(client, "log", 2, &"x".repeat(wire::limits::MAX_BODY + 1));
    assert!(matches!(cluster.reply(call), Outcome::Refused(Refusal::TooLarge, _)));
}

#[test]
fn a_stopped_node_finds_itself_excluded_and_serves_again() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(2);
    cluster.learn_view(client, "log");
    cluster.pause(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    assert!(cluster.waited(call) < ms(250), "{:?}", cluster.waited(call));
    cluster.resume(1);
    cluster.run_until_synced("log", 3);
    assert_eq!(cluster.state(1, "log"), ["a"]);
}

#[test]
fn a_replica_that_is_given_up_before_it_has_come_does_not_stay() {
    let mut cluster = Cluster::in_process(3);
    cluster.host_on("log", &[3]);
    cluster.host_on_later("log", 2);
    cluster.host_on_later("log", 1);
    cluster.unhost("log", 1);
    cluster.run_for(ms(50));
    assert_eq!(cluster.replicas("log"), [3, 2]);
}

#[test]
fn the_only_replica_with_the_state_gives_it_before_it_goes() {
    let mut cluster = Cluster::new(3);
    cluster.host_on("log", &[1]);
    let client = cluster.client(1);
    for number in 1..=5 {
        let call = cluster.call(client, "log", number, &"x".repeat(500_000));
        assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
    }
    cluster.host_on_later("log", 2);
    cluster.run_for(wire::Duration::from_micros(300));
    assert!(cluster.state(2, "log").is_empty(), "it is on its way");
    cluster.unhost("log", 1);
    cluster.run_for(ms(100));
    assert_eq!(cluster.replicas("log"), [2]);
    assert_eq!(cluster.state(2, "log").len(), 5);
}
