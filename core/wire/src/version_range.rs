//! The versions of a protocol that a program speaks.

use core::fmt;

use serde::{Deserialize, Serialize};

/// The versions of a protocol that a program speaks: all from the least to the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VersionRange {
    /// The oldest; at least 1.
    pub least: u8,
    /// The newest.
    pub greatest: u8,
}

impl VersionRange {
    /// All from `least` to `greatest`.
    pub const fn new(least: u8, greatest: u8) -> VersionRange {
        assert!(1 <= least && least <= greatest, "a range has a version");
        VersionRange { least, greatest }
    }

    /// Whether this version is spoken.
    pub const fn contains(self, version: u8) -> bool {
        self.least <= version && version <= self.greatest
    }

    /// The versions that both speak.
    pub fn common(self, other: VersionRange) -> Option<VersionRange> {
        let (least, greatest) = (self.least.max(other.least), self.greatest.min(other.greatest));
        (least <= greatest).then_some(VersionRange { least, greatest })
    }

    /// The second of the two bytes.
    pub(crate) fn least_byte(self) -> u8 {
        if self.least == self.greatest { 0 } else { self.least }
    }

    /// Whether there is a version in it, and none is 0.
    pub(crate) fn has_one(self) -> bool {
        1 <= self.least && self.least <= self.greatest
    }
}

/// "1", or "1 to 2".
impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VersionRange { least, greatest } if least == greatest => write!(f, "{least}"),
            VersionRange { least, greatest } => write!(f, "{least} to {greatest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(least: u8, greatest: u8) -> VersionRange {
        VersionRange::new(least, greatest)
    }

    #[test]
    fn two_programs_choose_the_greatest_that_both_speak() {
        let chosen = |a: VersionRange, b| a.common(b).map(|both| both.greatest);
        assert_eq!(chosen(range(1, 2), range(2, 3)), Some(2));
        assert_eq!(chosen(range(1, 2), range(1, 1)), Some(1));
        assert_eq!(chosen(range(1, 2), range(3, 4)), None);
    }
}
