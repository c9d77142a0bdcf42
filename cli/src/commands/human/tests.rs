use expect_test::{Expect, expect};
use steadfast::status::{
    ChargeStatus, Counters, ExclusionStatus, GroupStatus, KeyChange, LinkStatus, LogStatus,
    NodeLinks, NoteStatus, ReplicaStatus, RingStatus, SealCounters, SealStatus, Status, TlsStatus,
};
use steadfast::{
    About, AckLevel, Durability, Incarnation, Member, NodeId, RingId, Style, ViewNumber,
};

fn member(node: u32) -> Member {
    Member { node: NodeId(node), incarnation: Incarnation(1) }
}

fn group(name: &str, replicas: &[(u32, bool)]) -> GroupStatus {
    let replica = |&(node, synced): &(u32, bool)| ReplicaStatus {
        node: NodeId(node),
        incarnation: Incarnation(1),
        synced,
    };
    GroupStatus {
        name: name.to_owned(),
        style: Style::SemiActive,
        ack: AckLevel::Majority,
        durability: Durability::Memory,
        view: ViewNumber(3),
        primary: replicas.iter().find(|replica| replica.1).map(|replica| member(replica.0)),
        replicas: replicas.iter().map(replica).collect(),
        notes: Vec::new(),
        sessions: None,
        executed: None,
        hung: false,
        depositor: None,
        log: None,
        journal: None,
    }
}

fn seen(nodes: &[u32], groups: Vec<GroupStatus>) -> Status {
    Status {
        node: NodeId(1),
        incarnation: Incarnation(1),
        cluster: "lab".to_owned(),
        client: Some(([127, 0, 0, 1], 7100).into()),
        ring: RingStatus {
            state: "operational".to_owned(),
            configured: [1, 2, 3].map(NodeId).to_vec(),
            id: RingId { sequence: 17, representative: NodeId(1) },
            members: nodes.iter().copied().map(member).collect(),
            quorate: Some(nodes.len() > 1),
            quorum_off: false,
            epoch: 4,
            delivered: 4_711,
            links: Vec::new(),
            excluded: None,
            buffers: Default::default(),
            rotations: None,
        },
        groups,
        nodes: Default::default(),
        storage: None,
        hosts: Vec::new(),
        manager: None,
        programs: Vec::new(),
        realtime: Default::default(),
        closer: Default::default(),
        sockets: Default::default(),
        versions: Default::default(),
        nested: Default::default(),
        tls: TlsStatus {
            certificate: Some("node-1.lab.steadfast".to_owned()),
            expires_soon: false,
            clients: vec![
                ("client-hmi.lab.steadfast".to_owned(), 3),
                ("node-2.lab.steadfast".to_owned(), 1),
            ],
        },
        seal: Some(SealStatus {
            key: 1,
            fingerprint: "0123456789abcdef".to_owned(),
            opens: vec![1],
            change: None,
            counters: SealCounters::default(),
        }),
        counters: Counters::default(),
    }
}

fn shown(status: &Status, text: Expect) {
    text.assert_eq(&super::status(status));
}

