//! Backups are ranked by what their hosts have to do, and no oftener than that changes.
//!
//! Source: docs/protocol/manager.md; `flare.txt`, section 3.2, Algorithm 1: the first target is the
//! one whose processor is least used. The twin here is as dumb as can be: it looks at clusters of
//! one group alone, and at nothing but the last reports.

use manager::{Picture, Proposal};
use wire::{Duration, GroupId, Member, NodeId, Share, Time};

use super::hashed::HashMap;
use super::{Verdict, demand};

const PROPERTY: &str = "ranks by load";

/// While all is steady, so many orders of one group's backups may still come: one that was on its
/// way.
const STEADY: u32 = 1;

/// Differences that the manager may ignore: its damping of lists, of the hosts' other load (twice,
/// for there are two hosts), and of the primaries' use.
const TOLERANCE: Share = Share::percent(5 + 2 * 5 + 2);

/// The managers' proposals and their effects.
#[derive(Clone, Default)]
pub struct Ranks {
    /// When a primary was to leave this host, or to come there, by the proposal of this member.
    touched: HashMap<(Member, NodeId), Time>,
    /// Orders that this node has obeyed since all is steady.
    steady: HashMap<(Member, GroupId), u32>,
}

impl Ranks {
    /// At one look a manager proposes this. It leaves a host alone for so long after it has moved a
    /// primary there or away.
    pub fn proposed(
        &mut self,
        now: Time,
        by: Member,
        settle: Duration,
        proposals: &[Proposal],
    ) -> Verdict {
        let moves = proposals.iter().filter_map(|proposal| match proposal {
            Proposal::Move { from, to, .. } => Some([*from, *to]),
            Proposal::Rank { .. } | Proposal::Shed(_) => None,
        });
        let hosts: Vec<NodeId> = moves.flatten().collect();
        for host in &hosts {
            let touched = self.touched.get(&(by, *host)).copied();
            demand(touched.is_none_or(|at| now >= at + settle), PROPERTY, || {
                format!(
                    "{by} relieves {host} at {now}, and did so at {touched:?}: what it was told since is of before"
                )
            })?;
        }
        self.touched.extend(hosts.into_iter().map(|host| ((by, host), now)));
        Ok(())
    }

    /// From here on nothing changes but by noise.
    pub fn steady(&mut self) {
        self.steady.clear();
    }

    /// A node obeys an order while all is steady.
    pub fn ranked(&mut self, by: Member, group: GroupId) -> Verdict {
        let times = self.steady.entry((by, group)).or_default();
        *times += 1;
        demand(*times <= STEADY, PROPERTY, || {
            format!(
                "the backups of {group} are ranked again and again, and nothing happens but noise: {times} times at {by}"
            )
        })
    }
}

/// At the end, of a cluster of one group: no backup's host is expected to be used much less than
/// that of the first.
pub fn twin(picture: &Picture) -> Verdict {
    let [shape] = &picture.groups[..] else { return Ok(()) };
    let (Some(first), Some(at_primary)) = (shape.backups.first(), picture.usage(shape.primary))
    else {
        return Ok(());
    };
    let least = shape.backups.iter().filter_map(|node| Some(picture.usage(*node)?.of(shape.id)));
    let moved = at_primary.of(shape.id).saturating_sub(least.min().unwrap_or_default());
    let expected = |node: &NodeId| {
        let usage = picture.usage(*node)?;
        Some(Share((usage.used + moved).0 * Share::ONE.0 / usage.capacity.0))
    };
    // Where one would have too much to do, that decides, and takes more than this to be shown.
    let room = |share: Share| share < Share::percent(60);
    let all: Vec<Share> = shape.backups.iter().filter_map(expected).collect();
    if !all.iter().all(|share| room(*share)) {
        return Ok(());
    }
    let best = all.into_iter().min().unwrap_or_default();
    let first = expected(first).unwrap_or_default();
    demand(first <= best + TOLERANCE, PROPERTY, || {
        format!(
            "the first backup's host would be used by {first:?}, another's by {best:?}: {picture:?}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use manager::Shape;
    use wire::ordered::Usage;
    use wire::{Incarnation, ViewNumber};

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    #[test]
    fn a_host_that_is_relieved_again_before_it_has_told_is_seen() {
        let mut ranks = Ranks::default();
        let step =
            |from, to| Proposal::Move { group: GroupId(1), from: NodeId(from), to: NodeId(to) };
        let settle = Duration::from_millis(100);
        let mut at = |ms, by, proposals: &[Proposal]| {
            ranks.proposed(Time::ZERO + Duration::from_millis(ms), member(by), settle, proposals)
        };
        at(0, 1, &[step(1, 2), step(1, 3)]).unwrap();
        at(50, 1, &[step(4, 5)]).unwrap();
        at(60, 2, &[step(1, 2)]).unwrap();
        at(99, 1, &[step(2, 4)]).unwrap_err();
        at(99, 1, &[step(6, 3)]).unwrap_err();
        at(100, 1, &[step(1, 2)]).unwrap();
    }

    #[test]
    fn orders_that_follow_noise_are_seen() {
        let mut ranks = Ranks::default();
        ranks.ranked(member(1), GroupId(1)).unwrap();
        ranks.ranked(member(1), GroupId(2)).unwrap();
        ranks.ranked(member(2), GroupId(1)).unwrap();
        ranks.ranked(member(1), GroupId(1)).unwrap_err();
        ranks.steady();
        ranks.ranked(member(1), GroupId(1)).unwrap();
    }

    #[test]
    fn a_first_target_that_is_used_much_more_than_another_is_seen() {
        let picture = |used: [u64; 3]| {
            let usage = |used| {
                let used = Share::percent(used);
                Usage { used, capacity: Share::ONE, ..Usage::default() }
            };
            let nodes = (1..).zip(used).map(|(node, used)| (NodeId(node), Some(usage(used))));
            let backups = vec![NodeId(2), NodeId(3)];
            let view = ViewNumber(1);
            let shape = Shape { id: GroupId(1), view, primary: NodeId(1), backups };
            Picture { nodes: nodes.collect(), groups: vec![shape], ..Picture::default() }
        };
        twin(&picture([10, 30, 20])).unwrap();
        twin(&picture([10, 50, 20])).unwrap_err();
        twin(&picture([10, 70, 20])).unwrap();
    }
}
