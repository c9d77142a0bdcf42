//! Times of many messages in little room, exact to less than one part in a hundred.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Buckets of one doubling are this power of two: a bucket is at most 1/128 of its value wide.
const BITS: u32 = 7;

/// The longest time that is told apart: 2^40 ns, about 18 minutes.
const LONGEST: u64 = (1 << 40) - 1;

/// How many buckets there are.
pub const BUCKETS: usize = (40 - BITS as usize + 1) << BITS;

/// Counts of times, by value. Recording takes a few instructions and no memory.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    min: u64,
    max: u64,
}

/// A [`Histogram`] as it is sent: the buckets that are not empty, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// The shortest time, in nanoseconds.
    pub min: u64,
    /// The longest.
    pub max: u64,
    /// Bucket and count.
    pub buckets: Vec<(u16, u64)>,
}

fn bucket(nanoseconds: u64) -> usize {
    let value = nanoseconds.min(LONGEST);
    let Some(shift) = (u64::BITS - value.leading_zeros()).checked_sub(BITS + 1) else {
        return value as usize;
    };
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let span = span(bucket);
    span.start() + (span.end() - span.start()).div_ceil(2)
}

/// The values that a bucket takes.
fn span(bucket: usize) -> RangeInclusive<u64> {
    let Some(shift) = (bucket >> BITS).checked_sub(1) else {
        return bucket as u64..=bucket as u64;
    };
    let lowest = ((bucket - (shift << BITS)) as u64) << shift;
    lowest..=lowest + ((1 << shift) - 1)
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: vec![0; BUCKETS], total: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    /// Counts one time.
    pub fn record(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanoseconds)] += 1;
        self.total += 1;
        self.min = self.min.min(nanoseconds);
        self.max = self.max.max(nanoseconds);
    }

    /// Counts what another histogram has counted.
    pub fn add(&mut self, times: &Times) {
        for (bucket, count) in &times.buckets {
            if let Some(kept) = self.counts.get_mut(usize::from(*bucket)) {
                *kept = kept.saturating_add(*count);
                self.total = self.total.saturating_add(*count);
            }
        }
        if !times.buckets.is_empty() {
            self.min = self.min.min(times.min);
            self.max = self.max.max(times.max);
        }
    }

    /// How many times were counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The time that this share of all does not exceed; 0 gives the shortest, 1 the longest. `None`
    /// if nothing was counted.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        if self.total == 0 {
            return None;
        }
        let rank = ((self.total - 1) as f64 * share.clamp(0.0, 1.0)) as u64;
        let nanoseconds = match rank {
            0 => self.min,
            rank if rank == self.total - 1 => self.max,
            rank => self.of_rank(rank).clamp(self.min, self.max),
        };
        Some(Duration::from_nanos(nanoseconds))
    }

    fn of_rank(&self, rank: u64) -> u64 {
        let mut below = 0;
        let at = self.counts.iter().position(|count| {
            below += count;
            below > rank
        });
        at.map_or(self.max, middle)
    }

    /// The times to send.
    pub fn times(&self) -> Times {
        if self.total == 0 {
            return Times::default();
        }
        // Most buckets are empty, and frequent queries are of few times.
        let (first, last) = (bucket(self.min), bucket(self.max));
        let filled = (first..=last).filter(|bucket| self.counts[*bucket] > 0);
        let buckets = filled.map(|bucket| (bucket as u16, self.counts[bucket])).collect();
        Times { min: self.min, max: self.max, buckets }
    }
}

impl Times {
    /// How many times of which length: the shortest and the longest that a bucket takes, in
    /// nanoseconds, and its count. In order, without the empty buckets.
    pub fn spans(&self) -> impl Iterator<Item = (RangeInclusive<u64>, u64)> {
        self.buckets.iter().map(|(bucket, count)| (span(usize::from(*bucket)), *count))
    }

