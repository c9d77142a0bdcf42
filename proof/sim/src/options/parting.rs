//! Groups whose histories may part, and those whose replicas execute alike.

use engine::Quorum;
use wire::ordered::Style;
use wire::{Duration, GroupId};

use super::{Options, World};
use crate::draw::Draw;
use crate::faults::FaultKind;

impl Options {
    /// Histories part, and no replica is lost: each answered call is in their union.
    pub(super) fn with_merges(mut self, seed: u64) -> Options {
        let mut draw = Draw::new(seed ^ 0x3e46);
        let alone = self.disks.is_none()
            && self.poison.is_none()
            && self.programs.is_none()
            && self.deploy.is_none()
            && self.hangs.is_none();
        if !draw.one_in(16) || !alone || self.world != World::Cluster || self.nodes < 2 {
            return self;
        }
        let lasting = [
            FaultKind::Partition,
            FaultKind::Pause,
            FaultKind::Deaf,
            FaultKind::OneWay,
            FaultKind::Storm,
            FaultKind::Reset,
            FaultKind::Slow,
            FaultKind::Flap,
            FaultKind::Lag,
        ];
        self.faults.kinds.retain(|(kind, _)| lasting.contains(kind));
        self.faults.kinds.push((FaultKind::Partition, 10));
        // Long enough for either side to go on, and to meet the other again.
        let [every, longest, phase] = [400, 1_500, 3_000].map(Duration::from_millis);
        (self.faults.every, self.faults.longest, self.faults.phase) = (every, longest, phase);
        Options { merges: true, quorum: Quorum::Off, ..self }
    }

    /// Groups whose histories part where the network does.
    pub fn forking(&self) -> Vec<GroupId> {
        let forks = self.quorum == Quorum::Off;
        self.groups.iter().filter(|_| forks).map(|group| GroupId::of(&group.name)).collect()
    }

    /// Those of them whose services merge what was given up.
    pub fn merging(&self) -> Vec<GroupId> {
        let stateless = self.stateless();
        let merging = self.forking().into_iter().filter(|group| !stateless.contains(group));
        merging.filter(|_| self.merges).collect()
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
