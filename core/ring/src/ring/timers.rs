//! Time-outs: the reactions when no message comes.

use alloc::vec::Vec;

use wire::ring::Message;
use wire::{Duration, Member, Time};

use super::{Ring, State};
use crate::deadline::earlier;
use crate::gather::{Gather, Sets};
use crate::operational::{Operational, loss_at};
use crate::{Event, Route};

/// How long others are waited for while a ring is formed.
#[derive(Clone, Copy)]
pub(crate) struct Waits {
    /// For a member that did not answer the token: until it answers the proposal.
    pub suspect: Duration,
    /// All, until they agree.
    pub consensus: Duration,
}

impl Ring {
    /// When [`handle_timeout`](Ring::handle_timeout) is to be called next.
    pub fn next_timeout(&self) -> Option<Time> {
        earlier(self.due_at(), self.show_at())
    }

    /// When the present state does something next. To show oneself to those outside is no part of
    /// it: that may be due since long ago when a state begins that does so.
    fn due_at(&self) -> Option<Time> {
        match &self.state {
            State::Gather(gather) => Some(gather.next_timeout()),
            State::Commit(forming) => Some(forming.retry_at.min(forming.give_up_at)),
            State::Recovery(recovery) => {
                earlier(recovery.next_timeout(), loss_at(&recovery.new, &self.config))
            }
            State::Operational(turn) => earlier(
                earlier(
                    Operational::next_timeout(&self.order, turn),
                    turn.stalls.next_timeout(self.config.tariff()),
                ),
                loss_at(&self.order, &self.config),
            ),
            State::Left => None,
        }
    }

    /// The time that [`next_timeout`](Ring::next_timeout) named has come.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Some(due) = self.due_at()
            && now.since(due) > self.config.timing.token_timeout / 4
        {
            self.was_held_up(now, now.since(due));
        }
        if self.show_at().is_some_and(|at| at <= now) {
            self.show(now);
        }
        match &self.state {
            State::Gather(_) => self.gather_timeout(now),
            State::Commit(_) => self.commit_timeout(now),
            State::Recovery(recovery) => {
                if loss_at(&recovery.new, &self.config).is_some_and(|at| at <= now) {
                    self.token_lost(now);
                } else {
                    self.recovering(now).timeout();
                }
            }
            State::Operational(_) => {
                if loss_at(&self.order, &self.config).is_some_and(|at| at <= now) {
                    self.token_lost(now);
                } else {
                    self.operational(now).timeout();
                    self.weigh_stalls(now);
                }
            }
            State::Left => {}
        }
    }

    /// This node itself was stopped for longer than a timer can be trusted: what it has not read
    /// yet may tell another story, and it has asked nobody meanwhile. Every timer that accuses
    /// somebody gets more time.
    fn was_held_up(&mut self, now: Time, late: Duration) {
        let timing = &self.config.timing;
        if matches!(self.state, State::Gather(_) | State::Commit(_)) {
            self.order.watch.timeout.waited(now, late, timing);
        }
        let Waits { suspect: suspect_wait, consensus } = self.waits();
        match &mut self.state {
            State::Gather(gather) => {
                gather.consensus_at = now + consensus;
                if let Some(suspect) = gather.suspected() {
                    gather.suspect(suspect.member, now, now + suspect_wait);
                }
            }
            State::Commit(forming) => forming.give_up_at = now + consensus,
            State::Recovery(recovery) => recovery.new.watch.was_held_up(now, late, timing),
            State::Operational(turn) => {
                turn.stalls.excuse(now);
                self.order.watch.was_held_up(now, late, timing);
            }
            State::Left => return,
        }
        self.out.event(Event::HeldUp(late));
    }

    /// How long others are waited for while a ring is formed. As long as this node had to wait for
    /// signs of life before, or was held up itself, in proportion: hosts that have too much to do
    /// are slow to answer proposals, too.
    pub(crate) fn waits(&self) -> Waits {
        let timing = &self.config.timing;
        let time_out = self.order.watch.timeout.span(timing);
        let [suspect, consensus] = [timing.suspect_wait, timing.consensus_timeout]
            .map(|wait| timing.in_proportion(wait, time_out));
        Waits { suspect, consensus }
    }

    fn gather_timeout(&mut self, now: Time) {
        let Waits { consensus, .. } = self.waits();
        let extension = self.extension();
        let State::Gather(gather) = &mut self.state else { return };
        if let Some(suspect) = gather.suspected().filter(|suspect| suspect.accuse_at <= now) {
            if gather.may_accuse(suspect.member) {
                return self.accuse(now, &[suspect.member]);
            }
            gather.suspect(suspect.member, now, Time::FAR);
        }
        if let Some(suspect) = gather.ask_again(now, self.config.timing.join_interval / 4) {
            let datagram = self.out.encode(Message::Join(gather.join(
                self.known,
                self.config.speaks,
                extension,
            )));
            self.out.send_bytes(suspect.node, datagram, Route::Every);
        }
        if gather.consensus_at <= now {
            let silent = gather.silent();
            if silent.is_empty() {
                // All agreed, or nobody else is known: either a node that starts is alone by now,
                // or the one who was to form the ring has not.
                gather.consensus_at = now + consensus;
                self.agree(now);
                if let State::Gather(gather) = &mut self.state {
                    gather.forget_agreement();
                }
            } else if let Some(accused) = gather.accused(&silent) {
                return self.accuse(now, &accused);
            } else {
                gather.yielded = true;
                gather.consensus_at = now + consensus;
            }
        }
        if let State::Gather(gather) = &self.state
            && gather.join_at <= now
        {
            self.send_join(now, None);
        }
    }

    /// Holds these to have failed, for they do not answer.
    fn accuse(&mut self, now: Time, silent: &[Member]) {
        let sets = match &mut self.state {
            State::Gather(gather) => gather.sets.clone(),
            State::Commit(forming) => core::mem::take(&mut forming.sets),
            _ => return,
        };
        for member in silent {
            self.out.event(Event::Silent(*member));
        }
        self.failed(now, sets, silent);
    }

    fn commit_timeout(&mut self, now: Time) {
        let State::Commit(forming) = &mut self.state else { return };
        let represents = forming.ring.representative == self.config.me.node;
        if forming.give_up_at <= now {
            if represents {
                // They agreed, and yet they do not hear the call, or are not heard.
                let lacking: Vec<Member> = forming.lacking().collect();
                self.accuse(now, &lacking);
            } else {
                let sets = core::mem::take(&mut forming.sets);
                self.gather(now, Gather::new(self.config.me, sets), None);
            }
        } else if represents {
            self.advance_commit(now);
        } else {
            self.repeat_entry(now);
        }
    }

    /// Nothing was seen of the token for too long. Its last known holder is suspected: this node
    /// passed it there and got no receipt, or saw it there last.
    fn token_lost(&mut self, now: Time) {
        let (order, sets) = match &self.state {
            State::Recovery(recovery) => (&recovery.new, recovery.sets.clone()),
            _ => (&self.order, Sets::of(&self.order.members)),
        };
        let silent = now.since(order.watch.evidence);
        let holder = order.members[order.watch.holder];
        let suspect = (holder != self.config.me).then_some(holder);
        self.out.event(Event::TokenLost { ring: order.id, silent, suspect });
        let mut gather = Gather::new(self.config.me, sets);
        if let Some(suspect) = suspect {
            gather.suspect(suspect, now, now + self.waits().suspect);
        }
        self.gather(now, gather, None);
    }
}
