//! The change of a running group's style (`docs/protocol/group.md`, "Change of style").

use serde::{Deserialize, Serialize};

use super::{GroupOptions, Style};
use crate::{GroupId, ViewNumber};

/// Gives the group this style. It is void if the group's view is another one, or if the style
/// [may not change so](GroupOptions::may_become).
///
/// ```text
/// | group | view | style |
/// ```
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
    /// Whether the replicas share a state. Such a state can be kept on disk, and survives a change
    /// to another style that has one.
    pub const fn has_state(self) -> bool {
        match self {
            Style::SemiActive
            | Style::Active
            | Style::Voting
            | Style::WarmPassive
            | Style::ColdPassive => true,
            Style::Stateless => false,
        }
    }
}

impl GroupOptions {
    /// Whether a running group with these options may change to this style. A stateless group
    /// begins with the service's initial state. A change to stateless is refused: it would lose the
    /// state.
    pub fn may_become(self, style: Style) -> bool {
        style.has_state() || !self.style.has_state()
    }

    /// Whether a replica configured with `begun` may join a group with these options. They must be
    /// the same, except for the style, which may have changed since the group began.
    pub fn may_have_been(self, begun: GroupOptions) -> bool {
        let same_but_for_style = GroupOptions { style: self.style, ..begun } == self;
        same_but_for_style && (begun.style == self.style || begun.may_become(self.style))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ordered::{AckLevel, Durability};

    #[test]
    fn a_group_may_get_every_style_but_one_that_loses_its_state() {
        let of = |style| GroupOptions { style, ..GroupOptions::default() };
        for from in Style::ALL {
            for to in Style::ALL {
                let allowed = to != Style::Stateless || from == to;
                assert_eq!(of(from).may_become(to), allowed, "{from} to {to}");
                assert_eq!(of(to).may_have_been(of(from)), allowed);
            }
        }
        let disk = GroupOptions { durability: Durability::Disk, ..GroupOptions::default() };
        assert!(!disk.may_have_been(GroupOptions::default()));
        let all = GroupOptions { ack: AckLevel::All, ..GroupOptions::default() };
        assert!(!all.may_have_been(GroupOptions::default()));
    }
}
