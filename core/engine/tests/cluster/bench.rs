//! Benchmarks of the order: what is measured, that mistakes are seen, and what ends one.

use steadfast_engine::{BenchError, BenchRequest, BenchResult, Event};
use wire::NodeId;
use wire::bench::{Pacing, PlanError, Until};
use wire::client::Outcome;
use wire::histogram::{Histogram, Times};

use steadfast_engine::ordering::Level;

use crate::base::Base;
use crate::harness::{Cluster, ms};
use crate::tampered::{Tampered, Wrong};

fn request(senders: &[u32], pacing: Pacing, until: Until) -> BenchRequest {
    BenchRequest {
        senders: senders.iter().copied().map(NodeId).collect(),
        size: 256,
        count: 120,
        warm: 10,
        span: ms(2_000),
        level: Level::Agreed,
        pacing,
        until,
    }
}

fn run<O: Base>(cluster: &mut Cluster<O>, asked: u32, request: BenchRequest) -> BenchResult {
    cluster.bench(asked, request).expect("it begins");
    cluster.bench_outcome(asked).expect("it comes to its end")
}

/// Every node was given all that was sent, whole and in one order.
fn is_right(result: &BenchResult) -> bool {
    let (_, first) = &result.reports[0];
    result.reports.iter().all(|(_, report)| {
        report.received == result.sent
            && report.order == first.order
            && report.corrupt == 0
            && report.disordered == 0
    })
}

fn count(times: &Times) -> u64 {
    times.buckets.iter().map(|(_, count)| count).sum()
}

fn median_us(times: &Times) -> u128 {
    let mut histogram = Histogram::default();
    histogram.add(times);
    histogram.quantile(0.5).expect("something was measured").as_micros()
}

#[test]
fn every_node_sees_all_messages_of_all_senders_in_one_order() {
    for senders in [&[1][..], &[2, 4], &[1, 2, 3, 4]] {
        for pacing in [Pacing::Window(1), Pacing::Window(64), Pacing::Every(ms(1))] {
            for (until, level) in [
                (Until::Own, Level::Agreed),
                (Until::Own, Level::Safe),
                (Until::All, Level::Agreed),
                (Until::Echo, Level::Agreed),
                (Until::Echo, Level::Safe),
            ] {
                let mut cluster = Cluster::new(4);
                let request = BenchRequest { level, ..request(senders, pacing, until) };
                let result = run(&mut cluster, 3, request);
                assert!(is_right(&result), "{senders:?} {pacing:?} {until:?}: {result:?}");
                assert_eq!(result.reports.len(), 4);
                assert_eq!(result.sent, vec![120; senders.len()]);
                for (member, report) in &result.reports {
                    let sends = result.plan.senders.contains(&member.node);
                    assert_eq!(report.measured.is_some(), sends);
                    let Some(measured) = &report.measured else { continue };
                    assert_eq!(count(&measured.send), 110, "all but the first ten");
                    assert_eq!(count(&measured.own), 110);
                    assert_eq!(count(&measured.all), 110);
                    assert_eq!(count(&measured.echo), if until == Until::Echo { 110 } else { 0 });
                }
            }
        }
    }
}

#[test]
fn latency_is_that_of_the_order_and_the_wait_for_the_token_is_told_apart() {
    let mut cluster = Cluster::new(4);
    let result = run(&mut cluster, 1, request(&[2], Pacing::Window(1), Until::All));
    let measured = result.reports[1].1.measured.as_ref().expect("node 2 sends");
    assert_eq!(median_us(&measured.send), 0, "the token rests with the only sender");
    assert_eq!(median_us(&measured.own), 0);
    assert_eq!(median_us(&measured.all), 60, "a round trip of 30 µs each way");
    let level = Level::Safe;
    let safe = BenchRequest { level, ..request(&[2], Pacing::Window(1), Until::Own) };
    let result = run(&mut cluster, 1, safe);
    let measured = result.reports[1].1.measured.as_ref().expect("node 2 sends");
    assert_eq!(median_us(&measured.send), 0, "the wait for the others is no wait for the token");
    assert_eq!(median_us(&measured.own), 60);
    let result = run(&mut cluster, 1, request(&[2], Pacing::Window(1), Until::Echo));
    let measured = result.reports[1].1.measured.as_ref().expect("node 2 sends");
    assert!(median_us(&measured.send) >= 30, "the answers take the token away");
    assert!(median_us(&measured.echo) >= median_us(&measured.send) + 60);
}

