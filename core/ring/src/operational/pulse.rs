//! How an idle ring shows that it lives: the token rests, and a small sign goes round instead.
//!
//! A pulse wakes each member once and its home twice. One that does not come back is followed by a
//! round of the token, whose receipts tell where it is lost: so it is a cheap try before the round,
//! and takes nothing from the safety of detection. See docs/protocol/ring.md, "The pulse".

use wire::Duration;
use wire::ring::{Message, Pulse};

use super::Operational;
use crate::bug::Bug;
use crate::config::MAX_HEARTBEAT;
use crate::{Output, Route};

impl Operational<'_> {
    /// The resting token is to show that it lives: by a pulse, or by a round if one is not back.
    pub fn beat(&mut self) {
        let members = self.order.members.len();
        let heart = &mut self.turn.heart;
        if heart.under_way.is_some() {
            return self.make_a_round();
        }
        heart.under_way = Some(self.now);
        heart.at = Some(self.now + self.config.timing.back_within(members));
        let next = heart.longer(self.config);
        self.send_pulse(next);
    }

    /// Nobody has been asked for the last of what was sent: a pulse asks all. Only who has it hands
    /// it on.
    pub fn ask_round(&mut self) {
        let back_within = self.config.timing.back_within(self.order.members.len());
        self.turn.asking.at = Some(self.now + back_within);
        self.send_pulse(self.config.timing.heartbeat);
    }

    fn send_pulse(&mut self, next: Duration) {
        let heart = &mut self.turn.heart;
        let token = self.order.token.as_ref().expect("only the holder shows that it rests");
        let number = if heart.newest.0 == token.hop { heart.newest.1.saturating_add(1) } else { 1 };
        heart.newest = (token.hop, number);
        let next = u64::try_from(next.as_micros()).unwrap_or(u64::MAX);
        let (ring, hop, sequence) = (self.order.id, token.hop, token.sequence);
        let (home, stable) = (self.order.mine as u8, self.order.all());
        self.hand_on(Pulse { ring, hop, number, home, stable, sequence, next });
    }

    fn hand_on(&mut self, pulse: Pulse) {
        let others = self.order.everybody() & !self.order.my_bit();
        let mut next = self.order.next_of(others).expect("a lone member has no pulse");
        if self.config.planted.is(Bug::ShortPulse) && usize::from(pulse.home) != self.order.mine {
            next = usize::from(pulse.home);
        }
        let to = self.order.members[next].node;
        self.out.send(to, Message::Pulse(pulse), Route::Best);
    }

    /// The token rests at `home`, says the member before this one.
    pub fn pulse(&mut self, from: usize, pulse: Pulse) {
        let members = self.order.members.len();
        let in_order = (from + 1) % members == self.order.mine;
        if !in_order && !self.config.planted.is(Bug::ShortPulse) {
            return;
        }
        let home = usize::from(pulse.home);
        if home == self.order.mine {
            return self.came_back(&pulse);
        }
        if self.order.token.is_some() || home >= members || !self.is_news(&pulse) {
            return;
        }
        if !self.order.witness(self.now, self.config, home, pulse.hop) {
            return;
        }
        self.turn.heart.newest = (pulse.hop, pulse.number);
        // A member that has asked for the token waits for it, however long others may be quiet.
        let asks = self.turn.want.at.is_some();
        let overtaken = self.order.window.high() > pulse.sequence;
        let none = asks || overtaken;
        let next = if none { Duration::ZERO } else { Duration::from_micros(pulse.next) };
        self.order.watch.quiet(home, self.now + next.min(MAX_HEARTBEAT));
        // Members before this one have handed on this pulse, those after it the one before: all
        // since that came here.
        if let Some(at) = self.turn.heart.follow(self.now, &pulse, self.config) {
            self.out.push(Output::Current { ring: pulse.ring, at, upto: pulse.sequence });
        }
        self.hand_on(pulse);
        self.order.learn_stable(pulse.stable);
        self.progress();
    }

    /// Whether this was sent after all else that this member has seen. A pulse that data or a pass
    /// has overtaken promises a silence that is over; a copy proves nothing; and where something is
    /// missing the token is to come round.
    fn is_news(&self, pulse: &Pulse) -> bool {
        let order = &self.order;
        let resting = pulse.hop > order.hop || pulse.hop == order.hop && order.passed.is_none();
        let window = &order.window;
        resting
            && (pulse.hop, pulse.number) > self.turn.heart.newest
            && window.aru() >= pulse.sequence
    }

    /// All have handed it on: all live, and all know by when the next one is due.
    fn came_back(&mut self, pulse: &Pulse) {
        let heart = &mut self.turn.heart;
        if (pulse.hop, pulse.number) != heart.newest || self.order.token.is_none() {
            return;
        }
        if let Some(sent) = heart.under_way.take() {
            heart.interval = heart.longer(self.config);
            heart.at = Some(sent + heart.interval);
            let (ring, upto) = (pulse.ring, pulse.sequence);
            self.out.push(Output::Current { ring, at: sent, upto });
        }
        for member in 0..self.order.members.len() {
            self.order.watch.answered(member);
            if member != self.order.mine {
                self.order.learn(member, pulse.sequence);
            }
        }
        self.progress();
        self.go_on();
    }
}
