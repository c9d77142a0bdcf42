//! A member reads its socket so slowly that the others wait for it: it is excluded within the bound
//! that docs/protocol/ring.md states, and nobody else is.

use steadfast_ring::{Charge, Event, Timing};
use wire::{Duration, NodeId, Time};

use super::{Cluster, Tune, micros, millis};

/// The timers that a node has by default.
pub fn defaults() -> Tune {
    Tune { timing: Timing::default(), window: 64, turn: 16, accelerated: 2, ..Tune::default() }
}

/// A ring of `n` in a network that takes 10 us for each copy of a datagram, and 10 us to carry it.
pub fn ring(n: usize, tune: Tune) -> Cluster {
    let mut cluster = Cluster::started(n, tune);
    cluster.weather().pace = PACE;
    cluster.weather().latency = PACE;
    cluster.world.steps_left = 20_000_000;
    cluster
}

/// The nodes reported as slow since then, by any member.
pub fn told_slow(cluster: &Cluster, since: Time) -> Vec<NodeId> {
    let events = cluster.lives.iter().flat_map(|life| &life.events);
    let slow = events.filter(|(at, _)| *at >= since).filter_map(|(_, event)| match event {
        Event::TooSlow { member, .. } => Some(member.node),
        _ => None,
    });
    let mut slow: Vec<_> = slow.collect();
    slow.sort_unstable();
    slow.dedup();
    slow
}

/// The charges against slow members, as any member reports them.
fn charges(cluster: &Cluster) -> impl Iterator<Item = Charge> {
    let events = cluster.lives.iter().flat_map(|life| &life.events);
    events.filter_map(|(_, event)| match event {
        Event::TooSlow { charge, .. } => *charge,
        _ => None,
    })
}

/// The first `senders` have always something to send, for so long.
pub fn load(cluster: &mut Cluster, senders: usize, span: Duration) {
    let end = cluster.now() + span;
    while cluster.now() < end {
        for node in 0..senders {
            while cluster.ring(node).queued() < 200 {
                cluster.multicast(node, 1_000);
            }
        }
        cluster.run(millis(1));
    }
}

/// How long a member may stay that stops the others for three quarters of the time:
/// docs/protocol/ring.md, "Slow receivers".
pub fn bound(tune: &Tune) -> Duration {
    tune.timing.slow_limit * 100 / (75 - tune.slow_share)
}

/// The network's time for each copy of a datagram.
const PACE: Duration = Duration::from_micros(10);

/// Loads a ring of `n` by these senders, makes the last member slow, and tells how long it stayed.
pub fn slow_reader(n: usize, senders: usize, each: Duration, tune: Tune) -> Duration {
    let mut cluster = ring(n, tune);
    load(&mut cluster, senders, millis(20));
    cluster.world.read_slowly(n - 1, each);
    let before = cluster.now();
    let bound = bound(&cluster.tune);
    while cluster.ring(0).members().len() == n {
        let took = cluster.now().since(before);
        assert!(
            took <= bound,
            "the slow one is in the ring after {took:?}, the bound is {bound:?}"
        );
        load(&mut cluster, senders, millis(5));
    }
    let took = cluster.now().since(before);
    for Charge { stopped, within, limit, share } in charges(&cluster) {
        let Tune { timing, slow_share, .. } = cluster.tune;
        assert_eq!((limit, share), (timing.slow_limit, slow_share), "what is granted there");
        let granted = limit + within * share / 100;
        assert!(stopped <= granted + millis(1), "{stopped:?} of {within:?}: more than {granted:?}");
    }
    assert_eq!(told_slow(&cluster, before), [NodeId(n as u32 - 1)], "it and nobody else");
    took
}

/// Members that keep up, in a ring of `n` under load with some loss, with a small window: nobody is
/// to blame.
pub fn nobody_is_slow(n: usize, senders: usize, window: usize, tune: Tune) {
    let mut tune = Tune { window, turn: tune.turn.min(window), ..tune };
    tune.timing.slow_limit = tune.timing.token_timeout_max;
    let mut cluster = ring(n, tune);
    cluster.weather().loss = 5;
    cluster.weather().jitter = micros(20);
    let before = cluster.now();
    load(&mut cluster, senders, millis(600));
    assert_eq!(told_slow(&cluster, before), [], "{n} nodes, {senders} senders, window {window}");
    assert_eq!(cluster.ring(0).members().len(), n);
}
