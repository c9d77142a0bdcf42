//! A distribution policy of one's own: near a certain cell first, and never on hosts that are kept
//! for others.
//!
//! `cargo run -p steadfast-manager --example own_policy`
#![allow(clippy::print_stdout, reason = "it is an example")]

use std::collections::BTreeMap;

use steadfast_manager::placement::policy::{Cost, Distribution, Host, Load};
use wire::{NodeId, Share};

/// Replicas are to be in this cell. Elsewhere each is a flaw: it moves here as soon as there is
/// room.
struct Near(&'static str);

impl Distribution for Near {
    fn cost(&self, host: &Host<'_>, _beside: &[Host<'_>]) -> Option<Cost> {
        if host.labels.contains_key("reserved") {
            return None;
        }
        let is_here = host.labels.get("cell").is_some_and(|cell| cell == self.0);
        Some(Cost { flaws: u32::from(!is_here), load: Load::of(host) })
    }
}

fn main() {
    let nodes = [
        (1, "north", None, 10),
        (2, "south", None, 60),
        (3, "south", None, 20),
        (4, "south", Some("batch"), 0),
    ];
    let labels: Vec<BTreeMap<String, String>> = nodes
        .iter()
        .map(|(_, cell, reserved, _)| {
            let cell = Some(("cell".to_string(), cell.to_string()));
            let reserved = reserved.map(|who| ("reserved".to_string(), who.to_string()));
            cell.into_iter().chain(reserved).collect()
        })
        .collect();
    let host = |((node, _, _, used), labels)| Host {
        node: NodeId(node),
        labels,
        capacity: Share::ONE,
        used: Some(Share::percent(used)),
        replicas: 0,
    };
    let hosts: Vec<Host<'_>> = nodes.into_iter().zip(&labels).map(host).collect();
    let mut costs: Vec<(Cost, NodeId)> =
        hosts.iter().filter_map(|host| Some((Near("south").cost(host, &[])?, host.node))).collect();
    costs.sort_unstable();
    let order: Vec<NodeId> = costs.into_iter().map(|(_, node)| node).collect();
    assert_eq!(order, [NodeId(3), NodeId(2), NodeId(1)]);
    println!("the best host is {}, then {:?}; n4 is kept for others", order[0], &order[1..]);
}
