//! Certificates decide whose links are taken, and whom a dialler takes for the right one.

mod support;

use std::sync::Arc;

use steadfast_links::{Class, Down, Event, Expect, Options, Refusal, Security, Transports};
use support::{ANY, Plant, Side, patient};
use tls::{Denied, Identity};

fn start(security: Security, transports: Transports) -> Side {
    let (listen, security, limits) = (Some(ANY), Some(security), patient());
    Side::start(Options { listen, security, transports, limits, ..Options::default() })
}

/// Dials, and gives the reason for which there is no link.
fn refusal(near: &Side, far: &Side, expect: Option<Expect>) -> Down {
    let link = near.links.dial(vec![far.address()], expect);
    let (down, reason) = near.down();
    assert_eq!(down, link);
    reason
}

const BOTH: [Transports; 2] = [Transports::Quic, Transports::Tcp];

#[test]
fn each_side_knows_the_other_by_its_certificate() {
    let plant = Plant::new("plant");
    for transports in BOTH {
        let (near, far) = (Side::of(&plant, 1, transports), Side::of(&plant, 2, transports));
        let expect = Some(Expect::Node(plant.node(2)));
        let link = near.links.dial(vec![far.address()], expect);
        let (up, peer, _) = near.up();
        assert_eq!((up, peer), (link, Some(plant.node(2))));
        assert_eq!(far.up().1, Some(plant.node(1)));
    }
}

#[test]
fn a_certificate_of_another_authority_is_refused_and_others_go_on() {
    let (plant, impostor) = (Plant::new("plant"), Plant::new("plant"));
    for transports in BOTH {
        let far = Side::of(&plant, 1, transports);
        let (friend, foe) = (Side::of(&plant, 2, transports), Side::of(&impostor, 3, transports));
        let (link, _) = friend.join(&far);
        let reason = refusal(&foe, &far, None);
        assert!(matches!(reason, Down::Untrusted(_)), "{reason:?}");
        // This one trusts the plant, and only the plant does not trust it.
        let mut credulous = impostor.security(4);
        credulous.credentials = impostor.credentials(&impostor.issue(&impostor.node(4)), &[&plant]);
        let foe = start(credulous, transports);
        let reason = refusal(&foe, &far, None);
        assert!(matches!(reason, Down::Untrusted(_)), "{reason:?}");
        friend.send(link, Class::Control, b"still here");
        assert_eq!(far.message().2, &b"still here"[..]);
        assert!(far.links.counters().left > 0);
    }
}

#[test]
fn only_nodes_of_clusters_that_are_let_in_come_in() {
    let (plant, port) = (Plant::new("plant"), Plant::new("port"));
    for transports in BOTH {
        let from = |plant: &Plant, identity: &Identity, others: &[&Plant]| {
            Security::new(plant.credentials(&plant.issue(identity), others))
        };
        let trusting = || from(&plant, &plant.node(1), &[&port]);
        let far = start(trusting(), transports);
        let stranger = start(from(&port, &port.node(2), &[&plant]), transports);
        let expect = || Some(Expect::Cluster("plant".into()));
        let unwelcome = Down::Refused(Refusal::Unwelcome);
        assert_eq!(refusal(&stranger, &far, expect()), unwelcome);
        assert!(far.links.counters().unwelcome > 0);
        let clusters = vec!["port".into()];
        let open = start(Security { clusters, ..trusting() }, transports);
        stranger.links.dial(vec![open.address()], expect());
        assert_eq!(stranger.up().1, Some(plant.node(1)));
        assert_eq!(open.up().1, Some(port.node(2)));
    }
}

#[test]
fn another_node_than_the_expected_one_is_not_taken() {
    let plant = Plant::new("plant");
    for transports in BOTH {
        let (near, far) = (Side::of(&plant, 1, transports), Side::of(&plant, 2, transports));
        let reason = refusal(&near, &far, Some(Expect::Node(plant.node(3))));
        assert!(matches!(reason, Down::Unexpected(_)), "{reason:?}");
        let reason = refusal(&near, &far, Some(Expect::Cluster("port".into())));
        assert!(matches!(reason, Down::Untrusted(_)), "{reason:?}");
        let reason = refusal(&near, &far, Some(Expect::Cluster("no name".into())));
        assert!(matches!(reason, Down::Unexpected(_)), "{reason:?}");
    }
}

#[test]
fn denied_certificates_are_refused_on_both_sides_from_the_next_link_on() {
    let plant = Plant::new("plant");
    let denied = |name: &str| Arc::new(Denied::parse(name, "plant").unwrap());
    for transports in BOTH {
        let (near, far) = (Side::of(&plant, 1, transports), Side::of(&plant, 2, transports));
        let (link, _) = near.join(&far);
        far.links.renew(Security { denied: denied("node-1"), ..plant.security(2) }).unwrap();
        assert_eq!(refusal(&near, &far, None), Down::Refused(Refusal::Unwelcome));
        near.links.renew(Security { denied: denied("node-2"), ..plant.security(1) }).unwrap();
        let reason = refusal(&near, &far, None);
        assert!(matches!(reason, Down::Untrusted(_)), "{reason:?}");
        near.send(link, Class::Normal, b"links that are there go on");
        assert!(matches!(far.next(), Event::Message { .. }));
    }
}

#[test]
fn new_links_show_a_renewed_certificate() {
    let (plant, next) = (Plant::new("plant"), Plant::new("plant"));
    for transports in BOTH {
        let (near, far) = (Side::of(&plant, 1, transports), Side::of(&plant, 2, transports));
        let renewed = |plant: &Plant, number| {
            let issued = next.issue(&next.node(number));
            Security::new(next.credentials(&issued, &[plant]))
        };
        near.links.renew(renewed(&plant, 1)).unwrap();
        let reason = refusal(&near, &far, None);
        assert!(matches!(reason, Down::Untrusted(_)), "{reason:?}");
        far.links.renew(renewed(&plant, 2)).unwrap();
        near.join(&far);
    }
}
