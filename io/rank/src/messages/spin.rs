//! How long a rank looks for a message before it sleeps. To be woken costs tens of microseconds;
//! to look for nothing costs others the processor.

use std::time::Duration;

/// The time of looking, where it pays; and where it does not.
const LONG: Duration = Duration::from_micros(50);
const SHORT: Duration = Duration::from_micros(1);

/// A wait in which the rank slept, and which was no longer, may have been a short one: to be woken
/// takes so long.
const WOKEN: Duration = Duration::from_micros(150);

/// Short waits count twice, up to this; it looks for long while at least a quarter of it is left.
const MOST: u32 = 32;

/// A look for long that was in vain takes away two short waits.
const VAIN: u32 = 4;

/// It learns by how long waits are.
#[derive(Debug)]
pub(super) struct Spin {
    score: u32,
}

impl Default for Spin {
    fn default() -> Spin {
        Spin { score: MOST }
    }
}

impl Spin {
    fn pays(&self) -> bool {
        self.score >= MOST / 4
    }

    pub fn budget(&self) -> Duration {
        if self.pays() { LONG } else { SHORT }
    }

    /// A wait has ended while it looked.
    pub fn found(&mut self) {
        self.score = (self.score + 2).min(MOST);
    }

    /// A wait has ended after so long, and it slept.
    pub fn slept(&mut self, waited: Duration) {
        match waited <= WOKEN {
            // To look for long was in vain: perhaps the sender has no other processor than this one.
            true if self.pays() => self.score -= VAIN,
            true => self.found(),
            false => self.score = self.score.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_is_given_up_where_waits_are_long_and_begins_again_where_they_are_short() {
        let (mut spin, long) = (Spin::default(), Duration::from_millis(1));
        (0..40).for_each(|_| spin.slept(long));
        assert_eq!(spin.budget(), SHORT);
        (0..4).for_each(|_| spin.slept(WOKEN));
        assert_eq!(spin.budget(), LONG);
        // Every other one is long: it still pays.
        (0..100).for_each(|number| if number % 2 == 0 { spin.slept(long) } else { spin.found() });
        assert_eq!(spin.budget(), LONG);
    }

    #[test]
    fn where_looking_finds_nothing_in_time_it_is_mostly_left_out() {
        let mut spin = Spin::default();
        let mut looked = 0;
        for _ in 0..300 {
            looked += u32::from(spin.budget() == LONG);
            spin.slept(WOKEN);
        }
        assert!(looked < 110, "{looked} of 300");
    }
}
