//! Real rings do as the world `forest` takes for granted of its rings.
//!
//! Source: docs/protocol/cells.md, "How it is checked". The world `cells` measures its rings, where a
//! ring is as it is modelled and nothing else is broken. A gap outside of the model's bounds is a
//! failure: then the forest's verdicts would be about other rings than ours.

use wire::Duration;

use super::{Verdict, demand};

/// A gap of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// From the death of a process, of which its host tells, until others have the next view.
    Killed,
    /// From the silence of a node until others have the next view.
    Silent,
    /// From the start of a node until its replica of the book has the state.
    Joined,
    /// From an order until its verdict.
    Ordered,
}

impl Gap {
    /// The least and the most that the model draws: half of its gaps are the least, and each three
    /// times as long is half as frequent. Measured were, in rings of three to five nodes with one way
    /// of 25 to 400 microseconds:
    ///
    /// - `Killed` 1.1 to 165 ms: an idle ring's next pulse finds the dead process
    /// - `Silent` 71 to 177 ms: pulses that are missed, and the views after that
    /// - `Joined` 4.8 to 9.3 ms
    /// - `Ordered` 40 microseconds at the node that orders, 2.8 ms while another call is executed
    pub fn bounds(self) -> (Duration, Duration) {
        let us = Duration::from_micros;
        match self {
            Gap::Killed => (us(500), us(300_000)),
            Gap::Silent => (us(40_000), us(300_000)),
            Gap::Joined => (us(1_000), us(60_000)),
            Gap::Ordered => (us(20), us(10_000)),
        }
    }
}

/// A real ring took so long.
pub fn within(gap: Gap, took: Duration) -> Verdict {
    let (least, most) = gap.bounds();
    demand(least <= took && took <= most, "the model of rings encloses real ones", || {
        format!("{gap:?} took {took:?}, and the model draws {least:?} to {most:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_would_not_draw_is_seen() {
        for gap in [Gap::Killed, Gap::Silent, Gap::Joined, Gap::Ordered] {
            let (least, most) = gap.bounds();
            assert!(within(gap, least).is_ok() && within(gap, most).is_ok());
            assert!(within(gap, most + Duration::from_micros(1)).is_err());
            assert!(within(gap, least - Duration::from_nanos(1)).is_err());
        }
    }
}