#[test]
fn a_pace_is_kept_and_the_span_ends_it() {
    let mut cluster = Cluster::new(3);
    let span = ms(100);
    let pace = Pacing::Every(ms(2));
    let result = run(&mut cluster, 2, BenchRequest { span, ..request(&[1], pace, Until::Own) });
    assert!(is_right(&result));
    assert_eq!(result.sent, [50], "100 ms, one every 2 ms");
    let took = result.reports[2].1.span;
    assert!(took >= ms(97) && took <= ms(99), "{took:?}");
}

/// A pace that the ring cannot keep makes its senders late. It does not fill the queue behind which
/// the nodes' own messages wait, and the benchmark's end with them (simulator seed 71260).
#[test]
fn a_pace_that_is_too_quick_leaves_nothing_to_be_sent_after_its_span() {
    let mut cluster = Cluster::new(3);
    let (span, pace) = (ms(1), Pacing::Every(ms(1) / 1_000));
    let (size, count) = (12_000, 1_000);
    let much = BenchRequest { size, count, span, ..request(&[1, 2], pace, Until::Own) };
    let result = run(&mut cluster, 3, much);
    assert!(is_right(&result));
    assert!(result.sent.iter().all(|sent| (20..count / 2).contains(sent)), "{:?}", result.sent);
    let took = result.reports[2].1.span;
    assert!(took <= span + span / 2, "{took:?}");
    for (_, report) in &result.reports[..2] {
        let late = report.measured.as_ref().expect("it sends").late;
        assert!(late >= span / 2, "it says so: {late:?}");
    }
}

fn with_one_mistake(wrong: Wrong) -> BenchResult {
    let mut cluster = Cluster::<Tampered>::tampered(3);
    cluster.plant(3, wrong);
    let result = run(&mut cluster, 1, request(&[1, 2], Pacing::Window(8), Until::Own));
    assert!(cluster.is_struck(), "the mistake was made");
    assert!(!is_right(&result), "{wrong:?} is seen");
    let without: Vec<_> = result.reports[..2].to_vec();
    assert!(is_right(&BenchResult { reports: without, ..result.clone() }), "the others are fine");
    result
}

#[test]
fn a_corrupt_message_is_found_at_the_node_that_got_it() {
    let result = with_one_mistake(Wrong::Flip);
    let report = &result.reports[2].1;
    assert_eq!((report.corrupt, report.disordered), (1, 0));
}

#[test]
fn messages_in_another_order_are_found() {
    let result = with_one_mistake(Wrong::Late);
    assert_ne!(result.reports[2].1.order, result.reports[0].1.order);
    assert_eq!(result.reports[2].1.corrupt, 0);
}

#[test]
fn a_lost_message_is_found() {
    let result = with_one_mistake(Wrong::Lose);
    let report = &result.reports[2].1;
    assert_eq!(report.received.iter().sum::<u64>() + 1, result.sent.iter().sum());
    assert_eq!(report.disordered, 1);
}

#[test]
fn the_loss_of_a_node_ends_a_benchmark_everywhere() {
    let mut cluster = Cluster::new(4);
    let endless =
        BenchRequest { count: 1_000_000, ..request(&[1, 2], Pacing::Window(8), Until::Own) };
    cluster.bench(4, endless).expect("it begins");
    cluster.run_for(ms(3));
    let progress = cluster.node(4).bench_progress().expect("it is under way");
    assert!(progress.delivered > 100 && progress.expected == 2_000_000, "{progress:?}");
    cluster.kill(3);
    assert_eq!(cluster.bench_outcome(4), Err(BenchError::Interrupted));
    cluster.run_for(ms(10));
    for node in [1, 2, 4] {
        assert_eq!(cluster.node(node).bench_progress(), None);
        assert!(
            cluster.told(node, |event| matches!(event, Event::BenchEnded { whole: false, .. }))
        );
    }
    // Messages that were still queued belong to no benchmark, and do not disturb the next one.
    let result = run(&mut cluster, 2, request(&[1, 4], Pacing::Window(4), Until::All));
    assert!(is_right(&result));
    assert_eq!(result.reports.len(), 3);
}

