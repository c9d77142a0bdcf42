//! How a run is told.

use std::sync::Arc;

use expect_test::expect;
use steadfast::State;

use super::super::audit::Audit;
use super::super::fault::{Means, Role};
use super::super::network::Network;
use super::super::plan::Plan;
use super::super::service::PassengerInformation;
use super::super::timeline::{Gaps, Timeline};
use super::*;

fn timeline(role: Role, node: u32) -> Timeline {
    Timeline {
        means: Means::Kill,
        role,
        node,
        at_s: 5.0,
        dead_ms: Some(0.31),
        detected_ms: Some(0.4),
        detected_by: Some("node 2: its host refuses".to_owned()),
        ring_ms: Some(1.9),
        view_ms: Some(2.3),
        view: Some(4),
        primary: Some(2),
        first_reply_ms: Some(3.15),
        gaps: Gaps {
            gap_ms: 3.32,
            gap_client: "display Trindade".to_owned(),
            longest_gap_ms: 7.5,
            longest_gap_from_ms: 617.2,
            longest_gap_client: "line B session 3".to_owned(),
            return_gap_ms: 2.1,
        },
        undone_ms: 2_000.4,
        synced_ms: Some(71.2),
        restored_on: Some(4),
        state_bytes: Some(49_152),
        survived: true,
    }
}

fn outcome() -> Outcome {
    let network = Network::porto();
    let state = PassengerInformation::new(Arc::new(network.clone())).snapshot().unwrap();
    let replica = |node, primary| Replica::new(node, primary, 21_400, &state).unwrap();
    let latency =
        Latency { count: 18_003, p50_ms: 0.41, p99_ms: 1.23, p999_ms: 9.8, max_ms: 14.1, late: 0 };
    Outcome {
        passed: true,
        failures: Vec::new(),
        audit: Audit { sent: 20_000, acknowledged: 20_000, boards: 1_400, ..Audit::default() },
        digests_equal: true,
        replicas: vec![replica(1, false), replica(2, true), replica(3, false)],
        latency: ["normal", "critical", "alarm", "query"].map(|k| (k, latency.clone())).into(),
        choice: Some(Choice {
            busy: 3,
            used_percent: 61,
            before: vec![3, 2],
            after: vec![2, 3],
            took_ms: 640,
        }),
        faults: vec![timeline(Role::Primary, 1), timeline(Role::Backup, 3)],
        plan: Plan {
            seconds: 20.0,
            rate: 1_000.0,
            nodes: 5,
            replicas: 3,
            faults: vec![Role::Primary, Role::Backup],
            means: Means::Kill,
            seed: 1,
            secure: false,
            keep: false,
        },
        boards: Vec::new(),
        network,
    }
}

#[test]
fn a_good_run_is_taken_in_at_a_glance() {
    expect![[r#"

        Steadfast · the light rail of Porto
         A  Azul   B  Vermelha   C  Verde   D  Amarela   E  Violeta
        5 lines, 70 stations, 219 sensors · 5 nodes, 3 replicas (semi-active)
        20 s at 1,000 events/s · seed 1

        Events          sent  acknowledged  unanswered    lost  executed twice  stale boards
                      20,000        20,000           0       0               0             0

        Replicas      state digest            size      executed
          node 1      ea03fd8311f69931       502 B        21,400
          node 2      ea03fd8311f69931       502 B        21,400   primary
          node 3      ea03fd8311f69931       502 B        21,400

        Latency          calls       p50       p99     p99.9       max  over 2 s
          normal        18,003   0.41 ms   1.23 ms   9.80 ms   14.1 ms         0
          critical      18,003   0.41 ms   1.23 ms   9.80 ms   14.1 ms         0
          alarm         18,003   0.41 ms   1.23 ms   9.80 ms   14.1 ms         0
          query         18,003   0.41 ms   1.23 ms   9.80 ms   14.1 ms         0

        Next targets  nodes 3, 2; node 3 got something else to do (its part is used to 61 %): after 640 ms nodes 2, 3
                      node 2 took over

        Faults                          detected   new view  1st reply        gap    longest   restored
        1 kill -9 of node 1, primary     0.40 ms    2.30 ms    3.15 ms    3.32 ms    7.50 ms    71.2 ms
          ddddddrrrrrrrrrrrrrrrrrrrrrvvvvvaaaaaaaaaaaa
          d detect 0.40  r new ring 1.50  v new view 0.40  a reply 0.85
          process gone after 0.31 ms; detected by node 2: its host refuses; view 4 with primary node 2
          gap seen by display Trindade; the longest 617 ms later by line B session 3
          all replicas again after 71.2 ms, the new one on node 4, given 48 KiB
          node 1 started again after 2.00 s; gap meanwhile 2.10 ms

        2 kill -9 of node 3, backup      0.40 ms    2.30 ms    3.15 ms    3.32 ms    7.50 ms    71.2 ms
          ddddddrrrrrrrrrrrrrrrrrrrrrvvvvvaaaaaaaaaaaa
          d detect 0.40  r new ring 1.50  v new view 0.40  a reply 0.85
          process gone after 0.31 ms; detected by node 2: its host refuses; view 4 with primary node 2
          gap seen by display Trindade; the longest 617 ms later by line B session 3
          all replicas again after 71.2 ms, the new one on node 4, given 48 KiB
          node 3 started again after 2.00 s; gap meanwhile 2.10 ms

        ✔ nothing acknowledged was lost or executed twice, all replicas are equal, 2 faults survived"#]]
        .assert_eq(&text(&outcome(), Paint::PLAIN).replace("\n  ", "\n"));
}

#[test]
fn what_is_wrong_is_named() {
    let mut outcome = outcome();
    outcome.passed = false;
    outcome.failures = vec!["2 acknowledged events are lost".to_owned()];
    outcome.audit.lost = 2;
    outcome.faults[1].view_ms = None;
    let text = text(&outcome, Paint::PLAIN);
    assert!(text.contains("✘ 2 acknowledged events are lost"), "{text}");
    assert!(text.contains("never"), "{text}");
    assert!(!text.contains('✔'), "{text}");
}

#[test]
fn the_json_form_has_the_documented_keys() {
    let json = serde_json::to_value(outcome()).unwrap();
    for key in ["passed", "sent", "acknowledged", "lost", "duplicated", "digests_equal"] {
        assert!(!json[key].is_null(), "{key}");
    }
    assert_eq!(json["latency"]["alarm"]["p999_ms"], 9.8);
    assert_eq!(json["faults"][0]["role"], "primary");
    assert_eq!(json["replicas"][1]["primary"], true);
}
