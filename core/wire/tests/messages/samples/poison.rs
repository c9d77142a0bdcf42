//! Calls that kill every service that executes them.

use wire::ordered::{Poison, Poisoned, Progress, Trial};
use wire::{ClientId, GroupId, MethodId, NodeId, Time};

pub fn trial() -> Trial {
    Trial { node: NodeId(3), deaths: vec![NodeId(1), NodeId(2)], answered: true, beside: false }
}

pub fn progress(trial: Option<Trial>) -> Progress {
    Progress { group: GroupId(0xa1), executed: 0x66, trial }
}

pub fn poisoned() -> Poisoned {
    Poisoned { group: GroupId(0xa1), number: 0x67, nodes: vec![NodeId(1), NodeId(3)] }
}

pub fn poison() -> Poison {
    Poison {
        number: 0x67,
        client: ClientId(0xc1),
        call: 9,
        method: MethodId(0xb1),
        json: true,
        time: Time(0xd1),
        nodes: vec![NodeId(1), NodeId(3)],
        size: 300,
        body: b"poison".to_vec(),
    }
}