    /// The counts since `earlier`, of the same histogram. The shortest and the longest are known
    /// only as exactly as the buckets.
    pub fn since(&self, earlier: &Times) -> Times {
        let mut before = earlier.buckets.iter().copied().peekable();
        let mut buckets = Vec::new();
        for &(bucket, count) in &self.buckets {
            while before.next_if(|(other, _)| *other < bucket).is_some() {}
            let known = before.next_if(|(other, _)| *other == bucket).map_or(0, |(_, count)| count);
            if count > known {
                buckets.push((bucket, count - known));
            }
        }
        let ends = |(bucket, _): &(u16, u64)| span(usize::from(*bucket));
        let min = buckets.first().map_or(0, |first| (*ends(first).start()).max(self.min));
        let max = buckets.last().map_or(0, |last| (*ends(last).end()).min(self.max));
        Times { min, max, buckets }
    }

    /// Nobody else writes such.
    pub(crate) fn is_sane(&self) -> bool {
        self.buckets.len() <= BUCKETS
            && self.buckets.windows(2).all(|pair| pair[0].0 < pair[1].0)
            && self.buckets.last().is_none_or(|(bucket, _)| usize::from(*bucket) < BUCKETS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn spans_lie_side_by_side_and_hold_what_was_counted() {
        let mut histogram = Histogram::default();
        let all = [0, 127, 128, 129, 300, 1_000_000, LONGEST];
        all.into_iter().for_each(|value| histogram.record(Duration::from_nanos(value)));
        let times = histogram.times();
        let holds =
            |value: &u64| times.spans().any(|(span, count)| count > 0 && span.contains(value));
        assert!(all.iter().all(holds));
        for bucket in 1..BUCKETS {
            assert_eq!(span(bucket - 1).end() + 1, *span(bucket).start());
        }
    }

    #[test]
    fn what_came_since_is_what_an_earlier_look_did_not_see() {
        let mut histogram = Histogram::default();
        [5, 70, 900].into_iter().for_each(|value| histogram.record(Duration::from_nanos(value)));
        let earlier = histogram.times();
        assert_eq!(earlier.since(&Times::default()).buckets, earlier.buckets);
        assert_eq!(earlier.since(&earlier), Times::default());
        [70, 80].into_iter().for_each(|value| histogram.record(Duration::from_nanos(value)));
        let since = histogram.times().since(&earlier);
        assert_eq!(since, Times { min: 70, max: 80, buckets: vec![(70, 1), (80, 1)] });
    }

    #[test]
    fn a_bucket_is_less_than_a_hundredth_wide_and_they_are_in_order() {
        let mut last = None;
        for exponent in 0..40 {
            for step in 0..256_u64 {
                let value = (1_u64 << exponent) + (step << exponent) / 256;
                let bucket = bucket(value);
                assert!(bucket < BUCKETS);
                assert!(last.is_none_or(|last| bucket >= last), "{value}");
                last = Some(bucket);
                assert!(middle(bucket).abs_diff(value) * 100 <= value, "{value}");
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let mut random = Random::new(3);
        let (mut left, mut right) = (Histogram::default(), Histogram::default());
        let mut sorted: Vec<u64> = (0..10_001).map(|_| random.below(5_000_000)).collect();
        for (i, value) in sorted.iter().enumerate() {
            let half = if i % 2 == 0 { &mut left } else { &mut right };
            half.record(Duration::from_nanos(*value));
        }
        left.add(&right.times());
        sorted.sort_unstable();
        assert_eq!(left.total(), 10_001);
        for (share, rank) in [(0.0, 0), (0.5, 5_000), (0.99, 9_900), (0.999, 9_990), (1.0, 10_000)]
        {
            let found = left.quantile(share).expect("there are some").as_nanos() as u64;
            assert!(found.abs_diff(sorted[rank]) * 100 <= sorted[rank], "{share}");
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn one_time_is_told_exactly() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::from_nanos(123_457));
        assert_eq!(histogram.quantile(0.99), Some(Duration::from_nanos(123_457)));
    }
}
