//! A replica whose service hangs goes in time, nobody else does, and never the last that has the
//! state.
//!
//! Source: docs/protocol/hung.md.

use super::hashed::{HashMap, HashSet};

use wire::ordered::Style;
use wire::{Duration, GroupId, Member, ViewNumber};

use super::views::Replicas;
use super::{Verdict, demand};

const PROPERTY: &str = "hung replicas";

/// From where a service stands still with a call until its replica is out: the longest deadline of
/// such worlds, two more spans, and the way of the message.
pub const WITHIN: Duration = Duration::from_millis(700);

/// The hung services, and the latest view of each group that each node installed.
#[derive(Clone, Default)]
pub struct Hung {
    hang: HashSet<(Member, GroupId)>,
    last: HashMap<(Member, GroupId), (ViewNumber, Style, Replicas)>,
}

impl Hung {
    /// The service of this replica hangs from here on.
    pub fn hangs(&mut self, member: Member, group: GroupId) {
        self.hang.insert((member, group));
    }

    /// A node installs a view.
    pub fn installed(
        &mut self,
        by: Member,
        (group, view): (GroupId, ViewNumber),
        (style, replicas): (Style, &Replicas),
    ) {
        self.last.insert((by, group), (view, style, replicas.clone()));
    }

    /// A node says that a replica is out of this view of its group because its service is hung.
    pub fn demoted(
        &self,
        by: Member,
        (group, asked): (GroupId, ViewNumber),
        member: Member,
    ) -> Verdict {
        demand(self.hang.contains(&(member, group)), PROPERTY, || {
            format!("{by} takes {member} out of {group}, whose service does not hang")
        })?;
        // A node has reported nothing of a group that entered this component unchanged.
        let known = self.last.get(&(by, group)).filter(|(view, ..)| *view == asked);
        let Some((view, style, replicas)) = known else { return Ok(()) };
        let others = replicas.iter().any(|(other, synced)| *synced && *other != member);
        demand(others || *style == Style::Stateless, PROPERTY, || {
            format!(
                "{by} takes {member} out of {group}, and nobody else has the state by {view}: {replicas:?}"
            )
        })
    }
}

/// Time is up for a service that stands still. `there`: it is in its group, beside another that has
/// the state.
pub fn found_in_time(by: Member, group: GroupId, there: bool) -> Verdict {
    demand(!there, PROPERTY, || {
        format!(
            "the service of {group} at {by} stands still for {WITHIN:?}, and its replica is in the group"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    #[test]
    fn who_does_not_hang_the_last_with_the_state_and_one_that_stays_are_seen() {
        let (group, by) = (GroupId(1), member(9));
        let mut hung = Hung::default();
        let two = vec![(member(1), true), (member(2), true)];
        hung.installed(by, (group, ViewNumber(3)), (Style::SemiActive, &two));
        hung.demoted(by, (group, ViewNumber(3)), member(1)).unwrap_err();
        hung.hangs(member(1), group);
        hung.demoted(by, (group, ViewNumber(3)), member(1)).unwrap();
        let one = vec![(member(1), true), (member(2), false)];
        hung.installed(by, (group, ViewNumber(4)), (Style::SemiActive, &one));
        hung.demoted(by, (group, ViewNumber(4)), member(1)).unwrap_err();
        assert!(found_in_time(by, group, true).is_err() && found_in_time(by, group, false).is_ok());
    }
}
