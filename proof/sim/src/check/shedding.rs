//! A host refuses calls only while it has too much to do and no move helps, the least critical
//! first, and never for longer than it was told.
//!
//! Source: docs/protocol/manager.md, "Shedding".

use manager::{Picture, Proposal};
use wire::ordered::Shedding;
use wire::{Duration, Member, NodeId, Share, Time};

use super::hashed::HashMap;
use super::{Verdict, demand};

const PROPERTY: &str = "shedding";

/// Clients of a cluster are as critical as one of these; the last is never refused.
pub const CLASSES: [u8; 2] = [0, 200];

/// A host that uses less than this has room, whatever the noise.
pub const ROOMY: Share = Share::percent(60);

/// From a proposal to where it is obeyed, while rings come and go: it waits for one that orders it.
const WAY: Duration = Duration::from_secs(10);

/// The managers' proposals about overloaded hosts.
#[derive(Clone, Default)]
pub struct Sheds {
    /// Until when a host may refuse something, by the last proposal.
    until: HashMap<NodeId, Time>,
}

impl Sheds {
    /// At one look a manager proposes this. `above`: a host that uses less than this is within any
    /// bound.
    pub fn proposed(
        &mut self,
        now: (Time, Time),
        above: Share,
        picture: &Picture,
        proposals: &[Proposal],
    ) -> Verdict {
        let (at, local) = now;
        for proposal in proposals {
            let Proposal::Shed(shedding) = proposal else { continue };
            let Shedding { node, level, .. } = shedding;
            if *level > 0 {
                let until = at + shedding.term() + WAY;
                let known = self.until.entry(*node).or_insert(until);
                *known = until.max(*known);
            }
            if *level <= picture.level(local, *node) {
                continue;
            }
            let used = picture.usage(*node).map_or(Share::ZERO, |usage| usage.used);
            demand(used >= above, PROPERTY, || {
                format!("{node} is to refuse calls below {level}, and uses {used}: {picture:?}")
            })?;
            let moves = |proposal: &Proposal| matches!(proposal, Proposal::Move { from, .. } if from == node);
            demand(!proposals.iter().any(moves), PROPERTY, || {
                format!(
                    "{node} is to refuse calls below {level}, and a primary leaves it: {proposals:?}"
                )
            })?;
        }
        Ok(())
    }

    /// A node refuses a call of this priority.
    pub fn refused(&self, now: Time, by: Member, priority: u8) -> Verdict {
        demand(priority != CLASSES[CLASSES.len() - 1], PROPERTY, || {
            format!(
                "{by} refuses a call of priority {priority}, and nobody calls who is more critical"
            )
        })?;
        let until = self.until.get(&by.node).copied();
        demand(until.is_some_and(|until| now < until), PROPERTY, || {
            format!("{by} refuses calls at {now}, and may until {until:?}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ordered::Usage;
    use wire::{GroupId, Incarnation};

    fn picture(used: u64, level: u8) -> Picture {
        let usage = Usage { used: Share::percent(used), capacity: Share::ONE, ..Usage::default() };
        let sheds = [(NodeId(1), (level, Time(100)))].into_iter().collect();
        Picture { nodes: vec![(NodeId(1), Some(usage))], sheds, ..Picture::default() }
    }

    fn order(level: u8) -> Proposal {
        Proposal::Shed(Shedding { node: NodeId(1), level, term_ms: 1_000, room: Vec::new() })
    }

    #[test]
    fn who_refuses_with_room_or_though_a_primary_leaves_is_seen() {
        let say = |used, level, proposals: &[Proposal]| {
            let now = (Time(50), Time(50));
            Sheds::default().proposed(now, Share::percent(69), &picture(used, level), proposals)
        };
        say(80, 0, &[order(9)]).unwrap();
        say(50, 0, &[order(9)]).unwrap_err();
        say(50, 9, &[order(9)]).unwrap();
        say(50, 9, &[order(0)]).unwrap();
        let leaves = Proposal::Move { group: GroupId(1), from: NodeId(1), to: NodeId(2) };
        say(80, 0, &[leaves, order(9)]).unwrap_err();
    }

    #[test]
    fn refusals_without_an_order_and_of_the_most_critical_are_seen() {
        let by = Member { node: NodeId(1), incarnation: Incarnation(1) };
        let mut sheds = Sheds::default();
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        sheds.refused(at(1), by, 0).unwrap_err();
        let proposals = [order(9)];
        sheds.proposed((at(1), at(1)), Share::percent(69), &picture(90, 0), &proposals).unwrap();
        sheds.refused(at(2), by, 0).unwrap();
        sheds.refused(at(2), by, CLASSES[1]).unwrap_err();
        sheds.refused(at(20), by, 0).unwrap_err();
        let other = Member { node: NodeId(2), ..by };
        sheds.refused(at(2), other, 0).unwrap_err();
    }
}
