//! The machine: what it asks for, and how often.

use steadfast_manager::{Config, Manager, Picture, Proposal, Shape};
use wire::ordered::Usage;
use wire::{Duration, GroupId, NodeId, RingId, Share, Time, ViewNumber};

fn usage(used: u64, replicas: &[(u64, u64)]) -> Usage {
    let replicas = replicas.iter().map(|(id, share)| (GroupId(*id), Share::percent(*share)));
    Usage {
        used: Share::percent(used),
        capacity: Share::ONE,
        above: used > 69,
        replicas: replicas.collect(),
        ..Usage::default()
    }
}

fn shape(id: u64, primary: u32, backups: &[u32]) -> Shape {
    let backups = backups.iter().copied().map(NodeId).collect();
    Shape { id: GroupId(id), view: ViewNumber(1), primary: NodeId(primary), backups }
}

/// As the node that leads sees it: the use of each host, from 1 on, and of the replicas there.
fn seen(usages: &[(u64, &[(u64, u64)])], groups: &[Shape]) -> Picture {
    let nodes = (1..)
        .zip(usages)
        .map(|(node, (used, replicas))| (NodeId(node), Some(usage(*used, replicas))));
    let ring = RingId { sequence: 1, representative: NodeId(1) };
    let (nodes, groups) = (nodes.collect(), groups.to_vec());
    Picture { ring, leads: true, nodes, groups, ..Picture::default() }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn manager() -> Manager {
    Manager::new(Config::default())
}

fn rank(id: u64, view: u64, order: &[u32]) -> Proposal {
    let order = order.iter().copied().map(NodeId).collect();
    Proposal::Rank { group: GroupId(id), view: ViewNumber(view), order }
}

#[test]
fn the_least_used_backup_is_to_be_tried_first_and_that_is_asked_once() {
    let mut manager = manager();
    let mut picture = seen(&[(20, &[(7, 10)]), (50, &[]), (10, &[])], &[shape(7, 1, &[2, 3])]);
    assert_eq!(manager.look(at(0), picture.clone()), [rank(7, 1, &[3, 2])]);
    assert_eq!(manager.look(at(20), picture.clone()), [], "it is on its way");
    // Another view came before: the order was void.
    picture.groups[0].view = ViewNumber(2);
    assert_eq!(manager.look(at(40), picture.clone()), [rank(7, 2, &[3, 2])]);
    // It may be lost with its ring.
    picture.ring.sequence += 1;
    assert_eq!(manager.look(at(60), picture.clone()), [rank(7, 2, &[3, 2])]);
    picture.groups[0] = Shape { view: ViewNumber(3), ..shape(7, 1, &[3, 2]) };
    assert_eq!(manager.look(at(80), picture.clone()), [], "it is so");
}

#[test]
fn noise_changes_nothing_and_a_load_does() {
    let mut manager = manager();
    let group = shape(7, 1, &[2, 3]);
    for (step, noise) in [0, 3, 1, 4, 2, 0, 4].into_iter().enumerate() {
        let picture = seen(
            &[(20 + noise, &[(7, 10)]), (30 + noise, &[]), (34 - noise, &[])],
            std::slice::from_ref(&group),
        );
        assert_eq!(manager.look(at(step as u64 * 1_000), picture.clone()), [], "{noise}");
    }
    let picture = seen(&[(20, &[(7, 10)]), (60, &[]), (30, &[])], &[group]);
    assert_eq!(manager.look(at(9_000), picture.clone()), [rank(7, 1, &[3, 2])]);
}

#[test]
fn primaries_leave_an_overloaded_host_and_it_is_left_alone_until_that_shows() {
    let mut manager = manager();
    let groups = [shape(1, 1, &[2, 3]), shape(2, 1, &[3, 2])];
    let picture = seen(&[(95, &[(1, 30), (2, 50)]), (40, &[]), (10, &[])], &groups);
    let moves = [Proposal::Move { group: GroupId(2), from: NodeId(1), to: NodeId(3) }];
    let proposals = |manager: &mut Manager, ms, picture: &Picture| -> Vec<Proposal> {
        let mut proposals = manager.look(at(ms), picture.clone());
        proposals.retain(|proposal| matches!(proposal, Proposal::Move { .. }));
        proposals
    };
    assert_eq!(proposals(&mut manager, 0, &picture), moves, "the most used, to the least used");
    assert_eq!(proposals(&mut manager, 1_000, &picture), [], "what is told is of before");
    // It has not moved: the host is asked to do the same again, when the primary has rested.
    assert_eq!(proposals(&mut manager, 11_000, &picture), moves);
}

#[test]
fn where_all_replicas_do_the_same_nothing_moves_with_a_primary() {
    let mut manager = manager();
    let replica: &[(u64, u64)] = &[(1, 60)];
    let picture = seen(&[(95, replica), (70, replica), (70, replica)], &[shape(1, 1, &[2, 3])]);
    assert_eq!(manager.look(at(0), picture.clone()), []);
}

#[test]
fn only_who_leads_proposes_and_only_of_what_was_told() {
    let mut manager = manager();
    let mut picture = seen(&[(20, &[(7, 10)]), (50, &[]), (10, &[])], &[shape(7, 1, &[2, 3])]);
    picture.leads = false;
    assert_eq!(manager.look(at(0), picture.clone()), []);
    picture.leads = true;
    // Nothing is known of one backup: it must come last, and it does.
    picture.nodes[1].1 = None;
    picture.groups[0].backups.reverse();
    assert_eq!(manager.look(at(20), picture.clone()), []);
    picture.groups[0].backups.reverse();
    // Nor is anything proposed of a group with a primary that has told nothing.
    picture.nodes[0].1 = None;
    assert_eq!(manager.look(at(40), picture.clone()), []);
}
