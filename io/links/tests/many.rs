//! As many links as may be, at a time.

mod support;

use std::collections::BTreeSet;

use steadfast_links::{Class, Event, LinkId, Transports};
use support::{Plant, Side};

const LINKS: usize = 64;

#[test]
fn sixty_four_links_carry_all_classes_at_a_time() {
    let plant = Plant::new("plant");
    for transports in [Transports::Quic, Transports::Tcp] {
        let (near, far) = (Side::of(&plant, 1, transports), Side::of(&plant, 2, transports));
        let links: Vec<LinkId> =
            (0..LINKS).map(|_| near.links.dial(vec![far.address()], None)).collect();
        for (number, link) in links.iter().enumerate() {
            for class in Class::ALL {
                near.send(*link, class, &[number as u8, class as u8]);
            }
        }
        let mut got = BTreeSet::new();
        let mut up = 0;
        while got.len() < 4 * LINKS {
            match far.next() {
                Event::Up { .. } => up += 1,
                Event::Message { class, bytes, .. } => {
                    assert_eq!(bytes[1], class as u8);
                    assert!(got.insert(bytes.to_vec()), "nothing comes twice");
                }
                Event::Down { reason, .. } => panic!("{reason}"),
            }
        }
        assert_eq!(up, LINKS);
    }
}
