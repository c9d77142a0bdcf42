//! From a ring's configuration to a component in which groups act: announcements, verdict,
//! installation (`docs/protocol/group.md`, first section).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;

use wire::kept::Recollection;
use wire::ordered::{Announce, Component, Install, MAX_ATTEMPTS, Place, Recall};
use wire::roster::RosterStep;
use wire::{Extension, GroupId, Member, NodeId, RingId, Time};

use crate::api::{Config, Quorum, RosterNews};
use crate::bug::{Bug, Planted};
use crate::component_order::ComponentOrder;
use crate::levels::Levels;
use crate::quorum::{Gathering, Verdict, verdict};
use crate::roll::Roll;

/// This node's progress with the configuration that the ring delivered last.
#[derive(Clone, Debug)]
enum Phase {
    /// Announcements are coming in.
    Announcing { members: Vec<Member>, announces: BTreeMap<Member, Announce> },
    /// It has no quorum.
    Minority,
    /// It has the quorum; the first of the authority orders the installation.
    Installing { members: Vec<Member>, epoch: u64, installer: Member, recalled: bool },
    /// Groups act.
    Active {
        /// Where the installation stands in the ring's order.
        installed: u64,
        /// Every member is known to hold the installation.
        effective: bool,
    },
    /// A message was lost with its holders: this configuration executes no more.
    Broken,
}

/// The use of a delivered message for the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// Part of the component's history: act on it.
    Act,
    /// Ordered before the installation: keep it until then.
    Wait,
    /// Part of no history.
    Ignore,
}

/// This node's part in the sequence of components.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    me: Member,
    rule: Quorum,
    roll: Roll,
    first_life: bool,
    address: Option<SocketAddr>,
    levels: Levels,
    planted: Planted,
    ring: RingId,
    last: Component,
    attempts: Vec<Component>,
    position: u64,
    phase: Phase,
    /// The announcements of the last complete round.
    announces: BTreeMap<Member, Announce>,
    /// The order of the components that they name.
    component_order: ComponentOrder,
    /// Some of them have a disk.
    disks: bool,
    /// No component was installed in this life: all knowledge of components comes from the disk.
    restarted: bool,
}

/// The announcements of a new component's members, and the member that installs it.
pub(crate) struct StateMerge<'a> {
    pub(crate) announces: &'a BTreeMap<Member, Announce>,
    pub(crate) installer: Member,
    /// No table need be complete: see [`Verdict::Quorate`].
    pub(crate) recalled: bool,
    pub(crate) gathering: Gathering<'a>,
}

impl Membership {
    pub(crate) fn new(config: &Config, planted: Planted) -> Membership {
        Membership {
            me: config.me,
            rule: config.quorum,
            roll: Roll::new(config.me.node, &config.nodes, config.roster.as_ref(), planted),
            first_life: config.first_life,
            address: config.address,
            levels: Levels::new(config.program.clone(), config.settle, planted),
            planted,
            ring: RingId::default(),
            last: Component::default(),
            attempts: Vec::new(),
            position: 0,
            // Nothing is known yet: callers are to wait, as during announcements.
            phase: Phase::Announcing { members: Vec::new(), announces: BTreeMap::new() },
            announces: BTreeMap::new(),
            component_order: ComponentOrder::new(),
            disks: false,
            restarted: true,
        }
    }

    /// Restores the disk's knowledge of earlier lives.
    pub(crate) fn recall(&mut self, recollection: &Recollection, reached: Place) {
        self.levels.recall(recollection.level);
        self.last = recollection.last.clone();
        self.attempts = recollection.attempts.clone();
        self.forget_the_retired();
        let newest = self.attempts.last().unwrap_or(&self.last);
        if (newest.epoch, newest.ring) == (reached.epoch, reached.ring) {
            self.position = reached.sequence;
        }
    }

    /// The rules in force, and all nodes' programs.
    pub(crate) fn levels(&self) -> &Levels {
        &self.levels
    }

    pub(crate) fn levels_mut(&mut self) -> &mut Levels {
        &mut self.levels
    }

    /// The nodes that count, in order of id.
    pub(crate) fn nodes(&self) -> &[NodeId] {
        self.roll.nodes()
    }

    /// Those, and how they change.
    pub(crate) fn roll(&self) -> &Roll {
        &self.roll
    }

