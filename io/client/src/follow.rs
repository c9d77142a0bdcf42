//! Groups whose targets are kept known while no call is under way.

use wire::client::Targets;
use wire::limits::{MAX_GROUPS, MAX_NAME};
use wire::{GroupId, Time};

use crate::CallError;
use crate::Policy;
use crate::output::Timer;
use crate::session::Session;
use crate::targets::Group;

/// A session's knowledge of a group that it follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Followed {
    /// No node has answered yet.
    #[default]
    Unknown,
    /// The cluster has no such group now. It may have one later.
    Absent,
    /// The group's targets, the best first.
    Known(Targets),
}

impl Session {
    /// Keeps a group's targets known: see [`followed`](Session::followed).
    ///
    /// The session connects to the first targets. They tell it of newer views, and once a second
    /// it asks a node besides.
    ///
    /// # Errors
    /// [`CallError::NoSuchGroup`] if no group can have this name. [`CallError::TooManyCalls`] if
    /// the session has too many groups.
    pub fn follow(&mut self, now: Time, name: &str) -> Result<(), CallError> {
        let id = GroupId::of(name);
        let is_place = name.ends_with(':');
        let policy = if is_place { Policy::default() } else { self.policy_of(name) };
        match self.groups.get(&id) {
            _ if name.is_empty() || name.len() > MAX_NAME => {
                return Err(CallError::NoSuchGroup(name.into()));
            }
            Some(group) if group.name != name => return Err(CallError::NoSuchGroup(name.into())),
            None if self.groups.len() >= MAX_GROUPS => return Err(CallError::TooManyCalls),
            _ => {}
        }
        let group = self.groups.entry(id).or_insert_with(|| Group::new(name, policy));
        group.followed = true;
        self.effects.timers.set(Timer::Refresh(id), now);
        Ok(())
    }

    /// Ends [`follow`](Session::follow).
    pub fn unfollow(&mut self, name: &str) {
        let id = GroupId::of(name);
        if let Some(group) = self.groups.get_mut(&id).filter(|group| group.name == name) {
            group.followed = false;
            self.forget_if_unused(id);
        }
    }

    /// Tells what is known of a group that the session follows.
    pub fn followed(&self, name: &str) -> Followed {
        match self.groups.get(&GroupId::of(name)) {
            Some(group) if group.bound => Followed::Known(group.targets.clone()),
            Some(group) if group.was_denied() => Followed::Absent,
            _ => Followed::Unknown,
        }
    }
}
