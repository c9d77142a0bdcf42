//! Another style for a group that runs, on demand (`docs/protocol/group.md`, "Change of style").
//!
//! Whoever proposes it orders it, of the view that it knows. In a group whose replicas all execute
//! nobody has to be ready: the first such message of a view is the change, at its place in the
//! order. In a warm passive group the primary's is, who says it when what it has executed is
//! ordered.

mod handler;

use wire::ordered::Style;
use wire::{Duration, RingId, Time, ViewNumber};

use crate::api::RestyleError;
use crate::directory::Group;

/// Whoever asked for a change of style hears of it within this time.
const RESTYLE_TIMEOUT: Duration = Duration::from_secs(3);

/// A change of style that this node proposals.
pub(crate) struct Restyling {
    style: Style,
    until: Time,
    /// Where the proposal was ordered last: on a ring that ended it may be lost, of an old view it
    /// is void.
    asked: Option<(RingId, ViewNumber)>,
    /// It had its place in the order here. Before, this node may not know of a change that another
    /// has told already: a group that seems to have the style may have it no more.
    placed: bool,
    /// The group got the style after that.
    granted: Option<Granted>,
}

impl Restyling {
    /// A change that somebody asks for now.
    pub(crate) fn asked(style: Style, now: Time) -> Restyling {
        let until = now + RESTYLE_TIMEOUT;
        Restyling { style, until, asked: None, placed: false, granted: None }
    }

    pub(crate) fn style(&self) -> Style {
        self.style
    }
}

/// A group has the style that was proposed.
#[derive(Clone, Copy)]
struct Granted {
    ring: RingId,
    sequence: u64,
    view: ViewNumber,
}

/// What can come of a proposal.
enum Outlook {
    /// It is so, or cannot be.
    Over(Result<ViewNumber, RestyleError>),
    /// It can be ordered, of this view.
    Ready(ViewNumber),
    /// Groups do not act now.
    Wait,
}

/// Why this group cannot have that style.
fn refusal(group: &Group, to: Style) -> Option<RestyleError> {
    let from = group.options.style;
    if !group.options.may_become(to) {
        return Some(RestyleError::LosesState { from });
    }
    group.primary().is_none().then_some(RestyleError::NoPrimary)
}
