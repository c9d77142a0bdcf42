//! Moves that are wished, ordered and made.

use alloc::vec::Vec;

use wire::ordered::{Move, Ordered};
use wire::{GroupId, Member, NodeId, Time, ViewNumber};

use super::{HAND_OVER_PATIENCE, Motive, Moving, Outlook};
use crate::api::{Event, MoveError, Output};
use crate::bug::Bug;
use crate::directory::{Change, State};
use crate::groups::{GroupHandler, Groups};
use crate::ordering::Ordering;
use crate::replicas::passive::Yield;
use crate::style::Conduct;

impl Groups {
    /// This node's replica waits for another to take over before it goes.
    pub(crate) fn is_handing_over(&self, id: GroupId) -> bool {
        self.moves.contains_key(&(id, Motive::Going))
    }

    /// When a wish is given up.
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

    /// This node's replica is to go: if it is the primary, the next that has the state is to take over before.
    pub(crate) fn hand_over(&mut self, now: Time, id: GroupId) {
        let Some(group) =
            self.base.directory.get(id).filter(|group| group.primary() == Some(self.base.me))
        else {
            return;
        };
        if let Some(next) = group.synced().nth(1) {
            let until = now + HAND_OVER_PATIENCE;
            let moving = Moving { to: next.node, until, asked: None };
            self.groups.moves.insert((id, Motive::Going), moving);
        }
    }

    /// Orders the wishes that can be ordered, and ends those that are over. True if there was anything to do.
    pub(crate) fn pump_moves(&mut self, now: Time) -> bool {
        if self.groups.moves.is_empty() {
            return false;
        }
        let wishes: Vec<(GroupId, Motive)> = self.groups.moves.keys().copied().collect();
        let mut any = false;
        for (id, motive) in wishes {
            let moving = &self.groups.moves[&(id, motive)];
            let (to, late) = (moving.to, now >= moving.until);
            let ended = match self.outlook(id, to) {
                Outlook::Done(view) => Some(Ok(view)),
                Outlook::Refused(error) => Some(Err(error)),
                Outlook::Ready(..) | Outlook::Wait if late => Some(Err(MoveError::Late(to))),
                Outlook::Wait => None,
                Outlook::Ready(to, view) => {
                    any |= self.wish(now, (id, motive), to, view);
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

    /// Orders a wish, once on each ring and for each view.
    pub(crate) fn wish(
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
        let wish = Move { group: key.0, to, view };
        if !self.replicas().yield_to(Yield::Move(wish)) {
            self.base.order(now, Ordered::Move(wish));
        }
        true
    }

    /// A move at its place in the order.
    pub(crate) fn act_on_move(&mut self, now: Time, sender: Member, wish: Move) {
        let Some(group) = self.base.directory.get(wish.group) else { return };
        let Some(from) = group.primary() else { return };
        // Of a passive group only the primary knows when it has ordered what it has taken.
        let speaker = if group.options.style.keeps_its_primary() { from } else { wish.to };
        if sender != speaker {
            let takes_over = speaker == wish.to && wish.to == self.base.me;
            if takes_over && self.replicas.can_take_over(self.base, &wish) {
                self.base.order(now, Ordered::Move(wish));
            } else {
                self.replicas().yield_to(Yield::Move(wish));
            }
            return;
        }
        if self.base.planted.is(Bug::OldPrimaryStays) && from == self.base.me {
            return;
        }
        let change = self.base.directory.promote(wish.to, wish.group, wish.view, self.base.planted);
        if change != Change::View {
            return;
        }
        if self.base.planted.is(Bug::DropMovedCalls) && from == self.base.me {
            for call in self.replies.clients.callers.of_group(wish.group) {
                self.replies.clients.callers.remove(&call);
            }
        }
        let Move { group, to, view: asked } = wish;
        let known = self.base.directory.get(group).expect("its primary has just moved");
        let (name, view) = (known.name.clone(), known.view);
        let (ring, sequence) = (self.base.membership.ring(), self.base.progress.delivered());
        self.base.event(Event::Moved { group, name, ring, sequence, from, to, asked, view });
        self.changed(now, wish.group, change);
    }
}
