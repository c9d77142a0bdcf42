//! The versions of each protocol that this program speaks, and the one that two programs choose.
//!
//! Five protocols have a version each, so that the upgrade of a node never makes a user build a
//! program anew:
//!
//! | protocol | between | the version in use |
//! | --- | --- | --- |
//! | [`RING`] | nodes: datagrams, state streams, and frames between agents | of a ring: the least of its members' greatest; it is in each datagram's head |
//! | [`RULES`] | nodes: what replicas decide, and the ordered messages | the *level*: changes at a place in the order, for all |
//! | [`CLIENT`] | a client and a node | the greatest that both speak: `Hello` has the range, `Welcome` the choice |
//! | [`ATTACH`] | a program and its node | the same |
//! | [`RANK`] | a rank and its agent | the same |
//!
//! Each range has this program's version and the one before: neighbours understand each other.
//! `docs/protocol/versions.md` has the rules.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Malformed;
use crate::NodeId;
use crate::codec::at_most;
use crate::limits::{MAX_EXTENSION, MAX_RELEASE};
pub use crate::version_range::VersionRange;

/// Between nodes.
pub const RING: VersionRange = VersionRange::new(1, 1);

/// The level of rules from which on nodes come and go, and each node may have a replica of the
/// system's own groups.
pub const GROWTH: u8 = 2;

/// The level of rules from which on what was acknowledged arrives whole: a call is known again by
/// what it asks, calls with keys after a long time, and reasons about states are told.
pub const WHOLE: u8 = 3;

/// The decisions of replicas.
pub const RULES: VersionRange = VersionRange::new(2, 3);

/// The version of [`CLIENT`] from which on requests say whether they have keys, and a client knows
/// the refusal of a key that another call has.
pub const KEYS: u8 = 2;

/// Between a client and a node.
pub const CLIENT: VersionRange = VersionRange::new(1, 2);

/// Between a program and its node.
pub const ATTACH: VersionRange = VersionRange::new(1, 1);

/// Between a rank and its agent.
pub const RANK: VersionRange = VersionRange::new(1, 1);

impl VersionRange {
    /// Refuses a range without a version.
    pub(crate) fn checked(self) -> Result<VersionRange, Malformed> {
        if self.has_one() { Ok(self) } else { Err(Malformed::Field("versions")) }
    }

    /// The two bytes of the fixed layouts: the greatest, then the least; 0 is "the same", and all
    /// that a program writes that speaks one version.
    pub(crate) fn from_bytes(greatest: u8, least: u8) -> Result<VersionRange, Malformed> {
        let least = if least == 0 { greatest } else { least };
        VersionRange { least, greatest }.checked()
    }
}

/// The versions that nodes speak with each other. They decide whether two nodes may be in one ring. Postcard, fields in this order.
///
/// ```text
/// | ring: least, greatest | rules: least, greatest | level |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speaks {
    /// The ring.
    pub ring: VersionRange,
    /// The rules.
    pub rules: VersionRange,
    /// The rules that are in force, as far as the node knows; 0: it knows of none.
    pub level: u8,
}

impl Speaks {
    /// All that this program speaks, at a node that knows of no rules in force.
    pub const ALL: Speaks = Speaks { ring: RING, rules: RULES, level: 0 };

    /// The versions that both speak, if they can be in one ring.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn common(self, other: Speaks) -> Result<Speaks, Unfit> {
        let ring = self.ring.common(other.ring).ok_or(Unfit::Ring)?;
        // A component has the highest level that a member knows.
        let level = self.level.max(other.level);
        let knows = |rules: VersionRange| level == 0 || rules.contains(level);
        if !knows(self.rules) {
            return Err(Unfit::OurRules);
        }
        if !knows(other.rules) {
            return Err(Unfit::TheirRules);
        }
        let newer = self.rules.least > other.rules.greatest;
        let unfit = if newer { Unfit::TheirRules } else { Unfit::OurRules };
        let rules = self.rules.common(other.rules).ok_or(unfit)?;
        Ok(Speaks { ring, rules, level })
    }

    pub(crate) fn checked(self) -> Result<Speaks, Malformed> {
        self.ring.checked()?;
        self.rules.checked()?;
        Ok(self)
    }
}

