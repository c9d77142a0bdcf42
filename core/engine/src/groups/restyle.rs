//! Another style for a group that runs, on demand (`docs/protocol/group.md`, "Change of style").
//!
//! The proposer orders the change, with the view that it knows. If all replicas of the group
//! execute, nobody has to be ready: the first such message of a view is the change, at its place in
//! the order. In a warm passive group the primary's message is the change; the primary orders it
//! when all that it has executed is ordered.

mod handler;

use wire::ordered::Style;
use wire::{Duration, RingId, Time, ViewNumber};

use crate::api::RestyleError;
use crate::directory::Group;

/// The requester of a change of style gets the outcome within this time.
const RESTYLE_TIMEOUT: Duration = Duration::from_secs(3);

/// A change of style that this node proposes.
#[derive(Clone, Debug)]
pub(crate) struct Restyling {
    style: Style,
    until: Time,
    /// The ring and view of the last proposal. After the end of the ring it may be lost; in another
    /// view it is void.
    asked: Option<(RingId, ViewNumber)>,
    /// The proposal had its place in the order here. Before that, this node may have missed
    /// another's change: a group that seems to have the style may have lost it.
    placed: bool,
    /// Set when the group got the style after that.
    granted: Option<Granted>,
}

impl Restyling {
    /// A change that is requested now.
    pub(crate) fn asked(style: Style, now: Time) -> Restyling {
        let until = now + RESTYLE_TIMEOUT;
        Restyling { style, until, asked: None, placed: false, granted: None }
    }

    pub(crate) fn style(&self) -> Style {
        self.style
    }
}

/// The proof that a group has the proposed style.
#[derive(Clone, Copy, Debug)]
struct Granted {
    ring: RingId,
    sequence: u64,
    view: ViewNumber,
}

/// The state of a proposal.
#[derive(Clone, Debug)]
enum Outlook {
    /// The group has the style, or cannot have it.
    Over(Result<ViewNumber, RestyleError>),
    /// The change can be ordered, in this view.
    Ready(ViewNumber),
    /// Groups do not act now.
    Wait,
}

/// Returns why this group cannot have that style.
fn refusal(group: &Group, to: Style) -> Option<RestyleError> {
    let from = group.options.style;
    if !group.options.may_become(to) {
        return Some(RestyleError::LosesState { from });
    }
    group.primary().is_none().then_some(RestyleError::NoPrimary)
}
