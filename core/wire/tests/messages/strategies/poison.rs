//! Calls that kill every service that executes them.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::limits::MAX_DEATHS;
use wire::ordered::{Died, Poison, Poisoned, Progress, Trial};
use wire::{ClientId, GroupId, MethodId, NodeId, Time};

use super::bytes;

pub fn died() -> impl Strategy<Value = Died> {
    let ahead = vec(any::<(u64, u64)>(), 0..3);
    (0..u64::MAX / 2, 0..u64::MAX / 2, ahead).prop_map(|(executed, given, ahead)| Died {
        executed,
        given,
        ahead: ahead.into_iter().map(|(client, number)| (ClientId(client), number)).collect(),
    })
}

fn node() -> impl Strategy<Value = NodeId> {
    any::<u32>().prop_map(NodeId)
}

pub fn progress() -> impl Strategy<Value = Progress> {
    let trial = (node(), vec(node(), 0..=MAX_DEATHS), any::<[bool; 2]>());
    let trial = trial.prop_map(|(node, deaths, [answered, beside])| Trial {
        node,
        deaths,
        answered,
        beside,
    });
    (any::<u64>(), 0..u64::MAX / 2, option::of(trial))
        .prop_map(|(group, executed, trial)| Progress { group: GroupId(group), executed, trial })
}

pub fn poisoned() -> impl Strategy<Value = Poisoned> {
    (any::<u64>(), 1..u64::MAX / 2, vec(node(), 0..=MAX_DEATHS))
        .prop_map(|(group, number, nodes)| Poisoned { group: GroupId(group), number, nodes })
}

pub fn poison() -> impl Strategy<Value = Poison> {
    (any::<[u64; 5]>(), any::<u32>(), any::<bool>(), vec(node(), 0..=MAX_DEATHS), bytes(64))
        .prop_map(|([number, client, call, time, size], method, json, nodes, body)| Poison {
            number,
            client: ClientId(client),
            call,
            method: MethodId(method),
            json,
            time: Time(time),
            nodes,
            size,
            body: body.to_vec(),
        })
}
