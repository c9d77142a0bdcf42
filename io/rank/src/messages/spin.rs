//! How long a rank looks for a message before it sleeps. To be woken costs tens of microseconds;
//! to look for nothing costs others the processor.

use std::time::Duration;

/// The time of looking, where it pays; and where it does not.
const LONG: Duration = Duration::from_micros(50);
const SHORT: Duration = Duration::from_micros(1);

/// A wait in which the rank slept, and which was no longer, may have been a short one: to be woken
/// takes so long.
pub(super) const WOKEN: Duration = Duration::from_micros(150);

/// Short waits count twice, up to this; it looks for long while at least a quarter of it is left.
const MOST: u32 = 32;

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
    pub fn budget(&self) -> Duration {
        if self.score >= MOST / 4 { LONG } else { SHORT }
    }

    /// A wait has ended, which was a short one or was not.
    pub fn learn(&mut self, short: bool) {
        self.score = match short {
            true => (self.score + 2).min(MOST),
            false => self.score.saturating_sub(1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_is_given_up_where_waits_are_long_and_begins_again_where_they_are_short() {
        let mut spin = Spin::default();
        (0..40).for_each(|_| spin.learn(false));
        assert_eq!(spin.budget(), SHORT);
        (0..4).for_each(|_| spin.learn(true));
        assert_eq!(spin.budget(), LONG);
        // Every other one is long: it still pays.
        (0..100).for_each(|number| spin.learn(number % 2 == 1));
        assert_eq!(spin.budget(), LONG);
    }
}