#[test]
fn the_loss_of_the_node_that_was_asked_ends_it_too() {
    let mut cluster = Cluster::new(3);
    let endless = BenchRequest { count: 1_000_000, ..request(&[1], Pacing::Window(8), Until::Own) };
    cluster.bench(3, endless).expect("it begins");
    cluster.run_for(ms(3));
    cluster.kill(3);
    cluster.run_for(ms(20));
    assert_eq!(cluster.node(1).bench_progress(), None);
    assert!(is_right(&run(&mut cluster, 1, request(&[2], Pacing::Window(1), Until::Own))));
}

#[test]
fn who_asked_can_stop_it() {
    let mut cluster = Cluster::in_process(3);
    let endless =
        BenchRequest { count: 1_000_000, ..request(&[1], Pacing::Every(ms(1)), Until::Own) };
    cluster.bench(2, endless).expect("it begins");
    cluster.run_for(ms(20));
    cluster.stop_bench(2);
    assert_eq!(cluster.bench_outcome(2), Err(BenchError::Stopped));
    cluster.run_for(ms(5));
    assert_eq!(cluster.node(1).bench_progress(), None);
}

#[test]
fn one_at_a_time_wherever_it_is_asked_for() {
    let mut cluster = Cluster::in_process(3);
    let long = BenchRequest { count: 100, ..request(&[1], Pacing::Every(ms(1)), Until::Own) };
    cluster.bench(1, long.clone()).expect("it begins");
    // Nobody knows of the other's yet.
    cluster.bench(2, long.clone()).expect("as far as node 2 knows");
    let by = NodeId(1);
    assert_eq!(cluster.bench_outcome(2), Err(BenchError::Running { by }));
    cluster.run_for(ms(1));
    assert_eq!(cluster.bench(3, long), Err(BenchError::Running { by }));
    assert!(is_right(&cluster.bench_outcome(1).expect("undisturbed")));
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let mut cluster = Cluster::in_process(3);
    let good = request(&[1], Pacing::Window(1), Until::Own);
    let unknown = BenchRequest { senders: vec![NodeId(9)], ..good.clone() };
    assert_eq!(cluster.bench(1, unknown), Err(BenchError::NotAMember(NodeId(9))));
    let huge = BenchRequest { size: 1 << 30, ..good.clone() };
    assert_eq!(cluster.bench(1, huge), Err(BenchError::Plan(PlanError::Size)));
    cluster.partition(&[1]);
    cluster.run_for(ms(10));
    assert_eq!(cluster.bench(1, good), Err(BenchError::NoQuorum));
}

#[test]
fn a_cluster_of_one_can_be_measured() {
    let mut cluster = Cluster::new(1);
    for until in [Until::Own, Until::All, Until::Echo] {
        let result = run(&mut cluster, 1, request(&[1], Pacing::Window(1), until));
        assert!(is_right(&result));
        assert_eq!(result.sent, [120]);
    }
}

#[test]
fn calls_are_answered_while_a_benchmark_fills_the_ring() {
    let mut cluster = Cluster::new(4);
    cluster.host_on("log", &[1, 2, 3]);
    let window = Pacing::Window(64);
    let full = BenchRequest { size: 1_024, count: 100_000, ..request(&[1, 2], window, Until::Own) };
    let client = cluster.client(1);
    cluster.bench(4, full).expect("it begins");
    for number in 1..=8 {
        cluster.run_for(ms(1));
        let call = cluster.call(client, "log", number, "a");
        assert_eq!(cluster.reply(call), Outcome::Ok(format!("{number}:a").into()));
    }
    assert!(cluster.node(4).bench_progress().is_some(), "it is still under way");
    cluster.run_for(ms(5));
    assert_eq!(cluster.state(1, "log"), cluster.state(3, "log"));
}

#[test]
fn the_wait_for_the_flow_control_is_told_apart() {
    let mut cluster = Cluster::new(3);
    let window = Pacing::Window(800);
    let request = BenchRequest { size: 1_200, count: 3_000, ..request(&[1], window, Until::Own) };
    let result = run(&mut cluster, 1, request);
    let measured = result.reports[0].1.measured.as_ref().expect("node 1 sends");
    assert!(median_us(&measured.send) >= 60, "the window of the ring is full");
    assert_eq!(median_us(&measured.send), median_us(&measured.own), "what is sent is ordered");
}
