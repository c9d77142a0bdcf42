//! Newer rules come into force with all members, or with most of them.

use wire::VersionRange;
use wire::ordered::Activate;

use super::*;

/// All nodes know rules of level 2, and level 1 is in force.
fn ready() -> Room {
    let mut room = Room::new();
    room.configure(1);
    for node in 1..=3 {
        let mut announce = room.nothing();
        announce.level = 1;
        announce.program.rules = VersionRange::new(1, 2);
        room.deliver(node, Ordered::Announce(Box::new(announce)));
    }
    room.install(Vec::new());
    room.hold_all();
    room
}

/// The ring ends; the order's last message comes to these members.
fn level_after_the_last_message(members: &[u32]) -> u8 {
    let mut room = ready();
    let kind = ConfigurationKind::Transitional;
    let members = members.iter().map(|node| member(*node)).collect();
    let configuration = Configuration { kind, ring: room.ring, members };
    room.happens(ordering::Output::Configuration(configuration));
    room.deliver(1, Ordered::Activate(Activate { level: 2 }));
    room.stack.status().versions.level
}

#[test]
fn newer_rules_come_into_force_at_their_place() {
    let mut room = ready();
    assert_eq!(room.stack.status().versions.level, 1);
    room.deliver(1, Ordered::Activate(Activate { level: 2 }));
    assert_eq!(room.stack.status().versions.level, 2);
}

#[test]
fn newer_rules_that_only_a_minority_has_do_not_come_into_force_there() {
    assert_eq!(level_after_the_last_message(&[1]), 1);
    assert_eq!(level_after_the_last_message(&[1, 3]), 2);
}
