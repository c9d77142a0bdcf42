//! Saves and restores of a group's state (`docs/protocol/backup.md`).

use alloc::string::String;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{GroupOptions, LoggedState, ReplicaState, Style};
use crate::codec::at_most;
use crate::limits::{MAX_LOGGED_STATE, MAX_NAME, MAX_STATE};
use crate::{GroupId, Malformed, Member};

/// The form of a saved state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A [`ReplicaState`](super::ReplicaState).
    State,
    /// A [`LoggedState`](super::LoggedState): a checkpoint and the log behind it, of a cold passive
    /// group.
    Log,
}

impl Form {
    /// The form in which a group of this style is saved.
    pub const fn of(style: Style) -> Form {
        match style {
            Style::ColdPassive => Form::Log,
            Style::Stateless
            | Style::WarmPassive
            | Style::SemiActive
            | Style::Active
            | Style::Voting => Form::State,
        }
    }

    /// Whether a group of this style can begin with a state of this form. A cold passive group
    /// takes a state as its checkpoint. Other styles cannot begin with a log, which must be
    /// executed first.
    pub const fn fits(self, style: Style) -> bool {
        match (self, style) {
            (_, Style::Stateless) => false,
            (Form::State, _) | (Form::Log, Style::ColdPassive) => true,
            (Form::Log, _) => false,
        }
    }

    /// Bytes of a state in this form, at most.
    pub const fn limit(self) -> usize {
        match self {
            Form::State => MAX_STATE,
            Form::Log => MAX_LOGGED_STATE,
        }
    }

    /// Decodes a state of this form as a replica does, and returns a summary.
    ///
    /// # Errors
    /// [`Malformed`] if no replica can have written it.
    pub fn look(self, state: &Bytes) -> Result<Content, Malformed> {
        at_most(state.len(), self.limit(), "state")?;
        match self {
            Form::State => {
                let ReplicaState { head, service } = ReplicaState::decode(state)?;
                let (executed, sessions) = (head.executed, head.sessions.len());
                Ok(Content { executed, sessions, logged: 0, service: Some(service) })
            }
            Form::Log => {
                let LoggedState { logged, checkpoint, log, .. } = LoggedState::decode(state)?;
                let content = Content { executed: logged, logged: log.len(), ..Content::default() };
                if checkpoint.is_empty() {
                    return Ok(content);
                }
                let ReplicaState { head, service } = ReplicaState::decode(&checkpoint)?;
                Ok(Content { sessions: head.sessions.len(), service: Some(service), ..content })
            }
        }
    }
}

/// The summary of a saved state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Requests in the group's history.
    pub executed: u64,
    /// Sessions of clients, with their kept replies.
    pub sessions: usize,
    /// How many of these requests, the last ones, are in the log and not in the service's state.
    pub logged: usize,
    /// The service's own state; `None`: its initial state.
    pub service: Option<Bytes>,
}

/// A deposited state with which a group begins, and the node that has it. It stays in the group's
/// entry after the group has begun.
///
/// ```text
/// | holder: node, incarnation | number | form | pending |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deposit {
    /// The node that has the state.
    pub holder: Member,
    /// The deposit's unique number.
    pub number: u64,
    /// The state's form.
    pub form: Form,
    /// No replica has taken it yet.
    pub pending: bool,
}

/// A step of a save or of a restore. Postcard: the variant's number, then the fields in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackupStep {
    /// The sender saves its replica's state at this place. | group | number |
    Save {
        /// Which group.
        group: GroupId,
        /// The sender's own number of the save.
        number: u64,
    },
    /// From this place on, the group begins with a state that the sender has. Its replicas leave,
    /// and join again without the state.
    /// | name | options | form | number | replace |
    Deposit {
        /// The group's name.
        name: String,
        /// The group's options, used if it does not exist yet.
        options: GroupOptions,
        /// The state's form.
        form: Form,
        /// The deposit's unique number.
        number: u64,
        /// Discard the group's state. If this is false, the step is void for a group that has
        /// executed calls.
        replace: bool,
    },
    /// Discards a deposit that no replica has taken. The group begins with its service's initial
    /// state.
    /// | group | number |
    Discard {
        /// Which group.
        group: GroupId,
        /// The deposit's number.
        number: u64,
    },
}

impl BackupStep {
    pub(super) fn checked(self) -> Result<BackupStep, Malformed> {
        if let BackupStep::Deposit { name, .. } = &self {
            at_most(name.len(), MAX_NAME, "name")?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_in_a_style_fits_it_and_a_log_no_other() {
        for style in Style::ALL {
            let has_state = style != Style::Stateless;
            assert_eq!(Form::of(style).fits(style), has_state, "{style}");
            assert_eq!(Form::State.fits(style), has_state, "{style}");
            assert_eq!(Form::Log.fits(style), style == Style::ColdPassive, "{style}");
        }
    }
}
