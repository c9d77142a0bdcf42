//! Moving a group's primary to another replica, on demand or before this node goes (`docs/protocol/group.md`,
//! "Hand-over").
//!
//! Whoever wishes a move orders the wish. The node that is to take over orders the same message itself, and
//! that is the hand-over: it has the token then, and does not say so unless it can act. In a passive group the primary
//! orders it, when what it has executed is ordered.

use alloc::vec::Vec;

use wire::limits::MAX_MOVES;
use wire::ordered::{Move, Ordered};
use wire::{Duration, GroupId, Member, NodeId, RingId, Time, ViewNumber};

use super::Stack;
use super::passive::Yield;
use crate::api::{Event, MoveError, Output};
use crate::bug::Bug;
use crate::directory::{Change, State};
use crate::ordering::Ordering;
use crate::style::Conduct;

/// Whoever asked for a move hears of it within this time.
const MOVE_PATIENCE: Duration = Duration::from_secs(3);

/// A replica that goes waits this long for another to be primary before it goes all the same: its successor may
/// be going as well.
const HAND_OVER_PATIENCE: Duration = Duration::from_millis(100);

/// Why a primary is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Motive {
    /// Somebody asked for it here, and waits for the outcome.
    Asked,
    /// This node's replica is about to go.
    Going,
}

/// A move that this node wishes.
pub(super) struct Moving {
    to: NodeId,
    until: Time,
    /// Where the wish was ordered last: on a ring that ended it may be lost, of an old view it is void.
    asked: Option<(RingId, ViewNumber)>,
}

/// What can come of a wish.
enum Outlook {
    /// It is so.
    Done(ViewNumber),
    /// It cannot be.
    Refused(MoveError),
    /// It can be ordered.
    Ready(Member, ViewNumber),
    /// Groups do not act now.
    Wait,
}

impl<O: Ordering> Stack<O> {
    /// Makes the replica at node `to` the group's primary, without a gap for its clients. The outcome comes as
    /// [`Output::Moved`], at once or within some seconds.
    ///
    /// # Errors
    /// Another move of this group, or too many of others, were asked for at this node and are not over.
    pub fn move_primary(&mut self, now: Time, group: GroupId, to: NodeId) -> Result<(), MoveError> {
        if let Some(under_way) = self.wishes.moves.get(&(group, Motive::Asked)) {
            return Err(MoveError::UnderWay(under_way.to));
        }
        let asked = self.wishes.moves.keys().filter(|(_, motive)| *motive == Motive::Asked).count();
        if asked >= MAX_MOVES {
            return Err(MoveError::TooMany);
        }
        let moving = Moving { to, until: now + MOVE_PATIENCE, asked: None };
        self.wishes.moves.insert((group, Motive::Asked), moving);
        self.settle(now);
        Ok(())
    }

    /// This node's replica is to go: if it is the primary, the next that has the state is to take over before.
    pub(super) fn hand_over(&mut self, now: Time, id: GroupId) {
        let Some(group) = self.directory.get(id).filter(|group| group.primary() == Some(self.me))
        else {
            return;
        };
        if let Some(next) = group.synced().nth(1) {
            let until = now + HAND_OVER_PATIENCE;
            let moving = Moving { to: next.node, until, asked: None };
            self.wishes.moves.insert((id, Motive::Going), moving);
        }
    }

    /// This node's replica waits for another to take over before it goes.
    pub(super) fn is_handing_over(&self, id: GroupId) -> bool {
        self.wishes.moves.contains_key(&(id, Motive::Going))
    }

    /// When a wish is given up.
    pub(super) fn next_move_timeout(&self) -> Option<Time> {
        self.wishes.moves.values().map(|moving| moving.until).min()
    }

    /// Orders the wishes that can be ordered, and ends those that are over. True if there was anything to do.
    pub(super) fn pump_moves(&mut self, now: Time) -> bool {
        let wishes: Vec<(GroupId, Motive)> = self.wishes.moves.keys().copied().collect();
        let mut any = false;
        for (id, motive) in wishes {
            let moving = &self.wishes.moves[&(id, motive)];
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
                self.wishes.moves.remove(&(id, motive));
                if motive == Motive::Asked {
                    self.outputs.push(Output::Moved { group: id, to, outcome });
                }
            }
        }
        any
    }

    fn outlook(&self, id: GroupId, to: NodeId) -> Outlook {
        if self.membership.is_minority() {
            return Outlook::Refused(MoveError::NoQuorum);
        }
        if !self.membership.is_active() {
            return Outlook::Wait;
        }
        let Some(group) = self.directory.get(id) else {
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
                State::Unsynced { .. } if !self.planted.is(Bug::MoveToUnsynced) => {
                    Outlook::Refused(MoveError::NotSynced(to))
                }
                _ => Outlook::Ready(replica.member, group.view),
            },
        }
    }

    /// Orders a wish, once on each ring and for each view.
    fn wish(&mut self, now: Time, key: (GroupId, Motive), to: Member, view: ViewNumber) -> bool {
        let here = Some((self.membership.ring(), view));
        let moving = self.wishes.moves.get_mut(&key).expect("it is looked at");
        if moving.asked == here {
            return false;
        }
        moving.asked = here;
        let wish = Move { group: key.0, to, view };
        if !self.yield_to(Yield::Move(wish)) {
            self.order(now, Ordered::Move(wish));
        }
        true
    }

    /// A move at its place in the order.
    pub(super) fn act_on_move(&mut self, now: Time, sender: Member, wish: Move) {
        let Some(group) = self.directory.get(wish.group) else { return };
        let Some(from) = group.primary() else { return };
        // Of a passive group only the primary knows when it has ordered what it has taken.
        let speaker = if group.options.style.keeps_its_primary() { from } else { wish.to };
        if sender != speaker {
            let takes_over = speaker == wish.to && wish.to == self.me;
            if takes_over && self.can_take_over(&wish) {
                self.order(now, Ordered::Move(wish));
            } else {
                self.yield_to(Yield::Move(wish));
            }
            return;
        }
        if self.planted.is(Bug::OldPrimaryStays) && from == self.me {
            return;
        }
        let change = self.directory.promote(wish.to, wish.group, wish.view, self.planted);
        if change != Change::View {
            return;
        }
        if self.planted.is(Bug::DropMovedCalls) && from == self.me {
            for call in self.clients.callers.of_group(wish.group) {
                self.clients.callers.remove(&call);
            }
        }
        let Move { group, to, view: asked } = wish;
        let known = self.directory.get(group).expect("its primary has just moved");
        let (name, view) = (known.name.clone(), known.view);
        let (ring, sequence) = (self.membership.ring(), self.progress.delivered());
        self.event(Event::Moved { group, name, ring, sequence, from, to, asked, view });
        self.changed(now, wish.group, change);
    }

    /// This node's replica can be primary, and nothing has changed since that was wished.
    fn can_take_over(&self, wish: &Move) -> bool {
        let Some(group) = self.directory.get(wish.group) else { return false };
        let hosted = self.hosted.get(&wish.group).filter(|hosted| !hosted.departure.begun);
        let current = group.view == wish.view || self.planted.is(Bug::ObeyOldMove);
        let fit = hosted.is_some_and(|hosted| hosted.replica.has_state())
            || self.planted.is(Bug::MoveToUnsynced);
        current && fit && group.primary() != Some(self.me)
    }
}
