//! Lanes: calls of different urgency that do not wait for one another.

/// The lane of a call, by its priority. A replica in lanes (`execution = "lanes"`) executes each
/// lane on a thread of its own, so that an alarm waits behind no normal call.
///
/// ```
/// use steadfast_wire::Lane;
///
/// assert_eq!([0, 99, 100, 200].map(Lane::of), [Lane::Normal, Lane::Normal, Lane::Critical, Lane::Alarm]);
/// ```
///
/// Source: `stheno.txt`, section 3.1 (execution models of the support framework).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Priorities 0 to 99.
    #[default]
    Normal,
    /// Priorities 100 to 199.
    Critical,
    /// Priorities 200 to 255.
    Alarm,
}

impl Lane {
    /// All of them, the least urgent first.
    pub const ALL: [Lane; 3] = [Lane::Normal, Lane::Critical, Lane::Alarm];

    /// The lane of calls with this priority.
    pub const fn of(priority: u8) -> Lane {
        match priority {
            0..100 => Lane::Normal,
            100..200 => Lane::Critical,
            200..=255 => Lane::Alarm,
        }
    }

    /// How much of a limit its calls may fill: three quarters, seven eighths, all. So there is room
    /// for an alarm where there is none for a normal call.
    pub const fn room(self, limit: usize) -> usize {
        match self {
            Lane::Normal => limit - limit / 4,
            Lane::Critical => limit - limit / 8,
            Lane::Alarm => limit,
        }
    }
}
