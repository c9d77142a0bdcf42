//! Times of calls and what to say of them.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::Outcome;

/// Times of one measure.
#[derive(Default)]
pub struct Times {
    nanoseconds: Vec<u64>,
}

/// Their summary, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many there are.
    pub n: usize,
    /// The shortest.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// One in a hundred is longer.
    pub p99: f64,
    /// One in a thousand is longer.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Times {
    /// One more.
    pub fn push(&mut self, time: Duration) {
        self.nanoseconds.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Those of another measure, too.
    pub fn extend(&mut self, other: Times) {
        self.nanoseconds.extend(other.nanoseconds);
    }

    /// Measures so many rounds, one after the other.
    pub fn measure(&mut self, count: usize, mut round: impl FnMut() -> Outcome<()>) -> Outcome<()> {
        for _ in 0..count {
            let start = Instant::now();
            round()?;
            self.push(start.elapsed());
        }
        Ok(())
    }

    /// As [`Times::measure`], but the first blocks do not count: they find cold caches, unmapped
    /// memory and connections that are not made yet.
    pub fn measure_if(
        &mut self,
        counts: bool,
        count: usize,
        round: impl FnMut() -> Outcome<()>,
    ) -> Outcome<()> {
        let mut cold = Times::default();
        (if counts { self } else { &mut cold }).measure(count, round)
    }

    /// `None` if nothing was measured.
    pub fn summary(&self) -> Option<Summary> {
        let mut sorted = self.nanoseconds.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        let at = |share: f64| sorted[(last as f64 * share) as usize] as f64 / 1_000.0;
        Some(Summary {
            n: sorted.len(),
            min: at(0.0),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        })
    }
}

impl Summary {
    /// One line of JSON: the fields that name the measure, then the figures.
    pub fn json(&self, names: &Value) -> Value {
        let tenths = |figure: f64| json!((figure * 10.0).round() / 10.0);
        let mut line = names.as_object().cloned().unwrap_or_else(Map::new);
        line.insert("n".into(), json!(self.n));
        let figures = [
            ("min_us", self.min),
            ("p50_us", self.p50),
            ("p99_us", self.p99),
            ("p999_us", self.p999),
            ("max_us", self.max),
        ];
        line.extend(figures.map(|(name, figure)| (name.into(), tenths(figure))));
        Value::Object(line)
    }
}

/// The middle one and the largest.
pub fn median_and_worst(mut figures: Vec<f64>) -> Option<(f64, f64)> {
    figures.sort_by(f64::total_cmp);
    Some((*figures.get(figures.len() / 2)?, *figures.last()?))
}

/// The smallest figure that no less than this share of them do not exceed.
pub fn quantile(mut figures: Vec<f64>, share: f64) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let place = (figures.len() as f64 * share).ceil() as usize;
    figures.get(place.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let mut times = Times::default();
        assert_eq!(times.summary(), None);
        for microseconds in (1..=1_000).rev() {
            times.push(Duration::from_micros(microseconds));
        }
        let summary = times.summary().unwrap();
        let figures = [summary.min, summary.p50, summary.p99, summary.p999, summary.max];
        assert_eq!(figures, [1.0, 500.0, 990.0, 999.0, 1_000.0]);
    }

    #[test]
    fn a_line_names_the_measure_first() {
        let mut times = Times::default();
        times.push(Duration::from_nanos(12_340));
        let line = times.summary().unwrap().json(&json!({"peer": "floor", "size": 1024}));
        assert_eq!(line["peer"], "floor");
        assert_eq!(line["p50_us"], 12.3);
    }

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median_and_worst(vec![3.0, 1.0, 2.0]), Some((2.0, 3.0)));
        assert_eq!(median_and_worst(vec![]), None);
    }

    #[test]
    fn one_in_a_hundred_may_exceed_the_99th_percentile() {
        let figures: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(quantile(figures.clone(), 0.99), Some(99.0));
        assert_eq!(quantile(figures[..30].to_vec(), 0.99), Some(100.0));
        assert_eq!(quantile(vec![], 0.99), None);
    }
}
