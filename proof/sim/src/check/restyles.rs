//! A group's style changes only as it was proposed, everywhere in the same view, and the requester
//! gets the result.
//!
//! Source: docs/protocol/group.md, "Change of style": a proposal is of one view, and void in
//! another; nothing else changes a style; the requester is told within three seconds.

use super::hashed::HashMap;

use wire::ordered::Style;
use wire::{Duration, GroupId, Member, RingId, Time, ViewNumber};

use super::{Verdict, demand};

const PROPERTY: &str = "change of style";

/// The requester gets the result within three seconds by its own clock. It may have been stopped
/// meanwhile.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A change as a node tells it.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The style until here.
    pub from: Style,
    /// The style from here on.
    pub to: Style,
    /// The view that the proposal named.
    pub asked: ViewNumber,
}

/// The latest report of every node about every group's style.
#[derive(Clone, Default)]
pub struct Restyles {
    seen: HashMap<(RingId, GroupId, ViewNumber), (Style, Member)>,
    last: HashMap<(Member, GroupId), Known>,
    /// The style that each view had where it was installed last.
    had: HashMap<(Member, GroupId, ViewNumber), Style>,
    proposals: HashMap<(Member, GroupId), Time>,
}

#[derive(Clone)]
struct Known {
    component: RingId,
    view: ViewNumber,
    style: Style,
    /// The style that must come with the next view.
    next: Option<Style>,
}

impl Restyles {
    /// A node reports that a group's style has changed. It has reported nothing of a group that
    /// entered this component unchanged.
    pub fn restyled(
        &mut self,
        by: Member,
        component: RingId,
        group: GroupId,
        told: Told,
    ) -> Verdict {
        let known = self.last.get_mut(&(by, group));
        let Some(known) = known.filter(|known| known.component == component) else {
            return Ok(());
        };
        let (view, style) = (known.view, known.style);
        demand(told.asked == view, PROPERTY, || {
            format!("{by} obeys a change of {group} that was proposed in {}, in {view}", told.asked)
        })?;
        demand(told.from == style && told.to != style, PROPERTY, || {
            format!("{by} changes {group} from {} to {}, and it is {style}", told.from, told.to)
        })?;
        known.next = Some(told.to);
        Ok(())
    }

    /// A node installs a view of a group in this style.
    pub fn installed(
        &mut self,
        by: Member,
        component: RingId,
        (group, view): (GroupId, ViewNumber),
        style: Style,
    ) -> Verdict {
        let (first, who) = *self.seen.entry((component, group, view)).or_insert((style, by));
        demand(first == style, PROPERTY, || {
            format!("{view} of {group} in {component} is {style} at {by}, {first} at {who}")
        })?;
        self.had.insert((by, group, view), style);
        let known = Known { component, view, style, next: None };
        let Some(last) = self.last.insert((by, group), known) else { return Ok(()) };
        let right = last.next.unwrap_or(last.style);
        demand(last.component != component || style == right, PROPERTY, || {
            format!("{view} of {group} at {by} is {style} instead of {right}")
        })
    }

    /// A node is asked for a change.
    pub fn proposed(&mut self, now: Time, by: Member, group: GroupId) {
        self.proposals.insert((by, group), now);
    }

    /// The requester is told that the group has this style in this view, or that the change was
    /// impossible.
    pub fn ended(
        &mut self,
        now: Time,
        (by, component): (Member, RingId),
        (group, style): (GroupId, Style),
        done: Option<ViewNumber>,
    ) -> Verdict {
        let proposed = self.proposals.remove(&(by, group));
        let took = proposed.map(|proposed| now.since(proposed));
        demand(took.is_some_and(|took| took <= TIMEOUT), PROPERTY, || {
            format!("{by} ends a proposal for {group} after {took:?}")
        })?;
        let known = self.last.get(&(by, group)).filter(|known| known.component == component);
        let (Some(view), Some(known)) = (done, known) else { return Ok(()) };
        // It is told when disks know it, and another may have changed the style since.
        let then = self.had.get(&(by, group, view)).copied();
        let had = known.view > view && then == Some(style);
        demand(had || (known.view, known.style) == (view, style), PROPERTY, || {
            format!(
                "{by} says that {group} is {style} in {view}, and it is {} in {}",
                known.style, known.view
            )
        })
    }

    /// A node's life is over, and its proposals with it.
    pub fn died(&mut self, by: Member) {
        self.proposals.retain(|(member, _), _| *member != by);
    }

    /// At the end: nobody waits for longer than it may.
    pub fn finish(&self, now: Time) -> Verdict {
        let late = self.proposals.iter().find(|(_, proposed)| now.since(**proposed) > TIMEOUT);
        demand(late.is_none(), PROPERTY, || format!("nothing came of a proposal: {late:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    const GROUP: GroupId = GroupId(1);
    const RING: RingId = RingId { sequence: 4, representative: NodeId(1) };

    fn seen(restyles: &mut Restyles, by: u32, view: u64, style: Style) -> Verdict {
        restyles.installed(member(by), RING, (GROUP, ViewNumber(view)), style)
    }

    fn told(from: Style, to: Style, asked: u64) -> Told {
        Told { from, to, asked: ViewNumber(asked) }
    }

    #[test]
    fn a_change_that_was_not_wished_or_of_an_old_view_or_not_by_all_is_seen() {
        let (semi, active) = (Style::SemiActive, Style::Active);
        let mut restyles = Restyles::default();
        seen(&mut restyles, 1, 5, semi).unwrap();
        seen(&mut restyles, 2, 5, active).unwrap_err();
        seen(&mut restyles, 1, 6, active).unwrap_err();

        let mut restyles = Restyles::default();
        seen(&mut restyles, 1, 5, semi).unwrap();
        restyles.restyled(member(1), RING, GROUP, told(semi, active, 4)).unwrap_err();
        restyles.restyled(member(1), RING, GROUP, told(active, semi, 5)).unwrap_err();
        restyles.restyled(member(1), RING, GROUP, told(semi, active, 5)).unwrap();
        seen(&mut restyles, 1, 6, semi).unwrap_err();

        let mut restyles = Restyles::default();
        seen(&mut restyles, 1, 5, semi).unwrap();
        restyles.restyled(member(1), RING, GROUP, told(semi, active, 5)).unwrap();
        seen(&mut restyles, 1, 6, active).unwrap();
    }

    #[test]
    fn a_proposal_of_which_nothing_comes_is_seen() {
        let (proposal, start) = ((GROUP, Style::Active), Time::ZERO + Duration::from_secs(1));
        let late = start + Duration::from_secs(6);
        let mut restyles = Restyles::default();
        restyles.proposed(start, member(1), GROUP);
        restyles.finish(start + Duration::from_secs(3)).unwrap();
        restyles.finish(late).unwrap_err();
        restyles.ended(late, (member(1), RING), proposal, None).unwrap_err();
        restyles.proposed(start, member(1), GROUP);
        restyles.died(member(1));
        restyles.finish(late).unwrap();
        seen(&mut restyles, 1, 5, Style::SemiActive).unwrap();
        restyles.proposed(start, member(1), GROUP);
        restyles.ended(start, (member(1), RING), proposal, Some(ViewNumber(5))).unwrap_err();
    }
}
