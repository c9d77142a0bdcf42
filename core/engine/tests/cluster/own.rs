//! Calls that a node makes in its own name, and the group that clients cannot reach.

use bytes::Bytes;
use wire::client::Outcome;
use wire::system::MANAGER;
use wire::{GroupId, MethodId, Time};

use crate::base::Base;
use crate::harness::{Cluster, ms};

fn call<O: Base>(cluster: &mut Cluster<O>, node: u32, body: &str) -> u64 {
    let (group, method) = (GroupId::of(MANAGER), MethodId::of("append"));
    let body = Bytes::copy_from_slice(body.as_bytes());
    cluster.ask(node, |stack, now| stack.call(now, Time(1), (group, method), body, ms(1_000)))
}

pub fn a_node_calls_its_own_group_in_its_own_name<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on(MANAGER, &[1, 2, 3]);
    // From the primary, from backups, several at a time: each once, in one order.
    let numbers: Vec<(u32, u64)> =
        [1, 2, 3, 2].map(|node| (node, call(&mut cluster, node, "x"))).to_vec();
    cluster.run_for(ms(20));
    for (node, number) in numbers {
        let outcome = cluster.own_outcome(node, number);
        assert!(matches!(outcome, Some(Outcome::Ok(_))), "n{node}: {outcome:?}");
    }
    assert_eq!(cluster.state(1, MANAGER).len(), 4);
    for node in [2, 3] {
        assert_eq!(cluster.state(node, MANAGER), cluster.state(1, MANAGER));
    }
    // The primary dies with a call of the other's under way.
    let number = call(&mut cluster, 3, "y");
    cluster.kill(1);
    cluster.run_for(ms(900));
    assert!(matches!(cluster.own_outcome(3, number), Some(Outcome::Ok(_))));
    assert_eq!(cluster.state(3, MANAGER).len(), 5);
    // Where there is no replica nothing comes of it.
    let number = call(&mut cluster, 4, "z");
    cluster.run_for(ms(1_500));
    assert!(!matches!(cluster.own_outcome(4, number), Some(Outcome::Ok(_))));
    assert_eq!(cluster.state(3, MANAGER).len(), 5);
}

pub fn the_managers_group_is_not_there_for_clients<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on(MANAGER, &[1, 2, 3]);
    let client = cluster.client(1);
    let call = cluster.call(client, MANAGER, 1, "a");
    cluster.run_for(ms(50));
    assert_eq!(cluster.whole_reply(call).outcome, Outcome::NoSuchGroup);
    assert!(cluster.state(1, MANAGER).is_empty(), "nothing was executed");
}
