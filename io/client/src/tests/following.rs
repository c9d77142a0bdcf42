//! Groups whose targets are kept known without a call.

use super::cluster::{Cluster, GROUP, ms, targets};
use crate::Followed;

#[test]
fn a_followed_group_is_known_and_its_changes_are_seen() {
    let mut cluster = Cluster::new(3);
    assert_eq!(cluster.session.followed(GROUP), Followed::Unknown);
    cluster.session.follow(cluster.now, GROUP).unwrap();
    cluster.run(ms(50));
    assert_eq!(cluster.session.followed(GROUP), Followed::Known(targets(1, &[1, 2, 3])));
    assert_eq!(cluster.watches.len(), 2, "the first two tell of newer views");
    // Both of them die, and nobody is left to tell: the question that comes once a second does.
    cluster.all_say(targets(2, &[3]));
    cluster.kill(1);
    cluster.kill(2);
    cluster.run(ms(1_200));
    assert_eq!(cluster.session.followed(GROUP), Followed::Known(targets(2, &[3])));
    assert!(cluster.requests.is_empty(), "nobody called");
}

#[test]
fn a_group_that_comes_later_is_found_and_one_that_goes_is_missed() {
    let mut cluster = Cluster::new(1);
    cluster.node(1).bound = None;
    cluster.session.follow(cluster.now, GROUP).unwrap();
    cluster.run(ms(50));
    assert_eq!(cluster.session.followed(GROUP), Followed::Absent);
    cluster.all_say(targets(1, &[1]));
    cluster.run(ms(200));
    assert_eq!(cluster.session.followed(GROUP), Followed::Known(targets(1, &[1])));
    cluster.node(1).bound = None;
    cluster.run(ms(3_000));
    assert_eq!(cluster.session.followed(GROUP), Followed::Absent);
}

#[test]
fn nothing_is_kept_of_a_group_that_is_followed_no_more() {
    let mut cluster = Cluster::new(1);
    cluster.node(1).bound = None;
    cluster.session.follow(cluster.now, GROUP).unwrap();
    cluster.run(ms(50));
    cluster.session.unfollow(GROUP);
    cluster.run(ms(1_000));
    let asked = cluster.binds.len();
    cluster.run(ms(5_000));
    assert_eq!(cluster.binds.len(), asked, "nobody asks for it");
    assert_eq!(cluster.session.targets(wire::GroupId::of(GROUP)), None);
}
