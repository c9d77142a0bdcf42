//! Groups on disk, when lives are over: who may go on, and when.

use super::*;
use wire::ordered::{Durability, Recall};

/// A disk's entry of a group whose only replica with the state was node 1's, in a life that is
/// over. All requests up to `floor` were answered before.
fn stored(floor: u64) -> GroupEntry {
    let options = GroupOptions { durability: Durability::Disk, ..GroupOptions::default() };
    let mut directory = Directory::default();
    directory.join(member(1), "bank", options, 1).unwrap();
    let mut entry = directory.entries().remove(0);
    (entry.last, entry.floor) = (Place::UNKNOWN, place(floor));
    entry
}

fn reborn(node: u32) -> Member {
    Member { incarnation: Incarnation(2), ..member(node) }
}

/// Nodes that are back, each with the place of the last request that its disk has of the group.
fn back(places: &[(u32, Option<u64>)]) -> BTreeMap<Member, Announce> {
    let announce = |node: u32, taken: Option<u64>| {
        let plain = announced(&[(node, taken.unwrap_or(0))]).remove(&member(node)).unwrap();
        let replicas = if taken.is_some() { plain.replicas.clone() } else { Vec::new() };
        let (groups, waiting) = (Vec::new(), Vec::new());
        let recall =
            Recall { since: Incarnation(1), restarted: true, volatile: false, groups, waiting };
        (reborn(node), Announce { replicas, recall: Some(recall), ..plain })
    };
    places.iter().map(|(node, taken)| announce(*node, *taken)).collect()
}

fn woken(entry: &GroupEntry, announces: &BTreeMap<Member, Announce>, whole: bool) -> Directory {
    let component_order = &ComponentOrder::of(announces);
    let gathering = Gathering { level: 1, whole, component_order, ..MAJORITY };
    let mut directory = Directory::default();
    directory.install(RingId::default(), &[recalled_entry(entry, announces)], announces, gathering);
    directory.check_invariants();
    directory
}

fn serving(directory: &Directory) -> Vec<Member> {
    synced_of(directory, GroupId::of("bank"))
}

/// The simulator's seeds 724 and 937 of the world of disks: power failed when others' disks knew of
/// the group, and that of its first replica did not.
#[test]
fn a_group_of_which_no_disk_has_anything_begins_anew_when_all_are_here() {
    let joined = |mut directory: Directory| {
        directory.join(reborn(2), "bank", stored(0).options, 1).unwrap();
        serving(&directory)
    };
    let nothing = back(&[(1, None), (2, None), (3, None)]);
    assert_eq!(joined(woken(&stored(0), &nothing, false)), [], "another may have some of it");
    assert_eq!(joined(woken(&stored(0), &nothing, true)), [reborn(2)]);

    let mut unhosted = nothing.clone();
    let recall = unhosted.get_mut(&reborn(3)).unwrap().recall.as_mut().unwrap();
    recall.waiting.push(GroupId::of("bank"));
    assert_eq!(joined(woken(&stored(0), &unhosted, true)), [], "3 has some of it");

    let mut forgetful = nothing.clone();
    forgetful.get_mut(&reborn(1)).unwrap().recall.as_mut().unwrap().since = Incarnation(2);
    assert_eq!(joined(woken(&stored(0), &forgetful, true)), [], "1 may have answered");
}

/// 1 went on alone with the ninth request, which it had in memory only, in a component that was
/// never everybody's: another's disk knows the table, and its own has seven. The ninth was answered
/// by 2 and 3, whose disks had it.
#[test]
fn who_has_less_than_the_floor_does_not_go_on_for_the_others() {
    let table = stored(9);
    let three = [(1, Some(7)), (2, Some(9)), (3, None)];
    assert_eq!(serving(&woken(&table, &back(&three[..1]), false)), []);
    assert_eq!(serving(&woken(&table, &back(&three), false)), [], "4 may have more");
    assert_eq!(serving(&woken(&table, &back(&three), true)), [reborn(2)]);
    assert_eq!(serving(&woken(&stored(7), &back(&three[..1]), false)), [reborn(1)]);
}

#[test]
fn who_brings_another_state_is_out_until_it_gives_that_up() {
    let entry = GroupEntry { last: place(9), ..stored(7) };
    let replica = |node| ReplicaEntry { member: member(node), synced: true };
    let entry = GroupEntry { replicas: [1, 2, 3].map(replica).to_vec(), ..entry };
    let announces = back(&[(1, Some(9)), (2, Some(7)), (3, None)]);
    let directory = woken(&entry, &announces, false);
    let group = directory.get(GroupId::of("bank")).unwrap();
    assert_eq!(group.replicas.len(), 1, "2 keeps its state, 3 has to join anew in any case");
    assert_eq!(serving(&directory), [reborn(1)]);
}

/// 1 took 12 in an attempt that only its disk knows, 2 and 3 have answered since what they took in
/// a component of the same number with a smaller ring.
#[test]
fn what_was_taken_in_a_void_attempt_is_not_the_furthest() {
    let ring = |sequence| RingId { sequence, representative: NodeId(1) };
    let component = |sequence, members: &[Member]| Component {
        epoch: 2,
        ring: ring(sequence),
        members: members.to_vec(),
    };
    let attempt = component(100, &[member(1), member(2), member(3)]);
    let others = component(10, &[reborn(2), reborn(3)]);
    let at = |component: &Component, sequence| Place { epoch: 2, ring: component.ring, sequence };
    let mut announces = back(&[(1, Some(0)), (2, Some(0)), (3, Some(0))]);
    for (life, announce) in &mut announces {
        let (component, sequence) =
            if life.node == NodeId(1) { (&attempt, 12) } else { (&others, 4) };
        announce.replicas[0].1 = at(component, sequence);
        (announce.last, announce.attempts) = match life.node {
            NodeId(1) => {
                (Component { epoch: 1, ..Component::default() }, [attempt.clone()].to_vec())
            }
            _ => (others.clone(), Vec::new()),
        };
    }
    let replica = |node| ReplicaEntry { member: member(node), synced: true };
    let floor = at(&others, 4);
    let entry = GroupEntry { floor, replicas: [1, 2, 3].map(replica).to_vec(), ..stored(0) };
    for whole in [false, true] {
        assert_eq!(serving(&woken(&entry, &announces, whole)), [reborn(2), reborn(3)]);
    }

    // The same with the tables on the disks.
    let told = |life: &Member| match life.node {
        NodeId(1) => (GroupEntry { view: ViewNumber(7), ..entry.clone() }, at(&attempt, 9)),
        _ => (GroupEntry { view: ViewNumber(5), ..entry.clone() }, at(&others, 2)),
    };
    for (life, announce) in &mut announces {
        announce.recall.as_mut().unwrap().groups.push(told(life));
    }
    let component_order = ComponentOrder::of(&announces);
    let planted = Planted::default();
    let table = recalled(&[], &announces, reborn(1), Some(&component_order), planted);
    assert_eq!(table[0].view, ViewNumber(5));
}
