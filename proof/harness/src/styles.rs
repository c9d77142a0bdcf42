//! How a group is replicated in an experiment that may choose: by its style, and on disk.

use std::fmt;

use clap::ValueEnum;

use crate::name;

/// The styles in which a group has a state, and a primary or entries that others succeed. In
/// memory, if it does not say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the styles are documented where they are defined")]
pub enum By {
    SemiActive,
    Active,
    Voting,
    WarmPassive,
    ColdPassive,
    /// Semi-active, on disk: it survives the death of all nodes at once.
    OnDisk,
}

/// The groups of each style: of echoes, and of objects.
const GROUPS: [[&str; 2]; By::ALL.len()] = [
    ["thread", "thread-objects"],
    ["active", "active-objects"],
    ["voting", "voting-objects"],
    ["warm", "warm-objects"],
    ["cold", "cold-objects"],
    ["disk", "disk-objects"],
];

impl By {
    /// All of them.
    pub const ALL: [By; 6] =
        [By::SemiActive, By::Active, By::Voting, By::WarmPassive, By::ColdPassive, By::OnDisk];

    /// The group of echoes that is replicated so: its name says how it is hosted.
    pub fn echo(self) -> &'static [&'static str] {
        &GROUPS[self as usize][..1]
    }

    /// The group of [objects](crate::objects) that is replicated so.
    pub fn objects(self) -> &'static [&'static str] {
        &GROUPS[self as usize][1..]
    }

    /// It is kept on disk.
    pub fn is_on_disk(self) -> bool {
        self == By::OnDisk
    }

    /// Its primary's service alone runs: the others have no state that could be looked at.
    pub fn runs_at_the_primary_alone(self) -> bool {
        self == By::ColdPassive
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&name(*self))
    }
}
