//! When a checkpoint pays.

use std::time::Duration;

use wire::rank::Every;

/// Checkpoints that are due by themselves are no closer than this.
const LEAST: Duration = Duration::from_secs(1);

/// Without a time of one's own: time is an argument.
#[derive(Debug)]
pub(crate) struct Cadence {
    every: Every,
    /// How long a rank is expected to live.
    age: Duration,
    /// The cost of the last checkpoint.
    cost: Option<Duration>,
    /// When the last one began, from the rank's beginning.
    last: Duration,
    /// The last turn at which one was due.
    turn: Option<u64>,
}

impl Cadence {
    pub fn new(every: Every, age: Duration) -> Cadence {
        Cadence { every, age, cost: None, last: Duration::ZERO, turn: None }
    }

    /// Whether one is due so long after the rank's beginning.
    pub fn is_due(&self, now: Duration) -> bool {
        self.interval().is_some_and(|interval| now >= self.last + interval)
    }

    /// Whether one is due at this turn of the outermost loop, because it is at all ranks.
    pub fn is_due_at(&mut self, turn: u64) -> bool {
        let Every::Turns(turns) = self.every else { return false };
        // Another loop has begun.
        self.turn = self.turn.filter(|last| *last <= turn);
        let due = turn > 0 && turn.is_multiple_of(turns) && self.turn != Some(turn);
        if due {
            self.turn = Some(turn);
        }
        due
    }

    /// The time between two. By Young and Daly, what is lost by a failure and what is spent on
    /// checkpoints is least together where it is √(2 · cost · age).
    pub fn interval(&self) -> Option<Duration> {
        match self.every {
            Every::Never | Every::Turns(_) => None,
            Every::Micros(micros) => Some(Duration::from_micros(micros)),
            Every::Auto => {
                let cost = self.cost.unwrap_or_default();
                let seconds = (2.0 * cost.as_secs_f64() * self.age.as_secs_f64()).sqrt();
                Some(Duration::from_secs_f64(seconds.min(1e9)).max(LEAST))
            }
        }
    }

    /// One begins.
    pub fn begin(&mut self, now: Duration) {
        self.last = now;
    }

    /// It has failed: the next one is due in a while.
    pub fn again(&mut self, now: Duration) {
        if let Some(interval) = self.interval() {
            self.last = now.saturating_sub(interval.saturating_sub(LEAST));
        }
    }

    /// It has cost this.
    pub fn cost(&mut self, cost: Duration) {
        self.cost = Some(cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_follows_the_cost() {
        let second = Duration::from_secs(1);
        let mut auto = Cadence::new(Every::Auto, Duration::from_secs(86_400));
        assert!(!auto.is_due(second / 2) && auto.is_due(second), "the first one tells the cost");
        auto.begin(second);
        auto.cost(Duration::from_millis(20));
        // √(2 · 0.02 · 86,400) = 58.8 s.
        assert!(!auto.is_due(second * 59) && auto.is_due(second * 60));
        auto.cost(Duration::ZERO);
        assert_eq!(auto.interval(), Some(LEAST));
        auto.cost(Duration::from_millis(20));
        auto.again(second * 100);
        assert!(!auto.is_due(second * 100) && auto.is_due(second * 101), "it is tried again soon");
        let fixed = Cadence::new(Every::Micros(5_000), second);
        assert!(fixed.is_due(Duration::from_millis(5)) && !fixed.is_due(Duration::from_millis(4)));
        let mut turns = Cadence::new(Every::Turns(5), second);
        let due: Vec<u64> = (0..12).chain(10..16).filter(|turn| turns.is_due_at(*turn)).collect();
        assert_eq!(due, [5, 10, 15]);
        // Loops one after the other, none of which comes as far as the last checkpoint was.
        let mut turns = Cadence::new(Every::Turns(5), second);
        let loops = (0..8).chain(0..7).chain(0..6);
        assert_eq!(loops.filter(|turn| turns.is_due_at(*turn)).collect::<Vec<u64>>(), [5, 5, 5]);
        assert!(!Cadence::new(Every::Never, second).is_due(second * 1_000_000));
    }
}
