//! How long each member waits for the token, while others have more to send than they can.

use std::collections::BTreeMap;

use steadfast_ring::{Config, Level};
use wire::ring::{Datagram, Message, Token};
use wire::{Duration, NodeId, Random, RingId};

use super::{CLUSTER, Cluster, Seen, Tune, check, micros, millis};

/// Greedy and modest senders, with or without loss and parking, as the seed draws.
pub fn run(seed: u64, mut tune: Tune) {
    let mut random = Random::new(seed);
    let n = 3 + random.below(4) as usize;
    tune.parking = !random.one_in(3);
    tune.turn = [1, 4, 16][random.below(3) as usize];
    let mut cluster = Cluster::started(n, tune);
    cluster.keep = Some(Vec::new());
    cluster.weather().loss = [0, 0, 10, 100][random.below(4) as usize];
    cluster.weather().pace = micros(random.below(10));
    let greedy = 1 + random.below(n as u64 - 1) as usize;
    for _ in 0..100 {
        for node in 0..greedy {
            while cluster.ring(node).queued() < 200 {
                cluster.multicast(node, 1_000);
            }
        }
        if random.one_in(3) {
            cluster.multicast(greedy + random.below((n - greedy) as u64) as usize, 10);
        }
        cluster.run(micros(random.below(1_000)));
    }
    check::all(&cluster);
    visits(&cluster, n);
}

/// Every token that was sent, by ring and hop.
fn tokens(cluster: &Cluster) -> BTreeMap<(RingId, u64), (usize, Token)> {
    let kept = cluster.keep.as_ref().expect("kept").iter();
    let messages = kept.map(|(to, bytes)| {
        (*to, Datagram::decode(CLUSTER, wire::versions::RING, bytes).unwrap().message)
    });
    let tokens = messages.filter_map(|(to, message)| match message {
        Message::Token(token) => Some(((token.ring, token.hop), (to, token))),
        _ => None,
    });
    tokens.collect()
}

/// Says of each member that stands in the token's wants, that it gets the token before another gets
/// it twice, and that nobody gives out more than a turn's numbers while others want it.
fn visits(cluster: &Cluster, n: usize) {
    let tokens = tokens(cluster);
    let turn = cluster.tune.turn as u64;
    for (((ring, hop), (to, token)), (next, (_, after))) in tokens.iter().zip(tokens.iter().skip(1))
    {
        if *next != (*ring, hop + 1) || token.arus.len() != n {
            continue; // Another ring, in which the members' numbers differ.
        }
        let wanted = token.wants & !(1 << to) != 0 || !cluster.tune.parking;
        let given = after.sequence - token.sequence;
        assert!(!wanted || given <= turn, "{ring} hop {hop}: {given} datagrams in a turn");
        for member in (0..n).filter(|member| token.wants >> member & 1 == 1) {
            let mut seen = 0u64;
            for pass in *hop.. {
                let Some((to, _)) = tokens.get(&(*ring, pass)) else { break };
                if *to == member {
                    break;
                }
                assert!(seen >> to & 1 == 0, "{ring} hop {pass}: n{to} twice before n{member}");
                seen |= 1 << to;
            }
        }
    }
}

/// One node has all it can send, another a message now and then.
pub fn modest(n: usize, tune: Tune) {
    let turn = tune.turn;
    let mut cluster = Cluster::started(n, tune);
    cluster.weather().pace = micros(2);
    let mut longest = Duration::ZERO;
    for round in 0..50 {
        for node in 1..n {
            while cluster.ring(node).queued() < 400 {
                cluster.multicast(node, 1_000);
            }
        }
        cluster.run(micros(300 + 7 * round));
        let before = cluster.now();
        cluster.multicast_at(Level::Agreed, 0, 10);
        let mine = |seen: &Seen| matches!(seen, Seen::Delivery(d) if d.sender.node.0 == 0);
        let sent = cluster.lives[0].sent.len();
        cluster.run_until(100, |c| {
            c.ring(0).queued() == 0 && c.lives[0].seen.iter().filter(|s| mine(s)).count() == sent
        });
        longest = longest.max(cluster.now().since(before));
    }
    let bound = bound(&cluster, n, turn);
    println!("{n} nodes: waited {longest:?} of at most {bound:?}");
    assert!(longest <= bound, "{longest:?} is more than {bound:?}");
    assert!(cluster.now() > wire::Time::ZERO + millis(1));
}

/// docs/protocol/ring.md, "Longest wait for the token".
fn bound(cluster: &Cluster, n: usize, turn: usize) -> Duration {
    let nodes = (0..n as u32).map(NodeId).collect();
    let mut config = Config::new(CLUSTER, cluster.life(0).member, nodes);
    (config.window, config.turn) = (cluster.tune.window, turn);
    config.timing = cluster.tune.timing;
    config.longest_wait(n, cluster.delay(), cluster.world.network.weather().pace * (n as u32 - 1))
}
