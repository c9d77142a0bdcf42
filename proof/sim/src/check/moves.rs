//! A primary moves only as proposed, to a replica with the state, and nothing else changes the
//! rank.
//!
//! Source: docs/protocol/group.md, "Hand-over", and manager.md, "Ranks": a move is of one view, and
//! void in another; the new primary has the state; the others keep their order; an order of the
//! backups leaves the primary where it is; a node that is told of a move has seen it; clients
//! neither lose a call nor wait for a time-out.

use super::hashed::HashMap;

use wire::ordered::Style;
use wire::{GroupId, Member, NodeId, RingId, ViewNumber};

use super::views::Replicas;
use super::{Verdict, demand};

const PROPERTY: &str = "hand-over";

/// A move as a node tells it.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The former primary.
    pub from: Member,
    /// The new primary.
    pub to: Member,
    /// The view that the proposal named.
    pub asked: ViewNumber,
}

/// The latest report of every node about every group.
#[derive(Clone, Default)]
pub struct Moves {
    last: HashMap<(Member, GroupId), Known>,
}

#[derive(Clone)]
struct Known {
    component: RingId,
    view: ViewNumber,
    style: Style,
    replicas: Replicas,
    /// The rank that must come with the next view.
    next: Option<Vec<Member>>,
}

fn members(replicas: &Replicas) -> Vec<Member> {
    replicas.iter().map(|(member, _)| *member).collect()
}

fn primary(replicas: &Replicas) -> Option<Member> {
    replicas.iter().find(|(_, synced)| *synced).map(|(member, _)| *member)
}

/// In these styles a replica that gets the state ranks behind those that had it.
fn is_passive(style: Style) -> bool {
    matches!(style, Style::WarmPassive | Style::ColdPassive)
}

impl Moves {
    /// A node reports that a primary has moved. It has reported nothing of a group that entered
    /// this component unchanged.
    pub fn moved(&mut self, by: Member, component: RingId, group: GroupId, told: Told) -> Verdict {
        let Told { from, to, asked } = told;
        let known = self.last.get_mut(&(by, group));
        let Some(known) = known.filter(|known| known.component == component) else {
            return Ok(());
        };
        let Known { view, replicas, next, .. } = known;
        demand(asked == *view, PROPERTY, || {
            format!("{by} obeys a move of {group} that was proposed in {asked}, in {view}")
        })?;
        let fit = replicas.contains(&(to, true)) && primary(replicas) == Some(from) && from != to;
        demand(fit, PROPERTY, || {
            format!("{by} moves {group} from {from} to {to}, and its {view} is {replicas:?}")
        })?;
        let others = members(replicas).into_iter().filter(|member| *member != to);
        *next = Some(std::iter::once(to).chain(others).collect());
        Ok(())
    }

    /// A node says that a group's backups are ranked: those that have the state, and nobody else,
    /// change places.
    pub fn ranked(
        &mut self,
        by: Member,
        component: RingId,
        group: GroupId,
        (asked, order): (ViewNumber, &[Member]),
    ) -> Verdict {
        let known = self.last.get_mut(&(by, group));
        let Some(known) = known.filter(|known| known.component == component) else {
            return Ok(());
        };
        let Known { view, replicas, next, .. } = known;
        demand(asked == *view, PROPERTY, || {
            format!(
                "{by} obeys an order of the backups of {group} that was proposed in {asked}, in {view}"
            )
        })?;
        let first = primary(replicas);
        let is_backup = |replica: &(Member, bool)| replica.1 && Some(replica.0) != first;
        let mut backups: Vec<Member> =
            replicas.iter().filter(|it| is_backup(it)).map(|it| it.0).collect();
        let mut left = order.iter();
        let ranked: Vec<Member> = replicas
            .iter()
            .filter_map(|it| if is_backup(it) { left.next().copied() } else { Some(it.0) })
            .collect();
        let before = members(replicas);
        let mut told = order.to_vec();
        backups.sort_unstable();
        told.sort_unstable();
        demand(told == backups && ranked != before, PROPERTY, || {
            format!("{by} ranks the backups of {group} {order:?}, and its {view} is {replicas:?}")
        })?;
        *next = Some(ranked);
        Ok(())
    }

