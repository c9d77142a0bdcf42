//! Binding: from any node to the group's targets, and what is said when that fails.

use std::time::Duration;

use wire::VersionRange;
use wire::client::Outcome;

use super::cluster::{Cluster, GROUP, LATENCY, Manner, address, ms, targets};
use crate::{CallError, Event, Trouble};

#[test]
fn any_node_leads_to_the_primary_and_the_second_target_is_kept_warm() {
    let mut cluster = Cluster::new(5);
    assert!(cluster.finish(ms(1_000)).is_ok());
    assert_eq!(cluster.binds.len(), 1);
    assert_eq!(cluster.binds[0].1, address(5));
    assert_eq!(cluster.path(1), [address(1)]);
    assert!(cluster.is_connected(1) && cluster.is_connected(2) && !cluster.is_connected(3));
}

#[test]
fn a_bound_group_costs_one_round_trip_for_each_call() {
    let mut cluster = Cluster::new(3);
    cluster.finish(ms(1_000)).unwrap();
    let before = cluster.now;
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.now - before, LATENCY * 2);
}

#[test]
fn a_refusing_address_costs_no_time_and_a_silent_one_a_tenth_of_a_second() {
    let mut cluster = Cluster::given(3, &[1, 2, 3]);
    let first = cluster.session.links.given[0];
    let second = cluster.session.links.given[1];
    cluster.nodes.get_mut(&first).unwrap().up = false;
    cluster.nodes.get_mut(&second).unwrap().mute = true;
    let third = cluster.session.links.given[2].ip().to_string().pop().unwrap();
    cluster.all_say(targets(1, &[third.to_digit(10).unwrap()]));
    let before = cluster.now;
    cluster.finish(ms(1_000)).unwrap();
    let dialled: Vec<_> = cluster.dials.iter().map(|(_, to)| *to).take(3).collect();
    assert_eq!(dialled, cluster.session.links.given);
    assert!(cluster.now - before < ms(102), "{:?}", cluster.now - before);
}

#[test]
fn without_any_node_the_error_names_each_address_and_what_it_did() {
    let mut cluster = Cluster::given(2, &[1, 2]);
    cluster.node(1).up = false;
    cluster.node(2).mute = true;
    let before = cluster.now;
    let error = cluster.finish(ms(2_500)).unwrap_err();
    assert_eq!(cluster.now - before, ms(2_500), "it tries until the deadline");
    assert!(matches!(error, CallError::Unreachable(_)));
    let text = error.to_string();
    assert!(text.contains("10.0.0.1:7100 does not accept connections"), "{text}");
    assert!(text.contains("10.0.0.2:7100 does not answer"), "{text}");
}

#[test]
fn clients_begin_with_different_addresses() {
    let first = |seed| {
        let addresses = (1..=5).map(address).collect();
        let (client, hedging) = (wire::ClientId(seed), crate::Hedging::OFF);
        let config = crate::Config { hedging, ..crate::Config::new(client, addresses, seed) };
        crate::Session::new(config, wire::Time::ZERO).links.given[0]
    };
    let firsts: std::collections::BTreeSet<_> = (0..40).map(first).collect();
    assert_eq!(firsts.len(), 5);
}

#[test]
fn a_connected_node_that_does_not_answer_a_question_is_dropped() {
    let mut cluster = Cluster::new(1);
    cluster.finish(ms(1_000)).unwrap();
    cluster.node(1).mute = true;
    let call = cluster.call_group("other", ms(3_000));
    cluster.run(ms(2_200));
    let lost = Event::Lost { address: address(1), trouble: Trouble::Silent };
    assert!(cluster.events.contains(&lost));
    assert!(matches!(cluster.result(call), Err(CallError::Unreachable(_))));
    assert!(!cluster.session.groups.contains_key(&wire::GroupId::of("other")), "it is forgotten");
}

#[test]
fn a_group_that_is_gone_and_comes_back_goes_on_with_its_numbers() {
    let mut cluster = Cluster::new(1);
    cluster.finish(ms(1_000)).unwrap();
    cluster.node(1).bound = None;
    cluster.node(1).manner = Manner::Answer(Outcome::NoSuchGroup, None);
    assert_eq!(cluster.finish(ms(1_000)), Err(CallError::NoSuchGroup(GROUP.into())));
    cluster.node(1).bound = Some(targets(1, &[1]));
    cluster.node(1).manner = Manner::ok();
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.requests.last().unwrap().2.number, 3, "no number is used twice");
}

