//! Whether to look again before sleeping.
//!
//! Waking a sleeping core costs more than all of the protocol's own work on a message, so a thread
//! that expects work within microseconds does better to stay awake. Where nothing comes it only
//! burns the core. So the spinner learns: it spins while spinning pays, and when it does not it
//! tries again only now and then.

use wire::{Duration, Time};

/// Credit is gained by a spin that found work and lost by one that did not.
const MAX_CREDIT: u32 = 8;

/// Without credit, one wait in this many is spun all the same, to see whether times have changed.
const TRY_EVERY: u32 = 64;

#[derive(Debug)]
pub(crate) struct Spinner {
    limit: Duration,
    credit: u32,
    waits: u32,
}

impl Spinner {
    /// Spins for at most `limit`; zero switches it off.
    pub fn new(limit: Duration) -> Spinner {
        Spinner { limit, credit: MAX_CREDIT, waits: 0 }
    }

    /// Until when to look for work before sleeping, if at all.
    pub fn until(&mut self, now: Time) -> Option<Time> {
        if self.limit.is_zero() {
            return None;
        }
        self.waits = self.waits.wrapping_add(1);
        let spins = self.credit > 0 || self.waits.is_multiple_of(TRY_EVERY);
        spins.then(|| now + self.limit)
    }

    /// A spin has ended.
    pub fn learn(&mut self, found: bool) {
        self.credit =
            if found { (self.credit + 2).min(MAX_CREDIT) } else { self.credit.saturating_sub(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_micros(50);

    #[test]
    fn it_is_off_without_a_limit() {
        assert_eq!(Spinner::new(Duration::ZERO).until(Time(1)), None);
    }

    #[test]
    fn it_gives_up_where_nothing_comes_and_begins_again_when_something_does() {
        let mut spinner = Spinner::new(LIMIT);
        let mut spun = 0;
        for _ in 0..1_000 {
            if spinner.until(Time(7)).is_some() {
                spun += 1;
                spinner.learn(false);
            }
        }
        assert!(spun <= MAX_CREDIT + 1_000 / TRY_EVERY, "{spun} useless spins");
        while spinner.until(Time(7)).is_none() {}
        spinner.learn(true);
        assert_eq!(spinner.until(Time(7)), Some(Time(7) + LIMIT));
    }
}
