//! The service of a cold passive group runs at its primary alone, and is given nothing before it was started.
//!
//! Source: docs/protocol/group.md, "Cold passive". That nothing is lost and nothing is executed twice is what the checkers of all groups
//! demand.

use super::hashed::{HashMap, HashSet};

use wire::{GroupId, Member};

use super::{Verdict, demand};

const PROPERTY: &str = "the primary alone runs";

/// Where services run.
#[derive(Default)]
pub struct Cold {
    groups: Vec<GroupId>,
    /// The primary, by the last view that each node installed.
    primaries: HashMap<(GroupId, Member), Option<Member>>,
    running: HashSet<(GroupId, Member)>,
}

impl Cold {
    /// These groups are cold passive.
    pub fn new(groups: Vec<GroupId>) -> Self {
        Cold { groups, ..Cold::default() }
    }

    /// The group is cold passive.
    pub fn concerns(&self, group: GroupId) -> bool {
        self.groups.contains(&group)
    }

    /// A node installs a view.
    pub fn view(&mut self, by: Member, group: GroupId, primary: Option<Member>) {
        self.primaries.insert((group, by), primary);
    }

    /// A replica's service is to run.
    pub fn started(&mut self, by: Member, group: GroupId) -> Verdict {
        let primary = self.primaries.get(&(group, by)).copied().flatten();
        demand(self.concerns(group) && primary == Some(by), PROPERTY, || {
            format!("{by} starts its service of {group}, whose primary is {primary:?}")
        })?;
        let new = self.running.insert((group, by));
        demand(new, PROPERTY, || format!("{by} starts its service of {group} twice"))
    }

    /// It is to run no more.
    pub fn stopped(&mut self, by: Member, group: GroupId) {
        self.running.remove(&(group, by));
    }

    /// It is given something else.
    pub fn given(&self, by: Member, group: GroupId) -> Verdict {
        let runs = !self.concerns(group) || self.running.contains(&(group, by));
        demand(runs, PROPERTY, || format!("{by} is given work for {group}, which it does not run"))
    }

    /// All is over: of this group just one of these replicas runs.
    pub fn finish(&self, group: GroupId, replicas: &[Member]) -> Verdict {
        let running = replicas.iter().filter(|member| self.running.contains(&(group, **member)));
        let running: Vec<_> = running.collect();
        demand(!self.concerns(group) || running.len() == 1, PROPERTY, || {
            format!("the service of {group} runs at {running:?}")
        })
    }

    /// Whether its service runs at this member.
    pub fn runs(&self, by: Member, group: GroupId) -> bool {
        !self.concerns(group) || self.running.contains(&(group, by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    #[test]
    fn backups_do_not_run() {
        const GROUP: GroupId = GroupId(7);
        let mut cold = Cold::new(vec![GROUP]);
        cold.view(member(1), GROUP, Some(member(1)));
        cold.view(member(2), GROUP, Some(member(1)));
        assert!(cold.given(member(1), GROUP).is_err(), "it was not started");
        assert!(cold.started(member(1), GROUP).is_ok());
        assert!(cold.given(member(1), GROUP).is_ok());
        assert!(cold.started(member(1), GROUP).is_err(), "it runs");
        assert!(cold.started(member(2), GROUP).is_err(), "1 is primary");
        assert!(cold.finish(GROUP, &[member(1), member(2)]).is_ok());
        cold.stopped(member(1), GROUP);
        assert!(cold.finish(GROUP, &[member(1), member(2)]).is_err(), "nobody is left");
        assert!(cold.given(member(2), GroupId(9)).is_ok(), "another style");
    }
}
