//! Groups whose histories may part, and those whose replicas execute alike.

use engine::Quorum;
use wire::GroupId;
use wire::ordered::Style;

use super::Options;

impl Options {
    /// Groups whose histories part where the network does.
    pub fn forking(&self) -> Vec<GroupId> {
        let forks = self.quorum == Quorum::Off;
        self.groups.iter().filter(|_| forks).map(|group| GroupId::of(&group.name)).collect()
    }

    /// Those of them whose services merge what was given up.
    pub fn merging(&self) -> Vec<GroupId> {
        let merges = self.nodes % 2 == 1 && self.disks.is_none();
        let mut groups = self.forking();
        groups.retain(|group| merges && !self.stateless().contains(group));
        groups
    }

    /// The others.
    pub fn discarding(&self) -> Vec<GroupId> {
        let merging = self.merging();
        self.forking().into_iter().filter(|group| !merging.contains(group)).collect()
    }

    /// Groups whose replicas execute each call once: from no log, and in no other history.
    pub fn viewing(&self) -> Vec<GroupId> {
        let once = self.disks.is_none() && self.poison.is_none() && self.forking().is_empty();
        let alike = [Style::SemiActive, Style::Active, Style::Voting];
        let groups = self.groups.iter().filter(|group| {
            once && group.styles.is_empty() && alike.contains(&group.options.style)
        });
        groups.map(|group| GroupId::of(&group.name)).collect()
    }
}
