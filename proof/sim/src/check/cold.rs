//! In a cold passive group the primary's service alone runs, in others all do; and none is given
//! anything before it was started.
//!
//! Source: docs/protocol/group.md, "Cold passive" and "Change of style". That nothing is lost and
//! nothing is executed twice is what the checkers of all groups demand.

use super::hashed::HashMap;

use wire::ordered::Style;
use wire::{GroupId, Member};

use super::{Verdict, demand};

const PROPERTY: &str = "the primary alone runs";

/// Where services run.
#[derive(Clone, Default)]
pub struct Cold {
    /// Those that begin cold passive.
    groups: Vec<GroupId>,
    /// Disks may give back what was in another style: a replica goes by that first.
    recalls: bool,
    /// Each node's knowledge of each group.
    known: HashMap<(GroupId, Member), Known>,
}

#[derive(Clone, Copy)]
struct Known {
    runs: bool,
    /// By the last view that it installed.
    style: Style,
    primary: Option<Member>,
    /// It has installed a view in another style since its service was stopped, or hosted: it may
    /// have to go by that first.
    launches: bool,
}

impl Cold {
    /// These groups begin cold passive. `recalls`: groups that get other styles are on disk.
    pub fn new(groups: Vec<GroupId>, recalls: bool) -> Self {
        Cold { groups, recalls, ..Cold::default() }
    }

    fn known(&mut self, by: Member, group: GroupId) -> &mut Known {
        let (begins_cold, launches) = (self.groups.contains(&group), self.recalls);
        self.known.entry((group, by)).or_insert_with(|| {
            let style = if begins_cold { Style::ColdPassive } else { Style::SemiActive };
            Known { runs: !begins_cold, style, primary: None, launches }
        })
    }

    /// A node hosts a replica, with the style that the group begins with.
    pub fn hosted(&mut self, by: Member, group: GroupId) {
        self.known.remove(&(group, by));
    }

    /// Its program has died, and the next one is to be started.
    pub fn revived(&mut self, by: Member, group: GroupId) {
        let known = self.known(by, group);
        known.runs = false;
        known.launches = known.style != Style::ColdPassive;
    }

    /// A node installs a view.
    pub fn view(&mut self, by: Member, group: GroupId, (style, primary): (Style, Option<Member>)) {
        let known = self.known(by, group);
        (known.style, known.primary) = (style, primary);
        known.launches |= style != Style::ColdPassive;
    }

    /// A replica's service is to run.
    pub fn started(&mut self, by: Member, group: GroupId) -> Verdict {
        let known = self.known(by, group);
        let Known { runs, style, primary, launches } = *known;
        known.runs = true;
        demand(launches || primary == Some(by), PROPERTY, || {
            format!("{by} starts its service of {group}, {style}, whose primary is {primary:?}")
        })?;
        demand(!runs, PROPERTY, || format!("{by} starts its service of {group} twice"))
    }

    /// It is to run no more.
    pub fn stopped(&mut self, by: Member, group: GroupId) {
        let known = self.known(by, group);
        known.runs = false;
        known.launches = known.style != Style::ColdPassive;
    }

    /// It is given something else.
    pub fn given(&mut self, by: Member, group: GroupId) -> Verdict {
        let runs = self.known(by, group).runs;
        demand(runs, PROPERTY, || format!("{by} is given work for {group}, which it does not run"))
    }

    /// All is over: in a cold passive group just one of these replicas runs, in others all do.
    pub fn finish(&self, group: GroupId, replicas: &[Member]) -> Verdict {
        let of = |member: &&Member| self.known.get(&(group, **member));
        let cold = replicas.iter().filter_map(|member| of(&member));
        let cold = cold.filter(|known| known.style == Style::ColdPassive).count();
        demand(cold == 0 || cold == replicas.len(), PROPERTY, || {
            format!("{cold} of {replicas:?} know {group} as cold passive")
        })?;
        let running: Vec<_> = replicas.iter().filter(|member| self.runs(**member, group)).collect();
        let right = if cold > 0 { 1 } else { replicas.len() };
        demand(running.len() == right, PROPERTY, || {
            format!("the service of {group} runs at {running:?}, of {replicas:?}")
        })
    }

    /// Whether its service runs at this member.
    pub fn runs(&self, by: Member, group: GroupId) -> bool {
        let known = self.known.get(&(group, by));
        known.map_or(!self.groups.contains(&group), |known| known.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    const GROUP: GroupId = GroupId(7);

    fn view(cold: &mut Cold, style: Style) {
        for node in [1, 2] {
            cold.view(member(node), GROUP, (style, Some(member(1))));
        }
    }

    #[test]
    fn backups_do_not_run() {
        let mut cold = Cold::new(vec![GROUP], false);
        view(&mut cold, Style::ColdPassive);
        assert!(cold.given(member(1), GROUP).is_err(), "it was not started");
        assert!(cold.started(member(1), GROUP).is_ok());
        assert!(cold.given(member(1), GROUP).is_ok());
        assert!(cold.finish(GROUP, &[member(1), member(2)]).is_ok());
        assert!(cold.started(member(2), GROUP).is_err(), "1 is primary");
        cold.stopped(member(2), GROUP);
        cold.stopped(member(1), GROUP);
        assert!(cold.finish(GROUP, &[member(1), member(2)]).is_err(), "nobody is left");
        assert!(cold.given(member(2), GroupId(9)).is_ok(), "another style");
    }

    #[test]
    fn the_next_program_is_started_once() {
        let mut cold = Cold::default();
        view(&mut cold, Style::SemiActive);
        assert!(cold.started(member(1), GROUP).is_err(), "it runs");
        cold.revived(member(1), GROUP);
        assert!(cold.given(member(1), GROUP).is_err(), "it was not started");
        assert!(cold.started(member(1), GROUP).is_ok());
        assert!(cold.given(member(1), GROUP).is_ok());
        assert!(cold.started(member(1), GROUP).is_err(), "twice");
    }

    #[test]
    fn in_other_styles_all_run() {
        let mut cold = Cold::default();
        view(&mut cold, Style::SemiActive);
        assert!(cold.finish(GROUP, &[member(1), member(2)]).is_ok());
        assert!(cold.started(member(2), GROUP).is_err(), "it runs");
        view(&mut cold, Style::ColdPassive);
        assert!(cold.finish(GROUP, &[member(1), member(2)]).is_err(), "the backup runs still");
        cold.stopped(member(2), GROUP);
        assert!(cold.finish(GROUP, &[member(1), member(2)]).is_ok());
        assert!(cold.started(member(2), GROUP).is_err(), "1 is primary");
        cold.stopped(member(2), GROUP);
        view(&mut cold, Style::Active);
        assert!(
            cold.finish(GROUP, &[member(1), member(2)]).is_err(),
            "the backup does not run yet"
        );
        assert!(cold.started(member(2), GROUP).is_ok());
        assert!(cold.finish(GROUP, &[member(1), member(2)]).is_ok());
    }
}
