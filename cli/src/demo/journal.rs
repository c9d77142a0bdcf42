//! The events that a replica executed, as part of its state: the audit's evidence.
//!
//! For each sensor the numbers of the executed events in the order of execution, run-length
//! encoded. A number that was executed twice stands in two runs: nothing is hidden by the
//! encoding. A sensor that numbers its events one by one and loses none takes one run.

use serde::{Deserialize, Serialize};

/// Runs kept for one sensor.
pub const MAX_RUNS: usize = 1_024;

/// First and last of numbers that were executed one after the other.
pub type Run = (u64, u64);

/// The runs of every sensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    sensors: Vec<Vec<Run>>,
}

/// A sensor's events have so many holes that they do not fit any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Journal {
    /// An empty journal of this many sensors.
    pub fn new(sensors: usize) -> Journal {
        Journal { sensors: vec![Vec::new(); sensors] }
    }

    /// Writes down that this event of this sensor was executed.
    pub fn record(&mut self, sensor: usize, number: u64) -> Result<(), Full> {
        let runs = &mut self.sensors[sensor];
        match runs.last_mut() {
            Some(last) if last.1.checked_add(1) == Some(number) => last.1 = number,
            _ => {
                if runs.len() >= MAX_RUNS {
                    *runs = joined(runs);
                }
                if runs.len() >= MAX_RUNS {
                    return Err(Full);
                }
                runs.push((number, number));
            }
        }
        Ok(())
    }

    /// The runs, sensor by sensor.
    pub fn sensors(&self) -> &[Vec<Run>] {
        &self.sensors
    }
}

/// The same numbers, each as often as before, in fewer runs: those that touch become one, those
/// that overlap stay apart. Gives up the order of execution to save room.
fn joined(runs: &[Run]) -> Vec<Run> {
    let mut sorted = runs.to_vec();
    sorted.sort_unstable();
    let mut joined: Vec<Run> = Vec::new();
    for run in sorted {
        // From the end: the run that this one continues is most often the last.
        match joined.iter_mut().rev().find(|earlier| earlier.1.checked_add(1) == Some(run.0)) {
            Some(earlier) => earlier.1 = run.1,
            None => joined.push(run),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(numbers: impl IntoIterator<Item = u64>) -> Journal {
        let mut journal = Journal::new(1);
        for number in numbers {
            journal.record(0, number).unwrap();
        }
        journal
    }

    #[test]
    fn numbers_in_order_are_one_run() {
        assert_eq!(journal(1..=100_000).sensors(), [vec![(1, 100_000)]]);
    }

    #[test]
    fn a_repeat_shows_as_an_overlap_and_a_hole_as_a_hole() {
        assert_eq!(journal([1, 2, 3, 2, 3, 4, 6]).sensors(), [vec![(1, 3), (2, 4), (6, 6)]]);
    }

    #[test]
    fn out_of_order_execution_does_not_fill_it_up() {
        let swapped = (0..4 * MAX_RUNS as u64).flat_map(|pair| [2 * pair + 2, 2 * pair + 1]);
        let kept = journal(swapped);
        assert!(kept.sensors()[0].len() <= MAX_RUNS);
        let covered: u64 = kept.sensors()[0].iter().map(|run| run.1 - run.0 + 1).sum();
        assert_eq!(covered, 8 * MAX_RUNS as u64);
    }

    #[test]
    fn joining_keeps_every_repeat() {
        let runs = joined(&[(6, 9), (1, 5), (3, 4), (10, 10)]);
        assert_eq!(runs, [(1, 10), (3, 4)]);
    }

    #[test]
    fn holes_beyond_the_limit_are_refused() {
        let mut journal = journal((0..MAX_RUNS as u64).map(|hole| 2 * hole + 1));
        assert_eq!(journal.record(0, 1_000_000), Err(Full));
    }
}
