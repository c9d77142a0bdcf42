//! If a stateless group's call is answered, a member executed it, and that execution gave the
//! answer. Each member serves, with a quorum or without.
//!
//! Source: docs/protocol/group.md, "Styles". At least once: a retry may be executed again, here or
//! elsewhere.

use super::hashed::{HashMap, HashSet};

use engine::ServiceOutcome;
use wire::client::Outcome;
use wire::{ClientId, GroupId, Member};

use super::replies::{CallKey, of_the_service};
use super::{Verdict, demand};
use crate::trace::digest;

const PROPERTY: &str = "stateless calls are served";

/// The executions of the stateless groups' replicas.
#[derive(Clone, Default)]
pub struct Served {
    groups: Vec<GroupId>,
    /// Members of the last view that they installed themselves.
    members: HashSet<(GroupId, Member)>,
    /// Lives whose disk has failed: they leave. A group ends with its last replica, without a view
    /// that reports it.
    leaving: HashSet<Member>,
    executed: HashMap<CallKey, Vec<u64>>,
}

impl Served {
    /// These groups are stateless.
    pub fn new(groups: Vec<GroupId>) -> Self {
        Served { groups, ..Served::default() }
    }

    /// The group is stateless.
    pub fn concerns(&self, group: GroupId) -> bool {
        self.groups.contains(&group)
    }

    /// A node installs a view.
    pub fn view(&mut self, by: Member, group: GroupId, replicas: &[(Member, bool)]) {
        if replicas.iter().any(|(member, _)| *member == by) {
            self.members.insert((group, by));
        } else {
            self.members.remove(&(group, by));
        }
    }

    /// A node has seen the group end: its last replica hung, or left.
    pub fn ended(&mut self, by: Member, group: GroupId) {
        self.members.remove(&(group, by));
    }

    /// A node leaves the cluster.
    pub fn leaves(&mut self, by: Member) {
        self.leaving.insert(by);
    }

    /// A replica is given a call.
    pub fn given(&self, by: Member, group: GroupId) -> Verdict {
        let member = !self.concerns(group) || self.members.contains(&(group, by));
        demand(member, PROPERTY, || format!("{by} serves {group}, and is not in its view"))
    }

    /// A replica has executed a call.
    pub fn executed(&mut self, group: GroupId, client: ClientId, number: u64, said: u64) {
        if self.concerns(group) {
            self.executed.entry((group, client, number)).or_default().push(said);
        }
    }

    /// A node answers a call of a stateless group.
    pub fn answered(&self, by: Member, call: CallKey, outcome: &Outcome) -> Verdict {
        if of_the_service(outcome) {
            let executions = self.executed.get(&call).map_or(&[][..], Vec::as_slice);
            return demand(executions.contains(&of_outcome(outcome)), PROPERTY, || {
                let times = executions.len();
                format!("{by} answers {call:?}, executed {times} times, by what none of them gave")
            });
        }
        let declined =
            matches!(outcome, Outcome::NotPrimary | Outcome::NoReplica | Outcome::NoSuchGroup);
        let serves = self.members.contains(&(call.0, by)) && !self.leaving.contains(&by);
        demand(!declined || !serves, PROPERTY, || {
            format!("{by}, a member, declines {call:?}: {outcome:?}")
        })
    }
}

fn of_outcome(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Ok(bytes) | Outcome::Service(bytes) => digest(bytes),
        Outcome::Refused(_, reason) => digest(reason.as_bytes()),
        _ => 0,
    }
}

/// A digest of an execution's outcome, to compare.
pub fn said(outcome: &ServiceOutcome) -> u64 {
    match outcome {
        ServiceOutcome::Ok(bytes) | ServiceOutcome::Error(bytes) => digest(bytes),
        ServiceOutcome::Refused(_, reason) => digest(reason.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use wire::{Incarnation, NodeId};

    const GROUP: GroupId = GroupId(5);
    const CLIENT: ClientId = ClientId(6);

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    #[test]
    fn an_answer_of_another_execution_and_one_of_nobody_are_seen() {
        let mut served = Served::new(vec![GROUP]);
        let answer = |text: &'static str| Outcome::Ok(Bytes::from_static(text.as_bytes()));
        let call = (GROUP, CLIENT, 1);
        assert!(served.answered(member(1), call, &answer("a")).is_err(), "nobody executed it");
        let one = ServiceOutcome::Ok(Bytes::from_static(b"a"));
        served.executed(GROUP, CLIENT, 1, said(&one));
        served.executed(GROUP, CLIENT, 2, said(&ServiceOutcome::Ok(Bytes::from_static(b"b"))));
        assert!(served.answered(member(1), call, &answer("a")).is_ok());
        assert!(served.answered(member(1), call, &answer("b")).is_err());
    }

    #[test]
    fn a_member_that_declines_and_a_stranger_that_serves_are_seen() {
        let mut served = Served::new(vec![GROUP]);
        let view = [(member(1), true), (member(2), true)];
        served.view(member(1), GROUP, &view);
        assert!(served.given(member(1), GROUP).is_ok());
        assert!(served.given(member(2), GROUP).is_err(), "it does not know that it is a member");
        assert!(served.given(member(2), GroupId(9)).is_ok(), "another style");
        let call = (GROUP, CLIENT, 1);
        assert!(served.answered(member(1), call, &Outcome::NoReplica).is_err());
        assert!(served.answered(member(3), call, &Outcome::NotPrimary).is_ok());
        served.ended(member(1), GROUP);
        assert!(served.answered(member(1), call, &Outcome::NoSuchGroup).is_ok());
        served.view(member(1), GROUP, &view);
        served.view(member(1), GROUP, &view[1..]);
        assert!(served.given(member(1), GROUP).is_err());
        assert!(served.answered(member(1), call, &Outcome::NoReplica).is_ok());
    }
}
