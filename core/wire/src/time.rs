//! Time as a number that the caller hands in: the machines have no clock of their own.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

pub use core::time::Duration;

/// A moment: nanoseconds since an epoch that the driver chooses.
///
/// Timers use a monotonic epoch, ordered time (what handlers see) the Unix epoch; the two are
/// never compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// The epoch.
    pub const ZERO: Time = Time(0);
    /// Later than every moment.
    pub const FAR: Time = Time(u64::MAX);

    /// The time from `earlier` to `self`, or zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn time_stops_at_its_ends_instead_of_running_over() {
        assert_eq!(Time(5).since(Time(7)), Duration::ZERO);
        assert_eq!(Time(7) - Time(5), Duration::from_nanos(2));
        assert_eq!(Time::FAR + Duration::from_nanos(1), Time::FAR);
        assert_eq!(Time::ZERO + Duration::MAX, Time::FAR);
    }

    #[test]
    fn time_is_shown_in_seconds() {
        assert_eq!(Time(1_000_000_002).to_string(), "1.000000002");
    }
}
