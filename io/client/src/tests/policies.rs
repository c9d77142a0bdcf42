//! How a client learns of targets, and which of them it asks.

use std::time::Duration;

use wire::GroupId;
use wire::client::{Bound, Frame, Outcome, Targets};
use wire::ordered::Style;

use super::cluster::{Cluster, GROUP, LATENCY, Manner, address, ms, targets};
use crate::retry_budget::Credit;
use crate::{Balancing, CallError, Policy, Reading, Refresh, RetryBudget, Strategy};

/// Nodes 1 to `count`, all replicas of a group of this style, and a client that does this with
/// targets.
fn plain(count: u32, style: Style, policy: Policy) -> Cluster {
    let all: Vec<u32> = (1..=count).collect();
    let mut cluster = Cluster::new(count);
    cluster.all_say(Targets { style, ..targets(1, &all) });
    cluster.session.set_policy(policy);
    cluster
}

/// The same, which has called once.
fn like(count: u32, style: Style, policy: Policy) -> Cluster {
    let mut cluster = plain(count, style, policy);
    cluster.finish(ms(1_000)).unwrap();
    cluster.run(ms(5));
    cluster.requests.clear();
    cluster
}

fn strategy(strategy: Strategy) -> Policy {
    Policy { strategy, ..Policy::default() }
}

fn balanced(balancing: Balancing) -> Policy {
    Policy::default().balancing(balancing)
}

/// How many requests went to each of nodes 1 to 3.
fn shares(cluster: &Cluster) -> [usize; 3] {
    [1, 2, 3].map(|node| cluster.requests.iter().filter(|(_, to, _)| *to == address(node)).count())
}

/// A reply that tells newer targets: node 2 is first now.
fn news(cluster: &mut Cluster) {
    let told = Targets { style: Style::Stateless, ..targets(2, &[2, 3]) };
    cluster.all_say(told.clone());
    cluster.node(1).script.push_back(Manner::Answer(Outcome::Ok("done".into()), Some(told)));
    cluster.finish(ms(1_000)).unwrap();
    cluster.requests.clear();
}

#[test]
fn a_static_client_learns_nothing_but_who_has_failed() {
    let mut cluster = like(3, Style::Stateless, strategy(Strategy::Static));
    news(&mut cluster);
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(shares(&cluster), [1, 0, 0]);
    cluster.kill(1);
    let binds = cluster.binds.len();
    cluster.run(ms(1));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(shares(&cluster), [1, 1, 0], "the next of those that were told first");
    assert_eq!(cluster.binds.len(), binds, "nobody is asked");
}

#[test]
fn a_reactive_client_asks_after_a_failure_and_then_goes_where_it_is_told() {
    let mut cluster = like(3, Style::Stateless, strategy(Strategy::Reactive));
    cluster.node(1).manner = Manner::AckLevel;
    let told = Targets { style: Style::Stateless, ..targets(2, &[3, 2]) };
    cluster.all_say(told);
    let call = cluster.call(ms(1_000));
    cluster.run(ms(1));
    let binds = cluster.binds.len();
    cluster.kill(1);
    let killed = cluster.now;
    cluster.result(call).unwrap();
    assert_eq!(cluster.binds.len(), binds + 1);
    assert_eq!(cluster.path(2), [address(1), address(3)]);
    assert_eq!(cluster.now - killed, LATENCY * 5, "the news, the question, the call");
}

#[test]
fn a_proactive_client_goes_to_the_next_at_once() {
    let mut cluster = like(3, Style::Stateless, Policy::default());
    cluster.node(1).manner = Manner::AckLevel;
    let call = cluster.call(ms(1_000));
    cluster.run(ms(1));
    cluster.kill(1);
    let killed = cluster.now;
    cluster.result(call).unwrap();
    assert_eq!(cluster.now - killed, LATENCY * 3);
}

#[test]
fn a_reactive_client_that_nobody_tells_more_goes_on_with_what_it_has() {
    let mut cluster = like(3, Style::Stateless, strategy(Strategy::Reactive));
    cluster.kill(1);
    cluster.run(ms(1));
    cluster.finish(ms(1_000)).unwrap();
    cluster.node(2).manner = Manner::AckLevel;
    let call = cluster.call(ms(1_000));
    cluster.run(ms(1));
    cluster.node(3).bound = None;
    cluster.kill(2);
    cluster.result(call).unwrap();
    assert_eq!(cluster.path(3), [address(2), address(3)]);
}

#[test]
fn view_refresh_learns_from_replies_and_no_refresh_does_not() {
    for (refresh, goes) in [(Refresh::View, [0, 1, 0]), (Refresh::None, [1, 0, 0])] {
        let mut cluster = like(3, Style::Stateless, Policy { refresh, ..Policy::default() });
        news(&mut cluster);
        cluster.finish(ms(1_000)).unwrap();
        assert_eq!(shares(&cluster), goes, "{refresh:?}");
    }
}