    pub(crate) fn roll_mut(&mut self) -> &mut Roll {
        &mut self.roll
    }

    /// A step of a change of the nodes is delivered at this place.
    pub(crate) fn act_on_roster(
        &mut self,
        now: Time,
        sender: Member,
        step: RosterStep,
        place: Place,
        needed: impl FnOnce(NodeId) -> bool,
    ) -> Option<RosterNews> {
        let news = self.roll.act(sender, step, place, needed)?;
        self.levels.set_nodes(now, self.roll.nodes());
        if let RosterNews::Admitted(node) = news {
            self.seat(node);
        }
        self.forget_the_retired();
        Some(news)
    }

    /// A later roster than this node's has come meanwhile: it is this node's from now on. True if there
    /// was one.
    pub(crate) fn take_later_roster(&mut self, now: Time) -> bool {
        if !self.roll.take_later() {
            return false;
        }
        self.levels.set_nodes(now, self.roll.nodes());
        self.forget_the_retired();
        true
    }

    /// A node that came as a guest counts in the component that it is in.
    fn seat(&mut self, node: NodeId) {
        let member = self.announces.keys().find(|member| member.node == node).copied();
        let component = self.attempts.last_mut().unwrap_or(&mut self.last);
        if let Some(member) = member
            && let Err(at) = component.members.binary_search(&member)
        {
            component.members.insert(at, member);
        }
    }

    /// Nobody waits for what nodes know that have gone.
    fn forget_the_retired(&mut self) {
        let roster = self.roll.roster();
        for component in self.attempts.iter_mut().chain([&mut self.last]) {
            component.members.retain(|member| !roster.is_retired(member.node));
        }
    }

