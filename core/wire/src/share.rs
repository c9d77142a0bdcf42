//! How much of a processor.

use serde::{Deserialize, Serialize};

use crate::Duration;

/// A share of one processor, in parts of a million; several processors are more than a million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Share(pub u64);

impl Share {
    /// Nothing.
    pub const ZERO: Share = Share(0);
    /// One whole processor.
    pub const ONE: Share = Share(1_000_000);

    /// So many hundredths of a processor.
    pub const fn percent(percent: u64) -> Share {
        Share(percent * 10_000)
    }

    /// The share of `span` that `used` is, rounded down. Zero if `span` is zero.
    pub fn of(used: Duration, span: Duration) -> Share {
        let millionths = (used.as_nanos() * u128::from(Share::ONE.0)).checked_div(span.as_nanos());
        Share(u64::try_from(millionths.unwrap_or(0)).unwrap_or(u64::MAX))
    }

    /// Without going below nothing.
    #[must_use]
    pub fn saturating_sub(self, other: Share) -> Share {
        Share(self.0.saturating_sub(other.0))
    }
}

/// In percent of one processor: `150.3%`.
impl core::fmt::Display for Share {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let tenths = self.0 / 1_000;
        write!(f, "{}.{}%", tenths / 10, tenths % 10)
    }
}

impl core::ops::Add for Share {
    type Output = Share;

    fn add(self, other: Share) -> Share {
        Share(self.0 + other.0)
    }
}

impl core::ops::AddAssign for Share {
    fn add_assign(&mut self, other: Share) {
        *self = *self + other;
    }
}

impl core::iter::Sum for Share {
    fn sum<I: Iterator<Item = Share>>(shares: I) -> Share {
        shares.fold(Share::ZERO, |sum, share| sum + share)
    }
}
