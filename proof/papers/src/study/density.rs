//! The probability density of measured times: where its peak is, and the points of its chart.

use wire::histogram::Times;

/// Peaks are told apart where they are this many bins from each other, or more.
const SMOOTHING: [f64; 5] = [1.0, 2.0, 3.0, 2.0, 1.0];

/// The density is computed up to this quantile: a few calls that a busy machine held up would else
/// make bins that hold everything.
const SHARE: f64 = 0.98;

/// A bin is never narrower than the paper's resolution, in microseconds.
const FINEST: f64 = 1.0;

/// How often, by how long it took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Density {
    /// The beginning of the first bin, and the width of each, in microseconds.
    from: f64,
    width: f64,
    /// The share of all times in a bin, divided by its width.
    values: Vec<f64>,
    /// The mean of all times, those beyond the chart included.
    mean: f64,
    median: f64,
    /// How many there are.
    count: u64,
}

impl Density {
    /// The density of single times, in microseconds.
    pub fn of(times: impl IntoIterator<Item = f64>) -> Density {
        Density::of_spans(times.into_iter().map(|time| (time, time, 1)).collect())
    }

    /// The density of a node's histogram.
    pub fn of_times(times: &Times) -> Density {
        let spans = times.spans().map(|(span, count)| {
            let (from, to) = (*span.start() as f64, *span.end() as f64 + 1.0);
            (from / 1_000.0, to / 1_000.0, count)
        });
        Density::of_spans(spans.collect())
    }

    /// The density of counts, each spread evenly from its first time to its last.
    fn of_spans(mut spans: Vec<(f64, f64, u64)>) -> Density {
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        let count: u64 = spans.iter().map(|(_, _, count)| count).sum();
        if count == 0 {
            return Density::default();
        }
        let total: f64 =
            spans.iter().map(|(from, to, count)| (from + to) / 2.0 * *count as f64).sum();
        let at = |share: f64| {
            let mut left = (count as f64 * share) as u64;
            let found = spans.iter().find(|(_, _, count)| match left.checked_sub(*count) {
                Some(rest) => {
                    left = rest;
                    false
                }
                None => true,
            });
            found.or(spans.last()).map_or(0.0, |(from, to, _)| (from + to) / 2.0)
        };
        // Freedman and Diaconis: as wide as the data bear.
        let width = (at(0.75) - at(0.25)) * 2.0 / (count as f64).cbrt();
        let width = width.max(FINEST);
        let from = (spans[0].0 / width).floor() * width;
        let bins = ((at(SHARE) - from) / width) as usize + SMOOTHING.len();
        let mut counts = vec![0.0; bins];
        for (first, last, number) in &spans {
            spread(&mut counts, (first - from) / width, (last - from) / width, *number as f64);
        }
        let values = smooth(&counts).map(|in_bin| in_bin / (count as f64 * width)).collect();
        Density { from, width, values, mean: total / count as f64, median: at(0.5), count }
    }

    /// The time at which the density is highest; `None` if there is nothing.
    pub fn peak(&self) -> Option<f64> {
        let highest = self.values.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?.0;
        Some(self.from + (highest as f64 + 0.5) * self.width)
    }

    /// The mean; `None` if there is nothing.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// The time that half of the times do not exceed; `None` if there is nothing.
    pub fn median(&self) -> Option<f64> {
        (self.count > 0).then_some(self.median)
    }

    /// How many times there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Time, in microseconds, and density there, per microsecond.
    pub fn curve(&self) -> impl Iterator<Item = (f64, f64)> {
        let at =
            |(bin, value): (usize, &f64)| (self.from + (bin as f64 + 0.5) * self.width, *value);
        self.values.iter().enumerate().map(at)
    }
}

/// Gives each bin between two places its part.
fn spread(counts: &mut [f64], first: f64, last: f64, number: f64) {
    let length = last - first;
    for bin in first as usize..=last as usize {
        let Some(count) = counts.get_mut(bin) else { return };
        let inside = (last.min(bin as f64 + 1.0) - first.max(bin as f64)).max(0.0);
        *count += if length > 0.0 { number * inside / length } else { number };
    }
}

fn smooth(counts: &[f64]) -> impl Iterator<Item = f64> {
    let all: f64 = SMOOTHING.iter().sum();
    let middle = SMOOTHING.len() / 2;
    (0..counts.len()).map(move |bin| {
        let near = SMOOTHING.iter().enumerate().filter_map(|(place, weight)| {
            Some(weight * counts.get((bin + place).checked_sub(middle)?)?)
        });
        near.sum::<f64>() / all
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wire::Random;
    use wire::histogram::Histogram;

    use super::*;

    /// The sum of so many draws: nearly a normal distribution around `6 * scale`.
    fn bell(random: &mut Random, scale: f64) -> f64 {
        (0..12).map(|_| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * scale).sum()
    }

    #[test]
    fn the_peak_of_a_bell_is_its_middle_and_its_area_is_one() {
        let mut random = Random::new(5);
        let density = Density::of((0..20_000).map(|_| 300.0 + bell(&mut random, 30.0)));
        assert!((density.peak().unwrap() - 480.0).abs() < 10.0, "{:?}", density.peak());
        assert!((density.mean().unwrap() - 480.0).abs() < 2.0);
        let area: f64 = density.curve().map(|(_, value)| value * density.width).sum();
        assert!((0.97..1.0001).contains(&area), "{area}");
    }

    #[test]
    fn a_long_tail_moves_the_mean_and_not_the_peak() {
        let mut random = Random::new(5);
        let mut times: Vec<f64> = (0..5_000).map(|_| bell(&mut random, 20.0)).collect();
        times.extend([1e6; 20]);
        let density = Density::of(times);
        assert!((density.peak().unwrap() - 120.0).abs() < 10.0);
        assert!(density.mean().unwrap() > 4_000.0);
    }

    #[test]
    fn a_nodes_histogram_has_the_same_peak_as_the_times_themselves() {
        let mut random = Random::new(9);
        let times: Vec<f64> = (0..20_000).map(|_| 150.0 + bell(&mut random, 15.0)).collect();
        let mut histogram = Histogram::default();
        times.iter().for_each(|time| histogram.record(Duration::from_nanos((time * 1e3) as u64)));
        let (whole, kept) = (Density::of(times), Density::of_times(&histogram.times()));
        assert_eq!(whole.count(), kept.count());
        assert!((whole.peak().unwrap() - kept.peak().unwrap()).abs() < 8.0);
        assert!((whole.mean().unwrap() - kept.mean().unwrap()).abs() < 2.0);
    }

    #[test]
    fn of_nothing_there_is_no_peak_and_of_one_value_it_is_that() {
        assert_eq!(Density::of([]).peak(), None);
        assert_eq!(Density::of([]).mean(), None);
        let one = Density::of([205.0; 10]);
        assert!((one.peak().unwrap() - 205.0).abs() <= 1.0);
    }
}