    /// The configuration's members, for decisions on groups.
    pub(crate) fn gathering(&self) -> Gathering<'_> {
        let whole = self.has_all_nodes() || self.planted.is(Bug::BeginWithoutAll);
        let level = self.levels.level();
        let (rule, component_order, planted) = (self.rule, &self.component_order, self.planted);
        Gathering { rule, whole, component_order, level, planted }
    }

    /// Some of the members have a disk.
    pub(crate) fn has_disks(&self) -> bool {
        self.disks
    }

    /// No component was installed in this life.
    pub(crate) fn is_restarted(&self) -> bool {
        self.restarted
    }

    /// The last component, while it is one.
    pub(crate) fn component(&self) -> Option<&Component> {
        self.is_active().then(|| self.attempts.last().unwrap_or(&self.last))
    }

    /// Where the installation of the active component stands in the order.
    pub(crate) fn installed_at(&self) -> u64 {
        match self.phase {
            Phase::Active { installed, .. } => installed,
            _ => 0,
        }
    }

    /// The members' announcements at the begin of the last configuration.
    pub(crate) fn announces(&self) -> &BTreeMap<Member, Announce> {
        &self.announces
    }

    /// The same, for a correction: a member has announced more since.
    pub(crate) fn announces_mut(&mut self) -> &mut BTreeMap<Member, Announce> {
        &mut self.announces
    }

    /// The ring of the last regular configuration.
    pub(crate) fn ring(&self) -> RingId {
        self.ring
    }

    /// Groups act here.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.phase, Phase::Active { .. })
    }

    /// The verdict was against this configuration.
    pub(crate) fn is_minority(&self) -> bool {
        matches!(self.phase, Phase::Minority)
    }

    /// Whether groups act in this configuration, once that is decided. The verdict alone is not
    /// enough: a caller that gets `true` sends a request, which must be possible then.
    pub(crate) fn quorate(&self) -> Option<bool> {
        match self.phase {
            Phase::Announcing { .. } | Phase::Installing { .. } => None,
            Phase::Minority | Phase::Broken => Some(false),
            Phase::Active { .. } => Some(true),
        }
    }

    /// The number of the newest component that this node was in.
    pub(crate) fn epoch(&self) -> u64 {
        self.attempts.last().unwrap_or(&self.last).epoch
    }

    /// All members hold the installation of the active component. Nothing may be acknowledged
    /// before.
    pub(crate) fn is_effective(&self) -> bool {
        matches!(self.phase, Phase::Active { effective: true, .. })
    }

    /// Where the installation of the active component stands in the ring's order.
    pub(crate) fn installed(&self) -> u64 {
        match self.phase {
            Phase::Active { installed, .. } => installed,
            _ => 0,
        }
    }

    /// The members of the component, once all have announced.
    pub(crate) fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.announces.keys().copied()
    }

    /// Every configured node is in the component, in whatever life.
    pub(crate) fn has_all_nodes(&self) -> bool {
        let here = |node: &NodeId| self.announces.keys().any(|member| member.node == *node);
        self.roll.nodes().iter().all(here)
    }

    /// The address for clients of a member.
    pub(crate) fn address(&self, node: NodeId) -> Option<SocketAddr> {
        let member = self.announces.iter().find(|(member, _)| member.node == node);
        member.and_then(|(_, announce)| announce.address)
    }

    /// The ring delivers a regular configuration. Returns this node's announcement in it.
    pub(crate) fn configuration(
        &mut self,
        ring: RingId,
        members: Vec<Member>,
        brought: (Vec<(GroupId, Place)>, Vec<GroupId>),
        recall: Option<Recall>,
    ) -> Announce {
        self.ring = ring;
        self.phase = Phase::Announcing { members, announces: BTreeMap::new() };
        self.announcement(brought, recall)
    }

    /// Each side of a partition goes on: histories fork.
    pub(crate) fn forks(&self) -> bool {
        self.rule == Quorum::Off
    }

    /// A component of this life, or of one that the disk recalls, was effective.
    pub(crate) fn was_effective(&self) -> bool {
        self.last.epoch > 0
    }

    /// The last place of the component that was installed in the present ring, if one was.
    pub(crate) fn end_of_component(&self) -> Option<Place> {
        let newest = self.attempts.last().unwrap_or(&self.last);
        let here = newest.epoch > 0 && newest.ring == self.ring;
        let place = || Place { epoch: newest.epoch, ring: newest.ring, sequence: self.position };
        here.then(place)
    }

    /// This node's announced replicas may still become the groups' state.
    pub(crate) fn counts_on_announces(&self) -> bool {
        matches!(self.phase, Phase::Announcing { .. } | Phase::Installing { .. })
            && self.ring != RingId::default()
    }

    /// This node's announcement in this configuration.
    pub(crate) fn announcement(
        &self,
        (replicas, ahead): (Vec<(GroupId, Place)>, Vec<GroupId>),
        recall: Option<Recall>,
    ) -> Announce {
        Announce {
            ring: self.ring,
            first_life: self.first_life,
            last: self.last.clone(),
            attempts: self.attempts.clone(),
            position: self.position,
            replicas,
            ahead,
            address: self.address,
            recall,
            program: self.levels.program().clone(),
            level: self.levels.level(),
            extension: Extension::default(),
            roster: self.roll.announced(),
        }
    }

    /// An announcement is delivered. The last one completes the verdict: whether there is a quorum,
    /// and whether this node orders the installation. A member's second one withdraws replicas that
    /// it has lost since.
    pub(crate) fn announce(&mut self, sender: Member, announce: Announce) -> Option<(bool, bool)> {
        if matches!(self.phase, Phase::Installing { .. })
            && announce.ring == self.ring
            && let Some(first) = self.announces.get_mut(&sender)
        {
            first.replicas = announce.replicas;
            first.ahead = announce.ahead;
            return None;
        }
        let Phase::Announcing { members, announces } = &mut self.phase else { return None };
        if announce.ring != self.ring || !members.contains(&sender) {
            return None;
        }
        announces.insert(sender, announce);
        if announces.len() < members.len() {
            return None;
        }
        let members = core::mem::take(members);
        self.announces = core::mem::take(announces);
        self.disks = self.announces.values().any(|announce| announce.recall.is_some());
        let rule = if self.planted.is(Bug::IgnoreQuorum) { Quorum::Off } else { self.rule };
        self.component_order = match rule {
            Quorum::Majority => ComponentOrder::of(&self.announces),
            // Histories fork: of two that do not know of each other, neither is void.
            Quorum::Off => ComponentOrder::new(),
        };
        let lists = self.roll.lists(&self.announces);
        match verdict(rule, &lists, &self.announces, &self.component_order) {
            Verdict::Minority => {
                self.phase = Phase::Minority;
                Some((false, false))
            }
            Verdict::Quorate { epoch, authority, recalled } => {
                let installer = authority[0];
                self.phase = Phase::Installing { members, epoch, installer, recalled };
                Some((true, installer == self.me))
            }
        }
    }

    /// The number of the component that is to be installed.
    pub(crate) fn next_epoch(&self) -> u64 {
        match self.phase {
            Phase::Installing { epoch, .. } => epoch,
            _ => self.epoch(),
        }
    }

    /// An installation is delivered at this place. The awaited one activates the component. Returns
    /// its members' announcements, and the rule by which it may act.
    pub(crate) fn install(
        &mut self,
        now: Time,
        sender: Member,
        install: &Install,
        sequence: u64,
    ) -> Option<StateMerge<'_>> {
        let Phase::Installing { members, epoch, installer, recalled } = &mut self.phase else {
            return None;
        };
        let ring = install.ring;
        if ring != self.ring || sender != *installer {
            return None;
        }
        let (mut members, epoch, recalled) = (core::mem::take(members), *epoch, *recalled);
        let roster = &install.roster;
        if roster.stamp != Place::default() {
            // A node that is to come counts in no component yet.
            members.retain(|member| roster.has(member.node));
        }
        if self.attempts.len() == MAX_ATTEMPTS {
            // An announcement carries no more. A full list already says enough: until all
            // configured nodes are here there is no quorum.
            self.attempts.remove(0);
        }
        self.attempts.push(Component { epoch, ring, members });
        self.position = sequence;
        self.phase = Phase::Active { installed: sequence, effective: false };
        self.restarted = false;
        let nodes: Vec<NodeId> = match roster.stamp {
            stamp if stamp == Place::default() => self.roll.nodes().to_vec(),
            _ => roster.nodes().collect(),
        };
        self.levels.install(now, &nodes, &self.announces, &install.programs);
        let (announces, gathering) = (&self.announces, self.gathering());
        Some(StateMerge { announces, installer: sender, recalled, gathering })
    }

    /// Every member holds the messages ordered up to `all`. True if that makes the component
    /// effective: from now on no other history can be chosen over this one.
    pub(crate) fn held(&mut self, ring: RingId, all: u64) -> bool {
        let Phase::Active { installed, effective } = &mut self.phase else { return false };
        if ring != self.ring || *effective || all < *installed {
            return false;
        }
        *effective = true;
        self.last = self.attempts.pop().expect("an active component was attempted");
        self.attempts.clear();
        true
    }

    /// A message before the present one was lost. No later message counts, not even an
    /// installation: the lost one may have been ordered before it and waited for it.
    pub(crate) fn gap(&mut self) {
        self.phase = Phase::Broken;
    }

    /// A message that is not an announcement or an installation is delivered at this place.
    pub(crate) fn disposition(&mut self, ring: RingId, sequence: u64) -> Disposition {
        if ring != self.ring {
            return Disposition::Ignore;
        }
        match self.phase {
            Phase::Active { .. } => {
                self.position = sequence;
                Disposition::Act
            }
            Phase::Announcing { .. } | Phase::Installing { .. } => Disposition::Wait,
            Phase::Minority | Phase::Broken => Disposition::Ignore,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use wire::Incarnation;
    use wire::ordered::Ordered;

    #[test]
    fn however_many_attempts_fail_the_next_announcement_can_be_read() {
        let me = Member { node: NodeId(1), incarnation: Incarnation(1) };
        let mut config = Config::new(me, vec![me.node], "trial".into());
        config.first_life = true;
        let mut membership = Membership::new(&config, Planted::default());
        for sequence in 1..=40 {
            let ring = RingId { sequence, representative: me.node };
            let announce = membership.configuration(ring, vec![me], Default::default(), None);
            let bytes = Ordered::Announce(alloc::boxed::Box::new(announce.clone())).encode();
            assert_eq!(
                Ordered::decode(&bytes),
                Ok(Ordered::Announce(alloc::boxed::Box::new(announce.clone())))
            );
            assert_eq!(membership.announce(me, announce), Some((true, true)));
            let (groups, programs, roster) = Default::default();
            let install = Install { ring, epoch: sequence, groups, keys: None, programs, roster };
            assert!(membership.install(Time(0), me, &install, 2).is_some());
        }
    }
}
