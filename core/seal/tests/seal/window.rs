use std::collections::BTreeSet;

use proptest::prelude::*;
use steadfast_seal::{Envelope, Fresh, Refused, WINDOW, Window};

use crate::{acquainted, at, open, sealed};

/// Takes the counter if the window lets it pass.
fn offer(window: &mut Window, counter: u64) -> Fresh {
    let fresh = window.check(counter);
    if fresh == Fresh::Yes {
        window.take(counter);
    }
    fresh
}

#[test]
fn what_came_or_is_too_old_or_came_before_the_beginning_is_told_apart() {
    let mut window = Window::starting_at(100);
    assert_eq!(offer(&mut window, 100), Fresh::Seen);
    assert_eq!(offer(&mut window, 99), Fresh::BeforeStart);
    assert_eq!(offer(&mut window, 102), Fresh::Yes);
    assert_eq!(offer(&mut window, 101), Fresh::Yes);
    assert_eq!(offer(&mut window, 101), Fresh::Seen);
    assert_eq!(offer(&mut window, 103 + WINDOW), Fresh::Yes);
    assert_eq!(offer(&mut window, 103), Fresh::TooOld);
    assert_eq!(offer(&mut window, 103 + 64), Fresh::Yes, "the word being filled is left out");
    assert_eq!(offer(&mut window, u64::MAX), Fresh::Yes);
    assert_eq!(offer(&mut window, u64::MAX), Fresh::Seen);
    assert_eq!(offer(&mut window, u64::MAX - 1), Fresh::Yes);
    assert_eq!(offer(&mut window, 500 + WINDOW), Fresh::TooOld);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Against a set that forgets nothing: nothing passes twice, and nothing new within reach is
    /// refused.
    #[test]
    fn it_is_a_set_as_far_as_it_reaches(
        start in 1..2_000u64,
        steps in proptest::collection::vec((0..6u8, 0..2 * WINDOW), 1..400),
    ) {
        let mut window = Window::starting_at(start);
        let (mut seen, mut largest) = (BTreeSet::from([start]), start);
        for (kind, step) in steps {
            let counter = match kind {
                0 => largest + 1 + step,
                1 | 2 => largest + 1,
                3 => largest.saturating_sub(step % 70),
                _ => largest.saturating_sub(step),
            };
            let fresh = window.check(counter);
            if seen.contains(&counter) || counter < start {
                prop_assert_ne!(fresh, Fresh::Yes);
            } else if counter + (WINDOW - 64) >= largest {
                prop_assert_eq!(fresh, Fresh::Yes);
            }
            if fresh == Fresh::Yes {
                window.take(counter);
                seen.insert(counter);
                largest = largest.max(counter);
            }
        }
    }

    /// The same through whole datagrams, in any order and any number of copies.
    #[test]
    fn every_datagram_is_opened_once(
        order in proptest::collection::vec(0..40usize, 0..200),
    ) {
        let (mut a, mut b) = acquainted();
        let datagrams: Vec<Vec<u8>> =
            (0..40u8).map(|n| sealed(&mut a, Envelope::ALL, &[n; 20])).collect();
        let mut opened = BTreeSet::new();
        for number in order {
            match open(&mut b, at(1), &datagrams[number]) {
                Ok(bytes) => {
                    prop_assert_eq!(bytes, Some(vec![number as u8; 20]));
                    prop_assert!(opened.insert(number));
                }
                Err(refused) => {
                    prop_assert_eq!(refused, Refused::Duplicate);
                    prop_assert!(opened.contains(&number));
                }
            }
        }
    }
}