    /// A node installs a view.
    pub fn installed(
        &mut self,
        by: Member,
        component: RingId,
        (group, view): (GroupId, ViewNumber),
        (style, replicas): (Style, &Replicas),
    ) -> Verdict {
        let known = Known { component, view, style, replicas: replicas.clone(), next: None };
        let Some(last) = self.last.insert((by, group), known) else { return Ok(()) };
        let (rank, before) = (members(replicas), members(&last.replicas));
        if let Some(next) = last.next {
            return demand(rank == next, PROPERTY, || {
                format!("{by} moved {group} to be {next:?}, and its {view} is {rank:?}")
            });
        }
        let mut stayed: Vec<Member> = before.iter().filter(|m| rank.contains(m)).copied().collect();
        if is_passive(last.style) || is_passive(style) {
            let has_state = |replicas: &Replicas, member| replicas.contains(&(member, true));
            // Stable: those that had the state, that got it, that wait for it, each in their former
            // order.
            stayed.sort_by_key(|&m| (!has_state(&last.replicas, m), !has_state(replicas, m)));
        }
        let kept: Vec<Member> = rank.iter().filter(|m| before.contains(m)).copied().collect();
        demand(last.component != component || stayed == kept, PROPERTY, || {
            format!(
                "{view} of {group} at {by} has another rank than the one before, and nothing moved: {before:?}, {rank:?}"
            )
        })
    }

    /// The requester of a move is told that node `to` has the primary in this view.
    pub fn ended(
        &self,
        by: Member,
        component: RingId,
        (group, view): (GroupId, ViewNumber),
        to: NodeId,
    ) -> Verdict {
        let known = self.last.get(&(by, group)).filter(|known| known.component == component);
        let so = known.is_none_or(|known| {
            known.view == view && primary(&known.replicas).is_some_and(|m| m.node == to)
        });
        demand(so, PROPERTY, || {
            format!("{by} says that {group} is at node {to} in {view}, where it is not")
        })
    }
}

/// Clients notice a move although nothing else happens.
pub fn noticed(what: &str) -> Verdict {
    demand(false, PROPERTY, || format!("nothing happens but moves, and a client notices: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Incarnation;

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    const GROUP: GroupId = GroupId(1);

    fn seen(ranks: &[(u32, bool)], view: u64, moves: &mut Moves) -> Verdict {
        let replicas = ranks.iter().map(|(node, synced)| (member(*node), *synced)).collect();
        let component = RingId::default();
        moves.installed(
            member(9),
            component,
            (GROUP, ViewNumber(view)),
            (Style::SemiActive, &replicas),
        )
    }

    fn told(from: u32, to: u32, asked: u64) -> Told {
        Told { from: member(from), to: member(to), asked: ViewNumber(asked) }
    }

    #[test]
    fn a_move_of_an_old_view_to_a_replica_without_state_or_without_effect_is_seen() {
        let three = [(1, true), (2, true), (3, false)];
        let mut moves = Moves::default();
        seen(&three, 5, &mut moves).unwrap();
        moves.moved(member(9), RingId::default(), GROUP, told(1, 2, 4)).unwrap_err();
        moves.moved(member(9), RingId::default(), GROUP, told(1, 3, 5)).unwrap_err();
        moves.moved(member(9), RingId::default(), GROUP, told(2, 1, 5)).unwrap_err();
        moves.moved(member(9), RingId::default(), GROUP, told(1, 2, 5)).unwrap();
        seen(&three, 6, &mut moves).unwrap_err();

        let mut moves = Moves::default();
        seen(&three, 5, &mut moves).unwrap();
        moves.moved(member(9), RingId::default(), GROUP, told(1, 2, 5)).unwrap();
        seen(&[(2, true), (1, true), (3, false)], 6, &mut moves).unwrap();
        moves.ended(member(9), RingId::default(), (GROUP, ViewNumber(6)), NodeId(2)).unwrap();
        moves.ended(member(9), RingId::default(), (GROUP, ViewNumber(6)), NodeId(1)).unwrap_err();
        seen(&[(1, true), (2, true), (3, false)], 7, &mut moves).unwrap_err();
        noticed("a time-out").unwrap_err();
    }

    #[test]
    fn an_order_of_an_old_view_or_of_others_than_the_backups_is_seen() {
        let five = [(4, false), (1, true), (2, true), (5, false), (3, true)];
        let members = |nodes: &[u32]| nodes.iter().copied().map(member).collect::<Vec<_>>();
        let ranked = |moves: &mut Moves, asked, order: &[u32]| {
            let asked = ViewNumber(asked);
            moves.ranked(member(9), RingId::default(), GROUP, (asked, &members(order)))
        };
        let mut moves = Moves::default();
        seen(&five, 5, &mut moves).unwrap();
        ranked(&mut moves, 4, &[3, 2]).unwrap_err();
        ranked(&mut moves, 5, &[2, 3]).unwrap_err();
        ranked(&mut moves, 5, &[3, 1]).unwrap_err();
        ranked(&mut moves, 5, &[3, 2, 5]).unwrap_err();
        ranked(&mut moves, 5, &[3, 2]).unwrap();
        seen(&[(4, false), (1, true), (3, true), (5, false), (2, true)], 6, &mut moves).unwrap();
        ranked(&mut moves, 6, &[2, 3]).unwrap();
        seen(&[(1, true), (4, false), (2, true), (5, false), (3, true)], 7, &mut moves)
            .unwrap_err();
    }
}
