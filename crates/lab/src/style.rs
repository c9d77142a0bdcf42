//! The styles that an experiment may choose among.

use std::fmt;

use clap::ValueEnum;

/// The styles in which a group has a state, and a primary or entries that others succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    SemiActive,
    Active,
    Voting,
    WarmPassive,
    ColdPassive,
}

impl By {
    /// All of them.
    pub const ALL: [By; 5] =
        [By::SemiActive, By::Active, By::Voting, By::WarmPassive, By::ColdPassive];

    /// The group of echoes that is replicated so: its name says how it is hosted.
    pub fn echo(self) -> &'static [&'static str] {
        match self {
            By::SemiActive => &["thread"],
            By::Active => &["active"],
            By::Voting => &["voting"],
            By::WarmPassive => &["warm"],
            By::ColdPassive => &["cold"],
        }
    }

    /// The group of [objects](crate::blackbox::objects) that is replicated so.
    pub fn objects(self) -> &'static [&'static str] {
        match self {
            By::SemiActive => &["thread-objects"],
            By::Active => &["active-objects"],
            By::Voting => &["voting-objects"],
            By::WarmPassive => &["warm-objects"],
            By::ColdPassive => &["cold-objects"],
        }
    }

    /// As it is named in options and tables.
    pub fn name(self) -> &'static str {
        match self {
            By::SemiActive => "semi-active",
            By::Active => "active",
            By::Voting => "voting",
            By::WarmPassive => "warm-passive",
            By::ColdPassive => "cold-passive",
        }
    }

    /// Its primary's service alone runs: the others have no state that could be looked at.
    pub fn runs_at_the_primary_alone(self) -> bool {
        self == By::ColdPassive
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
