//! Backups that are ranked, and hosts that tell what they have to do.

use steadfast_engine::Event;
use wire::ordered::Usage;
use wire::{GroupId, NodeId, Share};

use crate::base::Base;
use crate::harness::{Cluster, ms};

fn usage(percent: u64, above: bool) -> Usage {
    let replicas = vec![(GroupId::of("log"), Share::percent(percent / 2))];
    Usage {
        used: Share::percent(percent),
        capacity: Share::ONE,
        above,
        replicas,
        ..Usage::default()
    }
}

pub fn clients_get_the_order_in_which_backups_are_ranked<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3, 4]);
    let client = cluster.client(1);
    cluster.learn_view(client, "log");
    let picture = cluster.node(1).picture();
    let shape = picture.groups[0].clone();
    assert_eq!((shape.primary, &shape.backups[..]), (NodeId(1), &[2, 3, 4].map(NodeId)[..]));
    let rank = |cluster: &mut Cluster<O>, view, order: &[u32]| {
        let order = order.iter().copied().map(NodeId).collect();
        cluster.ask(5, |stack, now| stack.rank(now, GroupId::of("log"), view, order))
    };
    assert!(!rank(&mut cluster, shape.view, &[2, 3]), "it is so");
    assert!(rank(&mut cluster, shape.view, &[4, 1, 3]), "2 is not named, and 1 is no backup");
    cluster.run_for(ms(2));
    assert_eq!(cluster.replicas("log"), [1, 4, 3, 2]);
    assert!(!rank(&mut cluster, shape.view, &[2]), "of a view that is over");
    let call = cluster.call(client, "log", 1, "a");
    let targets = cluster.whole_reply(call).targets.expect("the targets are news");
    let nodes: Vec<u32> = targets.nodes.iter().map(|target| target.node.0).collect();
    assert_eq!(nodes, [1, 4, 3, 2]);
    let tells = |event: &Event| match event {
        Event::Ranked { order, .. } => order.iter().map(|m| m.node.0).eq([4, 3, 2]),
        _ => false,
    };
    assert!((1..=5).all(|node| cluster.told(node, tells)), "everybody is told");
    cluster.kill(1);
    cluster.run_for(ms(500));
    assert_eq!(cluster.primary(2, "log"), Some(4), "who is first takes over");
}

pub fn what_hosts_tell_is_known_to_all_until_they_are_gone<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    let is_first = |cluster: &Cluster<O>, node| cluster.node(node).picture().leads;
    assert!(is_first(&cluster, 1) && !is_first(&cluster, 2));
    let before = cluster.node(4).changes();
    assert!(cluster.ask(2, |stack, now| stack.tell_usage(now, usage(40, false))));
    assert!(cluster.ask(3, |stack, now| stack.tell_usage(now, usage(90, true))));
    cluster.run_for(ms(2));
    assert!(cluster.node(4).changes() > before, "there is something to look at");
    for node in 1..=5 {
        let picture = cluster.node(node).picture();
        assert_eq!(picture.usage(NodeId(1)), None);
        assert_eq!(picture.usage(NodeId(2)), Some(&usage(40, false)));
        assert_eq!(picture.usage(NodeId(3)), Some(&usage(90, true)));
    }
    let over =
        |event: &Event| matches!(event, Event::Overloaded { member, .. } if member.node.0 == 3);
    let well =
        |event: &Event| matches!(event, Event::Relieved { member, .. } if member.node.0 == 3);
    assert!(cluster.told(5, over) && !cluster.told(5, well));
    assert!(cluster.ask(3, |stack, now| stack.tell_usage(now, usage(50, false))));
    cluster.run_for(ms(2));
    assert!(cluster.told(5, well));
    cluster.kill(3);
    cluster.kill(1);
    cluster.run_for(ms(500));
    assert_eq!(cluster.node(4).picture().usage(NodeId(3)), None);
    assert!(is_first(&cluster, 2), "the next one manages");
}