#[test]
fn periodic_refresh_asks_once_in_a_period_also_when_idle() {
    let refresh = Refresh::Periodic(ms(50));
    let mut cluster = plain(3, Style::Stateless, Policy { refresh, ..Policy::default() });
    cluster.finish(ms(1_000)).unwrap();
    let before = cluster.binds.len();
    cluster.run(ms(1_000));
    let asked = cluster.binds.len() - before;
    assert!((19..=20).contains(&asked), "{asked}");
    assert_eq!(cluster.session.stats().refreshes, asked as u64);
    cluster.all_say(Targets { style: Style::Stateless, ..targets(2, &[3, 1]) });
    cluster.run(ms(51));
    cluster.requests.clear();
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(shares(&cluster), [0, 0, 1]);
}

#[test]
fn the_first_question_of_a_period_comes_at_a_random_part_of_it() {
    let period = Duration::from_secs(15);
    let first = |seed| {
        let addresses = vec![address(1)];
        let policy = Policy { refresh: Refresh::Periodic(period), ..Policy::default() };
        let config = crate::Config::new(wire::ClientId(seed), addresses, seed);
        let mut cluster = plain(1, Style::Stateless, policy);
        cluster.session = crate::Session::new(crate::Config { policy, ..config }, cluster.now);
        let begun = cluster.now;
        cluster.finish(ms(1_000)).unwrap();
        let before = cluster.binds.len();
        cluster.run(period);
        assert_eq!(cluster.binds.len(), before + 1);
        cluster.binds[before].0 - begun
    };
    let firsts: Vec<Duration> = (1..=40).map(first).collect();
    let early = firsts.iter().filter(|first| **first < period / 2).count();
    assert!((10..=30).contains(&early), "{firsts:?}");
}

#[test]
fn uniform_anycast_shares_calls_where_several_answer_and_only_there() {
    for style in [Style::Stateless, Style::Active, Style::Voting] {
        let mut cluster = like(3, style, balanced(Balancing::Random));
        (0..300).for_each(|_| drop(cluster.finish(ms(1_000)).unwrap()));
        assert!(shares(&cluster).iter().all(|share| (60..=140).contains(share)), "{style:?}");
    }
    for style in [Style::SemiActive, Style::WarmPassive, Style::ColdPassive] {
        let mut cluster = like(3, style, balanced(Balancing::Random));
        (0..20).for_each(|_| drop(cluster.finish(ms(1_000)).unwrap()));
        assert_eq!(shares(&cluster), [20, 0, 0], "{style:?}");
        for _ in 0..60 {
            let read = cluster.read(ms(1_000), Reading::Linearizable);
            cluster.result(read).unwrap();
        }
        assert!(shares(&cluster).iter().skip(1).all(|share| *share > 5), "reads of {style:?}");
    }
}

#[test]
fn by_load_the_slow_replica_gets_less_and_is_not_forgotten() {
    for balancing in [Balancing::LeastLoaded, Balancing::TwoChoices] {
        let mut cluster = like(3, Style::Stateless, balanced(balancing));
        cluster.node(2).manner = Manner::Later(ms(10), Outcome::Ok("done".into()));
        (0..300).for_each(|_| drop(cluster.finish(ms(1_000)).unwrap()));
        let [_, slow, _] = shares(&cluster);
        assert!((1..30).contains(&slow), "{balancing:?}: {slow}");
        cluster.node(2).manner = Manner::ok();
        cluster.run(Duration::from_secs(20));
        cluster.requests.clear();
        (0..100).for_each(|_| drop(cluster.finish(ms(1_000)).unwrap()));
        assert!(shares(&cluster)[1] > 10, "{balancing:?}: {:?}", shares(&cluster));
    }
}

#[test]
fn by_load_calls_under_way_count() {
    let mut cluster = like(3, Style::Stateless, balanced(Balancing::LeastLoaded));
    for node in 1..=3 {
        cluster.node(node).manner = Manner::Later(ms(5), Outcome::Ok("done".into()));
    }
    let calls: Vec<_> = (0..30).map(|_| cluster.call(ms(1_000))).collect();
    assert!(
        shares(&cluster).iter().all(|share| (5..=15).contains(share)),
        "{:?}",
        shares(&cluster)
    );
    calls.into_iter().for_each(|call| drop(cluster.result(call).unwrap()));
}

