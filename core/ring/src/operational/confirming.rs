//! Making sure, without ordering anything, that this node was in the ring with a majority at some
//! moment.
//!
//! The question goes to all other members, and all who ask meanwhile have to wait for the next one:
//! it must begin after they have asked. A majority that was in this ring after that moment has left
//! it for no other before, so no other component can have acted without it; and whatever a majority
//! held by then, one of those who answer has. See docs/protocol/ring.md, "Confirming"; source of
//! the idea: D. Ongaro, *Consensus: Bridging Theory and Practice*, 2014, section 6.4 (the read
//! index of Raft).

use wire::ring::{Confirm, Confirmed, Message};

use super::Operational;
use crate::bug::Bug;
use crate::turn::{Confirming, Turn};
use crate::{Output, Route};

impl Operational<'_> {
    /// Asks the others whether they are still in this ring. The number of the round that will tell.
    pub fn confirm(&mut self) -> u64 {
        if self.turn.confirming.asking {
            self.turn.confirming.wanted = true;
            return self.turn.confirming.round + 1;
        }
        self.begin_round();
        self.turn.confirming.round
    }

    fn begin_round(&mut self) {
        let confirming = &mut self.turn.confirming;
        let round = confirming.round + 1;
        *confirming = Confirming { round, asking: true, ..Confirming::default() };
        confirming.by = self.order.my_bit();
        confirming.upto = self.order.window.aru();
        self.ask_for_confirmation(Route::Best);
        self.conclude_round();
    }

    /// Those who have not answered are asked, for the first time or once more.
    fn ask_for_confirmation(&mut self, route: Route) {
        let Turn { confirming, .. } = &mut *self.turn;
        let silent = self.order.everybody() & !confirming.by;
        let round = confirming.round;
        let timing = &self.config.timing;
        let doubled = timing.want_retry * (1 << confirming.times.min(16));
        confirming.at = Some(self.now + doubled.min(timing.heartbeat.max(timing.want_retry)));
        let question = self.out.encode(Message::Confirm(Confirm { ring: self.order.id, round }));
        let silent = self.order.members.iter().enumerate().filter(|(i, _)| silent >> i & 1 == 1);
        self.out.send_to(silent.map(|(_, member)| member.node).collect(), question, route);
    }

    /// Some answers are missing.
    pub fn ask_for_confirmation_again(&mut self) {
        self.turn.confirming.times += 1;
        self.ask_for_confirmation(Route::Every);
    }

    /// A member asks. This node is in the ring now, even if it is about to leave it.
    pub fn confirm_to(&mut self, from: usize, question: Confirm) {
        let Confirm { ring, round } = question;
        let aru = self.order.window.aru();
        let answer = Message::Confirmed(Confirmed { ring, round, aru });
        self.out.send(self.order.members[from].node, answer, Route::Best);
    }

    /// A member answers. The numbers that it reports were given out before it answered, so nothing
    /// is lost by believing a number that this node has not seen. One beyond the window is a lie.
    /// The answer also tells how far the member has the messages: a read waits for that, too, and
    /// acknowledgements go only to senders.
    pub fn confirmed(&mut self, from: usize, answer: Confirmed) {
        self.order.learn(from, answer.aru);
        let confirming = &mut self.turn.confirming;
        let possible = self.order.window.admits(answer.aru.max(1));
        if confirming.asking && answer.round == confirming.round && possible {
            confirming.by |= 1 << from;
            confirming.upto = confirming.upto.max(answer.aru);
        }
        self.progress();
        self.go_on();
    }

    /// More may be known of who is in the ring: by answers, or by who has what was sent since.
    pub fn conclude_round(&mut self) {
        let confirming = &mut self.turn.confirming;
        if !confirming.asking {
            return;
        }
        let majority = self.order.members.len() / 2 + 1;
        let by_answers = confirming.by.count_ones() as usize >= majority;
        let first = confirming.first.filter(|first| self.order.majority() >= *first);
        let upto = match first {
            _ if by_answers => confirming.upto,
            Some(first) => first,
            None if self.config.planted.is(Bug::ConfirmAlone) => confirming.upto,
            None => return,
        };
        (confirming.asking, confirming.at) = (false, None);
        let (ring, round) = (self.order.id, confirming.round);
        self.out.push(Output::Confirmed { ring, round, upto });
        if core::mem::take(&mut self.turn.confirming.wanted) {
            self.begin_round();
        }
    }
}
