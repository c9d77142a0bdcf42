//! Another style for a group that runs (`docs/protocol/group.md`, "Change of style").

use serde::{Deserialize, Serialize};

use super::{Durability, GroupOptions, Style};
use crate::{GroupId, ViewNumber};

/// The group has this style from here on, if it is still in this view and its style [may change so](GroupOptions::may_become).
/// | group | view | style |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restyle {
    /// Which group.
    pub group: GroupId,
    /// The view that is to be changed.
    pub view: ViewNumber,
    /// The new style.
    pub style: Style,
}

impl Style {
    /// A group gets it, and another instead, while it runs: what its replicas have at a place of the order is the same, or is made so by
    /// what was ordered before.
    pub const fn can_change(self) -> bool {
        match self {
            Style::SemiActive
            | Style::Active
            | Style::Voting
            | Style::WarmPassive
            | Style::ColdPassive => true,
            Style::Stateless => false,
        }
    }

    /// Whether a group on disk may have it: all that it took is in the order, and each replica is believed what it has executed.
    pub const fn can_be_on_disk(self) -> bool {
        matches!(self, Style::SemiActive | Style::Active)
    }
}

impl GroupOptions {
    /// Whether a group with these options may get this style while it runs.
    pub fn may_become(self, style: Style) -> bool {
        let apart = !self.style.can_change() || !style.can_change();
        !apart && (self.durability == Durability::Memory || style.can_be_on_disk())
    }

    /// Whether a replica that was configured with `begun` may be one of a group with these options: they are the same, but for a
    /// style that may have changed since the group began.
    pub fn may_have_been(self, begun: GroupOptions) -> bool {
        let same_but_for_style = GroupOptions { style: self.style, ..begun } == self;
        same_but_for_style && (begun.style == self.style || begun.may_become(self.style))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ordered::Hold;

    #[test]
    fn styles_with_a_state_may_change_into_each_other_and_those_of_the_disk_into_those_of_the_disk()
    {
        let of = |style| GroupOptions { style, ..GroupOptions::default() };
        for from in Style::ALL {
            for to in Style::ALL {
                let can = |style| style != Style::Stateless;
                let allowed = can(from) && can(to);
                assert_eq!(of(from).may_become(to), allowed, "{from} to {to}");
                assert_eq!(of(to).may_have_been(of(from)), allowed || from == to);
            }
        }
        let disk = GroupOptions { durability: Durability::Disk, ..GroupOptions::default() };
        assert!(disk.may_become(Style::Active) && !disk.may_become(Style::Voting));
        assert!(!disk.may_become(Style::WarmPassive) && !disk.may_become(Style::ColdPassive));
        assert!(!disk.may_have_been(GroupOptions::default()));
        let all = GroupOptions { hold: Hold::All, ..GroupOptions::default() };
        assert!(!all.may_have_been(GroupOptions::default()));
    }
}