#[test]
fn anycast_leaves_out_who_has_failed() {
    let mut cluster = like(3, Style::Stateless, balanced(Balancing::Random));
    cluster.run(ms(10));
    cluster.kill(2);
    cluster.run(ms(1));
    (0..50).for_each(|_| drop(cluster.finish(ms(1_000)).unwrap()));
    assert_eq!(shares(&cluster)[1], 0);
    cluster.node(2).up = true;
    cluster.run(ms(800));
    (0..50).for_each(|_| drop(cluster.finish(ms(1_000)).unwrap()));
    assert!(shares(&cluster)[1] > 5, "it is dialled again without being the first");
}

#[test]
fn a_target_that_returns_is_preferred_when_it_has_been_good_for_some_time() {
    let fail_back = ms(300);
    let mut cluster = like(3, Style::Stateless, Policy { fail_back, ..Policy::default() });
    cluster.kill(1);
    cluster.run(ms(1));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(shares(&cluster), [0, 1, 0]);
    cluster.node(1).up = true;
    while !cluster.is_connected(1) {
        cluster.run(ms(1));
    }
    cluster.run(ms(290));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(shares(&cluster), [0, 2, 0]);
    // It comes and goes: the time begins anew.
    cluster.kill(1);
    cluster.run(ms(1));
    cluster.node(1).up = true;
    while !cluster.is_connected(1) {
        cluster.run(ms(1));
    }
    cluster.run(ms(290));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(shares(&cluster), [0, 3, 0]);
    cluster.run(ms(20));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(shares(&cluster), [1, 3, 0]);
}

#[test]
fn who_has_just_returned_is_asked_if_nobody_else_is_there_and_as_primary() {
    let fail_back = ms(10_000);
    let mut cluster = like(2, Style::Stateless, Policy { fail_back, ..Policy::default() });
    cluster.kill(1);
    cluster.run(ms(1));
    cluster.node(1).up = true;
    cluster.run(ms(100));
    cluster.kill(2);
    cluster.run(ms(1));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(shares(&cluster), [1, 0, 0]);

    let mut cluster = like(2, Style::SemiActive, Policy { fail_back, ..Policy::default() });
    cluster.kill(1);
    cluster.run(ms(1));
    cluster.node(1).up = true;
    cluster.run(ms(100));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(shares(&cluster), [1, 0, 0], "of such a group only the primary orders");
}

#[test]
fn retries_beyond_the_budget_wait_for_credit() {
    let mut cluster = like(3, Style::Stateless, Policy::default());
    let few = RetryBudget { per_thousand: 0, per_second: 10, burst: 1 };
    cluster.session.credit = Credit::new(few, cluster.now);
    cluster.node(1).manner = Manner::AckLevel;
    let calls = [cluster.call(ms(1_000)), cluster.call(ms(1_000))];
    cluster.run(ms(1));
    cluster.kill(1);
    let killed = cluster.now;
    for call in calls {
        cluster.result(call).unwrap();
    }
    let ends = calls.map(|call| cluster.done[&call].0 - killed);
    assert_eq!(ends[0], LATENCY * 3);
    assert!(ends[1] > ms(99) && ends[1] < ms(102), "{ends:?}");
    assert_eq!(cluster.session.stats().retries, 2);
}

#[test]
fn a_call_that_gets_no_credit_says_so_at_its_deadline() {
    let mut cluster = like(3, Style::Stateless, Policy::default());
    let few = RetryBudget { per_thousand: 0, per_second: 1, burst: 1 };
    cluster.session.credit = Credit::new(few, cluster.now);
    cluster.session.credit.spend(cluster.now).unwrap();
    cluster.node(1).manner = Manner::AckLevel;
    let call = cluster.call(ms(400));
    cluster.run(ms(1));
    cluster.kill(1);
    let error = cluster.result(call).unwrap_err();
    assert_eq!(error, CallError::RetriesSpent);
    assert_eq!(error.was_executed(), None);
    assert_eq!(cluster.requests.len(), 1);
}

#[test]
fn a_silent_replica_is_left_within_the_deadline_in_every_style() {
    use Style::{Active, ColdPassive, SemiActive, Stateless, Voting, WarmPassive};
    for style in [Stateless, ColdPassive, WarmPassive, SemiActive, Active, Voting] {
        let mut cluster = like(3, style, Policy::default());
        cluster.node(1).manner = Manner::AckLevel;
        let before = cluster.now;
        cluster.finish(ms(200)).unwrap();
        assert!(cluster.now - before < ms(52), "{style:?}");
        assert_eq!(cluster.path(2), [address(1), address(2)], "{style:?}: the same number");
    }
}

#[test]
fn a_group_may_have_a_policy_of_its_own() {
    let group_policies = [(GROUP.to_string(), balanced(Balancing::Random))].into();
    let config = crate::Config::new(wire::ClientId(5), vec![address(1)], 3);
    let mut cluster = plain(3, Style::Stateless, Policy::default());
    cluster.session = crate::Session::new(crate::Config { group_policies, ..config }, cluster.now);
    (0..60).for_each(|_| drop(cluster.finish(ms(1_000)).unwrap()));
    assert!(shares(&cluster).iter().all(|share| *share > 5));
}

