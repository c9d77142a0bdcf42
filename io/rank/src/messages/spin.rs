//! How long a rank looks for a message before it sleeps. To be woken costs tens of microseconds;
//! to look for nothing costs others the processor.

use std::time::Duration;

/// The most and the least time of looking, in nanoseconds.
const MOST: u64 = 50_000;
const LEAST: u64 = 1_000;

/// So many waits are short before a long one is tried again.
const AGAIN: u32 = 64;

/// It learns by what it finds.
#[derive(Debug)]
pub(super) struct Spin {
    nanos: u64,
    /// Waits since looking was given up.
    short: u32,
}

impl Default for Spin {
    fn default() -> Spin {
        Spin { nanos: MOST, short: 0 }
    }
}

impl Spin {
    pub fn budget(&mut self) -> Duration {
        if self.nanos <= LEAST {
            self.short += 1;
            if self.short == AGAIN {
                (self.nanos, self.short) = (MOST, 0);
            }
        }
        Duration::from_nanos(self.nanos)
    }

    /// A message came while it looked, or not.
    pub fn learn(&mut self, found: bool) {
        self.nanos = match found {
            true => (2 * self.nanos).min(MOST),
            false => (self.nanos / 2).max(LEAST),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_is_given_up_where_it_finds_nothing_and_is_tried_again() {
        let mut spin = Spin::default();
        for _ in 0..10 {
            spin.learn(false);
        }
        assert_eq!(spin.budget(), Duration::from_nanos(LEAST));
        let long = (0..AGAIN).find(|_| spin.budget() > Duration::from_nanos(LEAST));
        assert!(long.is_some());
        spin.learn(true);
        assert_eq!(spin.budget(), Duration::from_nanos(MOST));
    }
}