#[test]
fn a_node_that_comes_back_is_found() {
    let mut cluster = Cluster::new(1);
    cluster.node(1).up = false;
    let call = cluster.call(ms(5_000));
    cluster.run(ms(2_000));
    cluster.node(1).up = true;
    cluster.run(ms(700));
    assert!(cluster.done[&call].1.is_ok(), "dials go on, at most half a second apart");
    let dials = cluster.dials.len();
    assert!(dials < 20, "{dials} dials in two seconds");
}

#[test]
fn an_unknown_group_is_told_at_once_and_leaves_nothing_behind() {
    let mut cluster = Cluster::new(1);
    let call = cluster.call_group("nosuch", ms(1_000));
    assert_eq!(cluster.result(call), Err(CallError::NoSuchGroup("nosuch".into())));
    assert!(cluster.session.groups.is_empty());
}

#[test]
fn a_known_group_is_given_up_only_when_two_nodes_deny_it() {
    let mut cluster = Cluster::new(2);
    cluster.finish(ms(1_000)).unwrap();
    // The primary has just restarted and knows no group yet; the other node knows better.
    cluster.node(1).script.push_back(Manner::Answer(Outcome::NoSuchGroup, None));
    assert!(cluster.finish(ms(1_000)).is_ok());
    cluster.node(1).manner = Manner::Answer(Outcome::NoSuchGroup, None);
    cluster.node(1).bound = None;
    cluster.node(2).bound = None;
    let before = cluster.now;
    assert_eq!(cluster.finish(ms(1_000)), Err(CallError::NoSuchGroup(GROUP.into())));
    assert!(cluster.now - before < ms(10));
}

#[test]
fn a_group_without_replicas_is_waited_for_until_the_deadline() {
    let mut cluster = Cluster::new(2);
    cluster.all_say(targets(1, &[]));
    assert_eq!(cluster.finish(ms(200)), Err(CallError::NoReplica));
    let call = cluster.call(ms(1_000));
    cluster.run(ms(200));
    cluster.all_say(targets(2, &[2]));
    cluster.run(ms(110));
    assert!(cluster.done[&call].1.is_ok(), "the pause between questions is at most 100 ms");
}

#[test]
fn a_node_of_another_version_is_told_by_both_versions() {
    let mut cluster = Cluster::new(1);
    cluster.node(1).speaks = VersionRange::new(8, 9);
    let before = cluster.now;
    let error = cluster.finish(ms(1_000)).unwrap_err();
    assert_eq!(error, CallError::Version { theirs: VersionRange::new(8, 9) });
    assert!(error.to_string().contains("version 8 to 9, this client version 1"));
    assert!(cluster.now - before < ms(5), "waiting does not help");
    let lost =
        Event::Lost { address: address(1), trouble: Trouble::Version(VersionRange::new(8, 9)) };
    assert!(cluster.events.contains(&lost));
}

#[test]
fn while_a_cluster_is_upgraded_the_nodes_of_the_own_version_serve() {
    let mut cluster = Cluster::given(2, &[1, 2]);
    cluster.node(1).speaks = VersionRange::new(8, 9);
    cluster.all_say(targets(1, &[2]));
    assert!(cluster.finish(ms(1_000)).is_ok());
}

#[test]
fn connections_that_nothing_needs_are_closed_and_warm_ones_are_kept() {
    let mut cluster = Cluster::new(4);
    cluster.finish(ms(1_000)).unwrap();
    assert!(cluster.is_connected(4));
    cluster.run(Duration::from_secs(100));
    assert!(!cluster.is_connected(4), "it has only told the targets");
    assert!(cluster.is_connected(1) && cluster.is_connected(2));
    assert_eq!(cluster.session.stats().losses, 0);
}

#[test]
fn the_name_of_a_group_decides_nothing_but_the_group() {
    let mut cluster = Cluster::new(2);
    let unknown = cluster.call_group("other", ms(100));
    let known = cluster.call(ms(100));
    assert!(cluster.result(known).is_ok());
    assert_eq!(cluster.result(unknown), Err(CallError::NoSuchGroup("other".into())));
}