fn pushed(view: u64, nodes: &[u32]) -> Frame {
    let told = Targets { style: Style::Stateless, ..targets(view, nodes) };
    Frame::News(Bound { group: GroupId::of(GROUP), targets: Some(told) })
}

#[test]
fn a_proactive_client_watches_where_it_is_connected_and_goes_where_it_is_told_while_idle() {
    let mut cluster = like(3, Style::Stateless, Policy::default());
    let watched: Vec<_> = cluster.watches.iter().map(|(at, watch)| (*at, watch.view.0)).collect();
    assert_eq!(watched, [(address(1), 1), (address(2), 1)], "once each");
    let link = cluster.link_to(2);
    cluster.inject(link, pushed(2, &[3, 2]));
    cluster.run(ms(1));
    assert!(cluster.is_connected(3), "before it is needed");
    assert_eq!(cluster.watches.len(), 3, "and watched, too");
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(shares(&cluster), [0, 0, 1]);
    cluster.inject(link, pushed(1, &[1, 2]));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(shares(&cluster), [0, 0, 2], "an older view is no news");
}

#[test]
fn who_returns_is_watched_again() {
    let mut cluster = like(2, Style::Stateless, Policy::default());
    cluster.kill(2);
    cluster.run(ms(1));
    cluster.node(2).up = true;
    cluster.run(ms(600));
    let again = cluster.watches.iter().filter(|(at, _)| *at == address(2)).count();
    assert_eq!(again, 2);
}

/// Simulator seed 729809: they told of nothing up to the view that was known before.
#[test]
fn who_falls_back_to_an_older_view_watches_anew() {
    let mut cluster = like(2, Style::Stateless, Policy::default());
    cluster.inject(cluster.link_to(2), pushed(7, &[1, 2]));
    let group = GroupId::of(GROUP);
    cluster.session.groups.get_mut(&group).expect("it is bound").doubt = true;
    let before = cluster.watches.len();
    let older = Targets { style: Style::Stateless, ..targets(3, &[1, 2]) };
    cluster.inject(cluster.link_to(2), Frame::Bound(Bound { group, targets: Some(older) }));
    cluster.run(ms(1));
    let views: Vec<u64> = cluster.watches[before..].iter().map(|(_, watch)| watch.view.0).collect();
    assert_eq!(views, [3, 3]);
}

#[test]
fn others_do_not_watch_and_do_not_believe_what_is_pushed() {
    for strategy in [Strategy::Reactive, Strategy::Static] {
        let mut cluster = like(3, Style::Stateless, Policy { strategy, ..Policy::default() });
        assert!(cluster.watches.is_empty());
        let link = cluster.link_to(1);
        cluster.inject(link, pushed(2, &[3, 2]));
        cluster.finish(ms(1_000)).unwrap();
        assert_eq!(shares(&cluster), [1, 0, 0], "{strategy:?}");
    }
}

#[test]
fn calls_and_reads_say_how_critical_they_are_by_the_policy_of_their_group() {
    let said = |of_group: Option<Policy>| -> Vec<u8> {
        let policy = Policy { priority: 7, ..Policy::default() };
        let mut cluster = plain(1, Style::SemiActive, policy);
        if let Some(of_group) = of_group {
            cluster.session.set_policy_of(GROUP, of_group);
        }
        cluster.finish(ms(1_000)).unwrap();
        let read = cluster.read(ms(1_000), Reading::Linearizable);
        cluster.result(read).unwrap();
        cluster.requests.iter().map(|(_, _, request)| request.priority).collect()
    };
    assert_eq!(said(None), [7, 7]);
    assert_eq!(said(Some(Policy { priority: 200, ..Policy::default() })), [200, 200]);
    assert_eq!(said(Some(Policy::default())), [0, 0], "as of who says nothing");
}

#[test]
fn a_read_that_a_backup_declines_goes_to_the_first_in_rank() {
    for balancing in [Balancing::Random, Balancing::LeastLoaded, Balancing::TwoChoices] {
        let mut cluster = like(3, Style::WarmPassive, balanced(balancing));
        for node in [2, 3] {
            cluster.node(node).manner = Manner::Answer(Outcome::NotPrimary, None);
        }
        for _ in 0..20 {
            let read = cluster.read(ms(1_000), Reading::Linearizable);
            cluster.result(read).unwrap();
        }
        assert!(cluster.requests.len() <= 40, "{balancing:?}: {}", cluster.requests.len());
    }
}