#[test]
fn a_sound_cluster_shows_no_trouble() {
    let mut counter = group("counter", &[(2, true), (1, true), (3, true)]);
    counter.sessions = Some(12);
    counter.executed = Some(40_961);
    let mut elsewhere = group("station-information", &[(3, true)]);
    elsewhere.style = Style::Stateless;
    let status = seen(&[1, 2, 3], vec![counter, elsewhere]);
    shown(
        &status,
        expect![[r#"
            cluster lab, seen from n1 (clients at 127.0.0.1:7100)

            ring    operational, quorate (epoch 4), r17@n1, 4711 delivered
            nodes   3 of 3: n1 n2 n3
            sealed  with key 1 (0123456789abcdef)
            clients by TLS with node-1.lab.steadfast; connected: client-hmi (3), node-2

            GROUP                VIEW  PRIMARY  REPLICAS  SESSIONS  EXECUTED  STYLE        ACK
            counter              v3    n2       n2 n1 n3  12        40961     semi-active  majority
            station-information  v3    n3       n3        -         -         stateless    -
        "#]],
    );
}

#[test]
fn a_state_that_cannot_be_had_is_told_with_the_reason_and_the_remedy() {
    let mut notes = group("notes", &[(2, true), (1, false), (3, false)]);
    let note =
        |node, about, text: &str| NoteStatus { node: NodeId(node), about, text: text.into() };
    notes.notes = vec![
        note(2, About::Give, "surrogates not allowed"),
        note(3, About::Read, "missing field `x`"),
    ];
    let text = super::status(&seen(&[1, 2, 3], vec![notes]));
    for line in [
        "  ! notes: its state cannot be given to n1, n3: surrogates not allowed (n2 says so). Keep n2 \
         running, and take what cannot be written out of the state by a call",
        "  ! notes: n3 cannot read the state: missing field `x`. Deploy a program that reads it, or \
         the former one (`steadfast deploy`)",
        "notes  v3    n2       n2! (n1) (n3)!  -         -         semi-active  majority",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
    }
}

#[test]
fn a_cold_passive_group_shows_what_its_replica_keeps() {
    let mut orders = group("orders", &[(2, true), (1, true)]);
    orders.style = Style::ColdPassive;
    let (bytes, checkpoint_bytes) = (340, 70_021);
    let log = LogStatus {
        requests: 17,
        bytes,
        checkpoint_bytes,
        checkpoint_age_ms: Some(1_250),
        runs: false,
    };
    orders.log = Some(log);
    let mut fresh = orders.clone();
    fresh.name = "fresh".to_owned();
    fresh.log = Some(LogStatus { checkpoint_bytes: 0, checkpoint_age_ms: None, ..log });
    let text = super::status(&seen(&[1, 2, 3], vec![orders, fresh]));
    let tail: Vec<&str> = text.lines().rev().take(2).collect();
    assert_eq!(
        tail,
        [
            "fresh has logged 17 requests (340 bytes) since the beginning",
            "orders has logged 17 requests (340 bytes) since a checkpoint of 70021 bytes, 1.2 s ago",
        ]
    );
}

#[test]
fn a_hung_service_is_told_with_what_can_be_done() {
    let mut counter = group("counter", &[(1, true)]);
    counter.hung = true;
    let mut status = seen(&[1, 2, 3], vec![counter]);
    status.counters.replicas_hung = 2;
    let text = super::status(&status);
    assert!(text.contains(
        "the service of counter is hung at this node, and no other replica has the state"
    ));
    assert!(text.contains("2 replicas were removed: their services were hung"), "{text}");
}

#[test]
fn what_is_wrong_comes_first() {
    let mut status =
        seen(&[1], vec![group("counter", &[(1, false)]), group("echo", &[(2, true), (1, true)])]);
    status.counters.handlers_panicked = 2;
    status.counters.malformed.magic = 7;
    status.client = None;
    shown(
        &status,
        expect![[r#"
            cluster lab, seen from n1 (takes no clients)
              ! no quorum: nothing is answered until 2 of 3 nodes are in the ring, here 1; start n2 n3, or see why this node cannot reach them
              ! group counter has no primary: no replica with its state is up
              ! 7 malformed datagrams dropped: another program, version or cluster sends to the ring's port (--json tells which)
              ! 2 handlers panicked: see the node's log

            ring    operational, no quorum (epoch 4), r17@n1, 4711 delivered
            nodes   1 of 3: n1
            sealed  with key 1 (0123456789abcdef)

            GROUP    VIEW  PRIMARY  REPLICAS  SESSIONS  EXECUTED  STYLE        ACK
            counter  v3    none     (n1)      -         -         semi-active  majority
            echo     v3    n2?      n2? n1    -         -         semi-active  majority
            (n): this replica is receiving the state
            n?: this node is not in the ring; the view is the last one known
        "#]],
    );
}

#[test]
fn a_node_that_starts_says_so() {
    let mut status = seen(&[], Vec::new());
    status.ring.state = "gather".to_owned();
    status.ring.quorate = None;
    shown(
        &status,
        expect![[r#"
            cluster lab, seen from n1 (clients at 127.0.0.1:7100)
              ! the ring is in state gather: its membership is being agreed on; nothing is answered

            ring    gather, quorum not yet known (epoch 4), r17@n1, 4711 delivered
            nodes   0 of 3: none
            sealed  with key 1 (0123456789abcdef)
            clients by TLS with node-1.lab.steadfast; connected: client-hmi (3), node-2

            no groups known: replicas join when there is a quorum
        "#]],
    );
}

#[test]
fn what_the_seal_refused_is_told_and_so_is_its_absence() {
    let mut status = seen(&[1, 2, 3], Vec::new());
    let seal = status.seal.as_mut().unwrap();
    (seal.counters.forged, seal.counters.plain, seal.counters.duplicates) = (3, 4, 5);
    let text = super::status(&status);
    assert!(text.contains("3 forged datagrams") && text.contains("4 datagrams without"), "{text}");
    assert!(!text.contains("  ! 5"), "the second link's copies are no trouble: {text}");
    status.seal.as_mut().unwrap().change = Some(KeyChange {
        key: 2,
        fingerprint: "fedcba9876543210".to_owned(),
        switched: false,
        forced: false,
        lacking: vec![NodeId(3)],
    });
    let text = super::status(&status);
    assert!(
        text.contains("changing to key 2 (fedcba9876543210): waits for n3 to store it"),
        "{text}"
    );
    status.seal = None;
    status.tls = TlsStatus::default();
    let text = super::status(&status);
    assert!(text.contains("sealed  no") && text.contains("clients NOT AUTHENTICATED"), "{text}");
    status.tls.expires_soon = true;
    status.counters.handshakes.plaintext = 2;
    status.counters.admin_handshakes.refused = 3;
    let text = super::status(&status);
    assert!(text.contains("expires within two months"), "{text}");
    assert!(
        text.contains("2 connections without TLS") && text.contains("3 TLS handshakes"),
        "{text}"
    );
}

#[test]
fn an_excluded_node_shows_why_and_what_to_do() {
    let mut status = seen(&[1, 2, 3], Vec::new());
    let ns = |ms: u64| ms * 1_000_000;
    let charge =
        ChargeStatus { stopped_ns: ns(1_001), within_ns: ns(1_204), limit_ns: ns(500), share: 50 };
    status.ring.excluded =
        Some(ExclusionStatus { time: 7, by: NodeId(2), charge: Some(charge), own_time: None });
    status.counters.excluded_slow = 3;
    let text = super::status(&status);
    let told = "this node was excluded from the ring 3 times; the last time it stopped n2's sending for 1001 of 1204 ms";
    assert!(text.contains(told) && text.contains("CPU quota"), "{text}");
}

#[test]
fn a_lost_link_is_told_with_its_number_and_when_it_was_heard() {
    let mut status = seen(&[1, 2, 3], Vec::new());
    let links = |second: LinkStatus| vec![LinkStatus { up: true, heard_ms: Some(2.5) }, second];
    let lost = LinkStatus { up: false, heard_ms: Some(4_230.0) };
    let never = LinkStatus { up: false, heard_ms: None };
    status.ring.links = vec![
        NodeLinks { node: NodeId(2), links: links(lost) },
        NodeLinks { node: NodeId(3), links: links(never) },
    ];
    shown(
        &status,
        expect![[r#"
            cluster lab, seen from n1 (clients at 127.0.0.1:7100)
              ! n2 is not reachable by link 2 (last heard 4.2 s ago): repair that network; the ring uses another link
              ! n3 is not reachable by link 2 (never heard): repair that network; the ring uses another link

            ring    operational, quorate (epoch 4), r17@n1, 4711 delivered
            nodes   3 of 3: n1 n2 n3
            sealed  with key 1 (0123456789abcdef)
            clients by TLS with node-1.lab.steadfast; connected: client-hmi (3), node-2
            links   1 reaches 2 of 2, 2 reaches 0 of 2

            no groups: no node hosts a replica
        "#]],
    );
}
