//! Moves that are proposed, ordered and carried out.

use alloc::vec::Vec;

use wire::ordered::{Move, Ordered};
use wire::{GroupId, Member, NodeId, Time, ViewNumber};

use super::{HAND_OVER_TIMEOUT, Motive, Moving, Outlook};
use crate::api::{Event, MoveError, Output};
use crate::bug::Bug;
use crate::directory::{Change, State};
use crate::groups::{GroupHandler, Groups};
use crate::ordering::Ordering;
use crate::replicas::passive::Yield;
use crate::style::StyleRules;

impl Groups {
    /// Whether this node's replica waits for another to take over before it leaves.
    pub(crate) fn is_handing_over(&self, id: GroupId) -> bool {
        self.moves.contains_key(&(id, Motive::Going))
    }

    /// Returns when the next proposal is given up.
    pub(crate) fn next_move_timeout(&self) -> Option<Time> {
        self.moves.values().map(|moving| moving.until).min()
    }
}

impl<O: Ordering> GroupHandler<'_, O> {
    fn outlook(&self, id: GroupId, to: NodeId) -> Outlook {
        if self.base.membership.is_minority() {
            return Outlook::Refused(MoveError::NoQuorum);
        }
        if !self.base.membership.is_active() {
            return Outlook::Wait;
        }
        let Some(group) = self.base.directory.get(id) else {
            return Outlook::Refused(MoveError::NoSuchGroup);
        };
        let Some(primary) = group.primary() else {
            return Outlook::Refused(MoveError::NoPrimary);
        };
        if primary.node == to {
            return Outlook::Done(group.view);
        }
        match group.replicas.iter().find(|replica| replica.member.node == to) {
            None => Outlook::Refused(MoveError::NotAReplica(to)),
            Some(replica) => match replica.state {
                State::Unsynced { .. } if !self.base.planted.is(Bug::MoveToUnsynced) => {
                    Outlook::Refused(MoveError::NotSynced(to))
                }
                _ => Outlook::Ready(replica.member, group.view),
            },
        }
    }

    /// Hands over before this node's replica leaves: if it is the primary, the next replica with
    /// the state takes over.
    pub(crate) fn hand_over(&mut self, now: Time, id: GroupId) {
        let Some(group) =
            self.base.directory.get(id).filter(|group| group.primary() == Some(self.base.me))
        else {
            return;
        };
        if let Some(next) = group.synced().nth(1) {
            let until = now + HAND_OVER_TIMEOUT;
            let moving = Moving { to: next.node, until, asked: None };
            self.groups.moves.insert((id, Motive::Going), moving);
        }
    }

    /// Orders the proposals that can be ordered, and ends those that are over. True if there was
    /// anything to do.
    pub(crate) fn pump_moves(&mut self, now: Time) -> bool {
        if self.groups.moves.is_empty() {
            return false;
        }
        let proposals: Vec<(GroupId, Motive)> = self.groups.moves.keys().copied().collect();
        let mut any = false;
        for (id, motive) in proposals {
            let moving = &self.groups.moves[&(id, motive)];
            let (to, late) = (moving.to, now >= moving.until);
            let ended = match self.outlook(id, to) {
                Outlook::Done(view) => Some(Ok(view)),
                Outlook::Refused(error) => Some(Err(error)),
                Outlook::Ready(..) | Outlook::Wait if late => Some(Err(MoveError::Late(to))),
                Outlook::Wait => None,
                Outlook::Ready(to, view) => {
                    any |= self.propose(now, (id, motive), to, view);
                    None
                }
            };
            if let Some(outcome) = ended {
                any = true;
                self.groups.moves.remove(&(id, motive));
                if motive == Motive::Asked {
                    self.base.outputs.push(Output::Moved { group: id, to, outcome });
                }
            }
        }
        any
    }

    /// Orders a proposal, once on each ring and for each view.
    pub(crate) fn propose(
        &mut self,
        now: Time,
        key: (GroupId, Motive),
        to: Member,
        view: ViewNumber,
    ) -> bool {
        let here = Some((self.base.membership.ring(), view));
        let moving = self.groups.moves.get_mut(&key).expect("it is looked at");
        if moving.asked == here {
            return false;
        }
        moving.asked = here;
        let proposal = Move { group: key.0, to, view };
        if !self.replicas().yield_to(Yield::Move(proposal)) {
            self.base.order(now, Ordered::Move(proposal));
        }
        true
    }

    /// A move at its place in the order.
    pub(crate) fn act_on_move(&mut self, now: Time, sender: Member, proposal: Move) {
        let Some(group) = self.base.directory.get(proposal.group) else { return };
        let Some(from) = group.primary() else { return };
        // A passive group's primary alone knows when it has ordered all that it has taken.
        let speaker = if group.options.style.keeps_its_primary() { from } else { proposal.to };
        if sender != speaker {
            let takes_over = speaker == proposal.to && proposal.to == self.base.me;
            if takes_over && self.replicas.can_take_over(self.base, &proposal) {
                self.base.order(now, Ordered::Move(proposal));
            } else {
                self.replicas().yield_to(Yield::Move(proposal));
            }
            return;
        }
        if self.base.planted.is(Bug::OldPrimaryStays) && from == self.base.me {
            return;
        }
        let change = self.base.directory.promote(
            proposal.to,
            proposal.group,
            proposal.view,
            self.base.planted,
        );
        if change != Change::View {
            return;
        }
        if self.base.planted.is(Bug::DropMovedCalls) && from == self.base.me {
            for call in self.replies.clients.callers.of_group(proposal.group) {
                self.replies.clients.callers.remove(&call);
            }
        }
        let Move { group, to, view: asked } = proposal;
        let known = self.base.directory.get(group).expect("its primary has just moved");
        let (name, view) = (known.name.clone(), known.view);
        let (ring, sequence) = (self.base.membership.ring(), self.base.progress.delivered());
        self.base.event(Event::Moved { group, name, ring, sequence, from, to, asked, view });
        self.changed(now, proposal.group, change);
    }
}
