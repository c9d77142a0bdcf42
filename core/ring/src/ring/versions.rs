//! Versions: that of a ring, and the nodes that cannot be in it
//! (`docs/protocol/versions.md`).

use alloc::vec::Vec;

use wire::versions::Unfit;
use wire::{Member, Speaks, Time};

use super::{Ring, State};
use crate::Event;
use crate::config::Config;
use crate::gather::Sets;
use crate::neighbours::Neighbours;

/// The greatest version that all of these speak, as far as they have said; and those of them that
/// have none in common with the ones before them, this node first.
pub(super) fn common(
    config: &Config,
    neighbours: &Neighbours,
    members: impl Iterator<Item = Member>,
) -> (u8, Vec<Member>) {
    let (mut all, mut unfit) = (config.speaks, Vec::new());
    for member in members.filter(|member| *member != config.me) {
        let Some(speaks) = neighbours.speaks(member) else { continue };
        match all.common(speaks) {
            Ok(both) => all = both,
            Err(_) => unfit.push(member),
        }
    }
    (all.ring.greatest, unfit)
}

impl Ring {
    /// The rules in force have changed, or are known from now on. Members that do not know them are
    /// out: they came in before this node knew. Lower ones than it knows change nothing.
    pub fn set_level(&mut self, now: Time, level: u8) {
        if level <= self.config.speaks.level {
            return;
        }
        self.config.speaks.level = level;
        let sets = match &self.state {
            State::Gather(gather) => &gather.sets,
            State::Commit(forming) => &forming.sets,
            State::Recovery(recovery) => &recovery.sets,
            State::Operational(_) => &Sets::of(&self.order.members),
            State::Left => return,
        };
        let ours = self.config.speaks;
        let unfit = |member: &Member| {
            self.neighbours.speaks(*member).is_some_and(|theirs| ours.common(theirs).is_err())
        };
        let unfit: Vec<Member> = sets.live().filter(unfit).collect();
        if !unfit.is_empty() {
            let sets = sets.clone();
            self.failed(now, sets, &unfit);
        }
    }

    /// The versions that this node speaks, and the rules in force.
    pub fn speaks(&self) -> Speaks {
        self.config.speaks
    }

    /// The version of the ring that was formed last.
    pub fn version(&self) -> u8 {
        self.out.version
    }

    /// The nodes that were heard and cannot be in one ring with this one, and why.
    pub fn unfit(&self) -> impl Iterator<Item = (Member, Speaks, Unfit)> + '_ {
        self.neighbours.unfit()
    }

    /// Whether a node that speaks this can be in one ring with this node, and with those that this
    /// node is in one with. Who cannot is told by an event, and not heard: those who understand
    /// each other go on as if it were not there.
    pub(super) fn understands(&mut self, now: Time, sender: Member, speaks: Speaks) -> bool {
        if self.config.speaks.common(speaks).is_ok() {
            // Rules that are in force, and that this node knows, may be news. A node that does not
            // know them must not keep this one from those who have them.
            self.set_level(now, speaks.level);
        }
        let ours = self.config.speaks;
        let with_others = || {
            let members: Vec<Member> = match &self.state {
                State::Gather(gather) => gather.sets.live().collect(),
                State::Commit(forming) => forming.members.clone(),
                State::Recovery(recovery) => recovery.new.members.clone(),
                State::Operational(_) | State::Left => self.order.members.clone(),
            };
            let others = members.into_iter().filter(|member| member.node != sender.node);
            let mut all = ours;
            for other in others {
                let Some(theirs) = self.neighbours.speaks(other) else { continue };
                let Ok(both) = all.common(theirs) else { continue };
                if both.common(speaks).is_err() {
                    return Some(Unfit::With(other.node));
                }
                all = both;
            }
            None
        };
        let unfit = ours.common(speaks).err().or_else(with_others);
        let news = self.neighbours.spoke(sender, speaks, unfit);
        if let Some(why) = unfit.filter(|_| news) {
            self.out.event(Event::Unfit { member: sender, speaks, ours, why });
        }
        unfit.is_none()
    }
}
