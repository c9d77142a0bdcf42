//! Drawing from a seed.

use wire::{Duration, Random};

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("spans are short")
}

/// A seeded source of choices.
#[derive(Clone, Debug)]
pub struct Draw(Random);

impl Draw {
    /// The choices of this seed.
    pub fn new(seed: u64) -> Self {
        Draw(Random::new(seed))
    }

    /// A source whose choices do not disturb this one's: a change in one part of the simulator
    /// does not change what another part draws.
    pub fn fork(&mut self) -> Self {
        Draw(self.0.fork())
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// A small number as an index or a count, from `low` to `high`, both included.
    pub fn count(&mut self, low: usize, high: usize) -> usize {
        self.between(low as u64, high as u64) as usize
    }

    /// True in `permille` of 1,000 cases.
    pub fn permille(&mut self, permille: u64) -> bool {
        permille > 0 && self.0.below(1_000) < permille
    }

    /// True once in `n` cases.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.0.one_in(n)
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.0.below(from.len() as u64) as usize].clone()
    }

    /// A span from `low` to `high`.
    pub fn span(&mut self, low: Duration, high: Duration) -> Duration {
        Duration::from_nanos(self.between(nanos(low), nanos(high)))
    }

    /// A span whose logarithm is even: short ones are as likely as long ones.
    pub fn scale(&mut self, low: Duration, high: Duration) -> Duration {
        let (low, high) = (nanos(low), nanos(high));
        let mut top = low;
        while top < high && self.one_in(2) {
            top = (top * 3).min(high);
        }
        Duration::from_nanos(self.between(low, top))
    }

    /// `count` different numbers below `bound`, in random order.
    pub fn distinct(&mut self, count: usize, bound: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..bound).collect();
        for i in 0..count.min(bound) {
            let j = self.count(i, bound - 1);
            all.swap(i, j);
        }
        all.truncate(count);
        all
    }
}
