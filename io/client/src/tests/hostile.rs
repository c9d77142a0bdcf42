//! Nodes that are confused or lie: the session neither panics, grows, nor spins.

use bytes::Bytes;
use wire::client::{
    Bind, Bound, Farewell, Frame, Hello, Outcome, Refusal, Reply, Request, Targets, Watch, Welcome,
};
use wire::limits::MAX_LINKS;
use wire::versions::CLIENT;
use wire::{ClientId, Extension, GroupId, MethodId, NodeId, Random, VersionRange, ViewNumber};

use super::cluster::{Cluster, GROUP, Manner, address, ms, targets};
use crate::{CallError, Trouble};

fn any_targets(random: &mut Random) -> Targets {
    let count = random.below(20);
    let nodes: Vec<u32> = (0..count).map(|_| random.below(250) as u32).collect();
    let view = if random.one_in(4) { u64::MAX } else { random.below(50) };
    targets(view, &nodes)
}

fn any_outcome(random: &mut Random) -> Outcome {
    match random.below(9) {
        0 => Outcome::Ok(Bytes::from_static(b"lie")),
        1 => Outcome::Service(Bytes::new()),
        2 => Outcome::Busy {
            retry_after_us: random.below(u64::from(u32::MAX) + 1) as u32,
            reason: String::new(),
        },
        3 => Outcome::Refused(Refusal::Stale, String::new()),
        4 => Outcome::NotPrimary,
        7 => Outcome::Shed {
            instead: (!random.one_in(3)).then(|| NodeId(random.below(5) as u32)),
            reason: String::new(),
        },
        5 => Outcome::NoSuchGroup,
        8 => Outcome::Gone,
        _ => Outcome::NoReplica,
    }
}

fn any_frame(random: &mut Random) -> Frame {
    let group = if random.one_in(5) { GroupId(random.below(9)) } else { GroupId::of(GROUP) };
    let told = |random: &mut Random| (!random.one_in(3)).then(|| any_targets(random));
    match random.below(14) {
        12 => Frame::Watch(Watch { group, view: ViewNumber(random.below(9)) }),
        13 => Frame::News(Bound { group, targets: told(random) }),
        0 => Frame::Hello(Hello::new(ClientId(1))),
        1 => Frame::Bind(Bind { name: GROUP.into() }),
        2 => Frame::Welcome(Welcome {
            version: if random.one_in(2) { CLIENT.greatest } else { 200 },
            node: NodeId(1),
            cluster: "x".into(),
            extension: Extension::default(),
        }),
        3 => {
            let version = 1 + random.below(2) as u8;
            let speaks = VersionRange::new(version, version);
            Frame::Farewell(Farewell { speaks, ..Farewell::new("no") })
        }
        4 => Frame::Request(Request {
            group,
            client: ClientId(2),
            number: 1,
            unanswered: 1,
            view: ViewNumber(1),
            method: MethodId(1),
            timeout_us: 1,
            priority: 0,
            json: true,
            beside: false,
            has_key: false,
            access: wire::client::Access::Read,
            body: Bytes::new(),
        }),
        5 | 6 => Frame::Bound(Bound { group, targets: told(random) }),
        _ => Frame::Reply(Reply {
            number: random.below(40),
            group,
            view: ViewNumber(random.below(50)),
            targets: told(random),
            outcome: any_outcome(random),
        }),
    }
}

/// Calls among nodes that send anything, then honest nodes again.
fn mayhem(seed: u64) -> Cluster {
    let mut random = Random::new(seed);
    let mut cluster = Cluster::given(6, &[1, 2, 3]);
    let mut calls = Vec::new();
    for _ in 0..500 {
        if random.one_in(4) {
            calls.push(cluster.call(ms(1 + random.below(900))));
        }
        // Any node may send any frame; the invariants are checked after each.
        let node = 1 + random.below(6) as u32;
        if cluster.is_connected(node) {
            let link = cluster.link_to(node);
            cluster.inject(link, any_frame(&mut random));
        }
        cluster.run(ms(random.below(8)));
    }
    for call in &calls {
        // With any input, each call ends by its deadline; the cluster asserts that it ends once.
        let _ = cluster.result(*call);
    }
    cluster.run(ms(3_000));
    cluster
}

#[test]
fn frames_at_random_neither_break_nor_fill_nor_block_the_session() {
    for seed in 0..40 {
        let mut cluster = mayhem(seed);
        assert_eq!(cluster.session.under_way(), 0);
        assert!(cluster.session.groups.len() <= 1);
        assert!(cluster.finish(ms(3_000)).is_ok(), "seed {seed} is stuck");
    }
}