/// Why a node cannot be in one ring with this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unfit {
    /// No version of the ring is common.
    Ring,
    /// It does not know the rules in force here.
    TheirRules,
    /// This node does not know the rules in force there.
    OurRules,
    /// It cannot be in one ring with this node, which is in one with this other node.
    With(NodeId),
}

/// A node's program: its release, and what it speaks. Postcard, fields in this order.
///
/// ```text
/// | release | ring | rules | client | attach | rank |        each: least, greatest
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its release, for people; at most [`MAX_RELEASE`] bytes.
    pub release: String,
    /// With other nodes.
    pub ring: VersionRange,
    /// The decisions of replicas.
    pub rules: VersionRange,
    /// With clients.
    pub client: VersionRange,
    /// With programs.
    pub attach: VersionRange,
    /// With ranks.
    pub rank: VersionRange,
}

impl Program {
    /// This program, as a release of this name.
    pub fn this(release: &str) -> Program {
        let release = release.chars().take(MAX_RELEASE / 4).collect();
        Program { release, ring: RING, rules: RULES, client: CLIENT, attach: ATTACH, rank: RANK }
    }

    pub(crate) fn check(&self) -> Result<(), Malformed> {
        at_most(self.release.len(), MAX_RELEASE, "release")?;
        for range in [self.ring, self.rules, self.client, self.attach, self.rank] {
            range.checked()?;
        }
        Ok(())
    }
}

/// Bytes that a newer program adds to a message whose form is frozen. An older one skips them.
/// | length | bytes, at most [`MAX_EXTENSION`] |
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension(pub Vec<u8>);

impl Extension {
    pub(crate) fn check(&self) -> Result<(), Malformed> {
        at_most(self.0.len(), MAX_EXTENSION, "extension")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(least: u8, greatest: u8) -> VersionRange {
        VersionRange::new(least, greatest)
    }

    #[test]
    fn a_program_of_one_version_writes_a_zero_for_the_least() {
        assert_eq!(VersionRange::from_bytes(1, 0), Ok(range(1, 1)));
        assert_eq!(VersionRange::from_bytes(3, 2), Ok(range(2, 3)));
        assert_eq!((range(1, 1).least_byte(), range(2, 3).least_byte()), (0, 2));
        for (greatest, least) in [(0, 0), (1, 2)] {
            let refused = VersionRange::from_bytes(greatest, least);
            assert_eq!(refused, Err(Malformed::Field("versions")));
        }
    }

    #[test]
    fn rules_in_force_on_either_side_have_to_be_known_on_the_other() {
        let speaks = |rules, level| Speaks { ring: range(1, 2), rules, level };
        let old = speaks(range(1, 1), 1);
        let new = speaks(range(1, 2), 0);
        let both = Speaks { ring: range(1, 2), rules: range(1, 1), level: 1 };
        assert_eq!(old.common(new), Ok(both));
        assert_eq!(new.common(old), Ok(both));
        let finished = speaks(range(1, 2), 2);
        assert_eq!(finished.common(old), Err(Unfit::TheirRules));
        assert_eq!(old.common(finished), Err(Unfit::OurRules));
        let behind = speaks(range(1, 2), 1);
        let both = Speaks { rules: range(2, 2), ..finished };
        let newer = speaks(range(2, 3), 2);
        assert_eq!(newer.common(behind), Ok(both), "it was away when the rules came into force");
        assert_eq!(behind.common(newer), Ok(both));
        assert_eq!(both.common(behind), Ok(both));
        let newest = speaks(range(3, 4), 0);
        assert_eq!(newest.common(new), Err(Unfit::TheirRules));
        assert_eq!(new.common(newest), Err(Unfit::OurRules));
        let other = Speaks { ring: range(3, 3), ..new };
        assert_eq!(new.common(other), Err(Unfit::Ring));
    }
}