#[test]
fn a_seed_decides_everything() {
    let (one, other) = (mayhem(3), mayhem(3));
    assert!(one.requests.len() > 100);
    assert_eq!(one.requests, other.requests);
    assert_eq!(one.done, other.done);
    assert_eq!(one.events, other.events);
}

#[test]
fn replies_that_nobody_asked_for_are_ignored() {
    let mut cluster = Cluster::new(3);
    cluster.finish(ms(1_000)).unwrap();
    cluster.run(ms(1));
    cluster.node(1).manner = Manner::AckLevel;
    let call = cluster.call(ms(80));
    let lie = || Outcome::Ok(Bytes::from_static(b"lie"));
    // From a node that was not asked, for a number that ended, and for one to come.
    let warm = cluster.link_to(2);
    cluster.inject(warm, Cluster::reply(2, 1, lie()));
    let first = cluster.link_to(1);
    cluster.inject(first, Cluster::reply(1, 1, lie()));
    cluster.inject(first, Cluster::reply(3, 1, lie()));
    assert!(!cluster.done.contains_key(&call));
    assert_eq!(cluster.session.stats().late_replies, 3);
}

#[test]
fn frames_that_no_node_sends_cost_the_connection_and_nothing_else() {
    let mut cluster = Cluster::new(2);
    cluster.finish(ms(1_000)).unwrap();
    cluster.run(ms(1));
    cluster.node(1).manner = Manner::AckLevel;
    let call = cluster.call(ms(1_000));
    let first = cluster.link_to(1);
    cluster.inject(first, Frame::Hello(Hello::new(ClientId(1))));
    assert!(cluster.result(call).is_ok());
    assert_eq!(cluster.path(2), [address(1), address(2)]);
    let confused = |event: &crate::Event| {
        matches!(event, crate::Event::Lost { trouble: Trouble::Confused, .. })
    };
    assert!(cluster.events.iter().any(confused));
    // Frames of a connection that is closed are of no effect.
    cluster.inject(first, Cluster::reply(3, 9, Outcome::NoReplica));
}

#[test]
fn nodes_that_send_the_client_to_and_fro_do_not_make_it_spin() {
    let mut cluster = Cluster::new(2);
    cluster.finish(ms(1_000)).unwrap();
    cluster.run(ms(1));
    for view in 2..2_000 {
        let there = Some(targets(view, &[1 + (view % 2) as u32]));
        let node = 2 - (view % 2) as u32;
        cluster.node(node).script.push_back(Manner::Answer(Outcome::NotPrimary, there));
    }
    let call = cluster.call(ms(400));
    cluster.run(ms(400));
    assert!(cluster.done.contains_key(&call));
    let attempts = cluster.path(2).len();
    assert!(attempts < 250, "{attempts} attempts in 400 ms: 16 for each growing pause at most");
}

#[test]
fn a_node_that_welcomes_and_closes_is_dialled_less_and_less() {
    let mut cluster = Cluster::new(1);
    cluster.finish(ms(1_000)).unwrap();
    let call = cluster.call(ms(10_000));
    cluster.node(1).manner = Manner::AckLevel;
    let before = cluster.dials.len();
    for _ in 0..5_000 {
        cluster.run(ms(1));
        if cluster.is_connected(1) && cluster.session.links.any_ready() {
            cluster.kill(1);
            cluster.run(ms(1));
            cluster.node(1).up = true;
        }
        if cluster.done.contains_key(&call) {
            break;
        }
    }
    let dials = cluster.dials.len() - before;
    assert!(dials < 40, "{dials} dials in 10 s");
}

#[test]
fn invented_addresses_do_not_pile_up() {
    let mut cluster = Cluster::new(1);
    cluster.finish(ms(1_000)).unwrap();
    for round in 0..300u64 {
        let nodes: Vec<u32> = (0..16).map(|n| (round as u32 * 16 + n) % 240 + 10).collect();
        let bound = Bound { group: GroupId::of(GROUP), targets: Some(targets(2 + round, &nodes)) };
        if cluster.is_connected(1) {
            let link = cluster.link_to(1);
            cluster.inject(link, Frame::Bound(bound));
        }
        cluster.run(ms(1));
    }
    // `check_invariants` holds connections and records to MAX_LINKS at every step.
    assert!(cluster.dials.len() > 100 && cluster.dials.len() < 300 * MAX_LINKS);
    cluster.run(ms(2_000));
    assert!(cluster.finish(ms(2_000)).is_ok(), "the address that was given leads back");
}

#[test]
fn a_node_that_turns_clients_away_is_quoted() {
    let mut cluster = Cluster::new(1);
    let reason = "4096 clients are connected: use another node";
    cluster.node(1).farewell = Some(reason.into());
    let CallError::Unreachable(text) = cluster.finish(ms(100)).unwrap_err() else {
        panic!("no request was sent");
    };
    assert!(text.contains(reason), "{text}");
}
