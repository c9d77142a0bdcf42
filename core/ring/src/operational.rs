//! An installed ring: whose turn it is, what is sent in it, and where the token goes next.

mod confirming;
mod pulse;
mod wants;

use wire::limits::MAX_MESSAGE;
use wire::ring::{
    Ack, CHUNK_OVERHEAD, DATA_OVERHEAD, Data, Message, ORIGIN_OVERHEAD, Stable, Stored, Token,
};
use wire::{Duration, Member, Time};

use crate::bug::Bug;
use crate::deadline::earlier;
use crate::order::{Order, Verdict};
use crate::out::Out;
use crate::packing::{Assembly, SendQueue};
use crate::turn::Turn;
use crate::{Config, Route};

/// The parts that the handlers of an installed ring may touch.
pub(crate) struct Operational<'a> {
    pub now: Time,
    pub config: &'a Config,
    pub order: &'a mut Order,
    pub turn: &'a mut Turn,
    pub queue: &'a mut SendQueue,
    pub assembly: &'a mut Assembly,
    pub out: &'a mut Out,
}

/// Room for chunks in a datagram. An origin must still fit when it is sent again in a recovery.
pub(crate) fn body_room(config: &Config) -> usize {
    let room = config.datagram - DATA_OVERHEAD - ORIGIN_OVERHEAD;
    debug_assert!(room > CHUNK_OVERHEAD && room < MAX_MESSAGE);
    room
}

impl Operational<'_> {
    pub fn data(&mut self, from: usize, data: Data) {
        let sender = self.order.members[from];
        let (sequence, ack_wanted) = (data.sequence, data.ack_wanted);
        let skips = sequence > self.order.window.high() + 1 && self.config.parking;
        let places = (&mut *self.assembly, &mut *self.out);
        if self.order.receive(self.now, self.config, places, sender, data) {
            // It has had the token since it asked; if it wants it again, the token says so.
            self.order.asked &= !(1 << from);
        }
        // A sender that does not know of gaps does not ask for the missing datagrams.
        let misses = skips && self.order.misses(self.config);
        if (ack_wanted || misses) && self.order.window.admits(sequence) {
            self.order.owed |= 1 << from;
        }
        if !self.config.parking {
            let asked = (ack_wanted && self.order.window.admits(sequence)).then_some(sequence);
            let completes = self.turn.lookout.completes(from, asked, self.order.window.aru());
            self.order.owed |= completes.map_or(0, |who| 1 << who);
        }
        self.progress();
    }

    pub fn ack(&mut self, from: usize, ack: Ack) {
        let before = self.order.all();
        self.order.acknowledged(self.now, self.config, self.out, from, ack);
        let others = self.order.everybody() & !self.order.my_bit();
        let wanted = self.order.token.as_ref().is_some_and(|token| token.wants & others != 0);
        if self.order.all() > before && !wanted {
            // Everybody answers: a steady stream is not interrupted by a round of the token. But
            // nobody is kept waiting for it longer than once.
            let at = self.now + self.config.timing.ack_wait;
            self.turn.asking.at = self.turn.asking.at.map(|_| at);
        }
        self.progress();
        self.go_on();
        // Unless data has gone out that says it.
        if self.order.owes_stable(self.order.safe.mine()) {
            self.order.announce(self.out);
        }
    }

    /// A member reports the stable point; or asks for it, if it knows less than this node.
    pub fn stable(&mut self, from: usize, stable: Stable) {
        if !self.order.witness(self.now, self.config, from, stable.hop) {
            return;
        }
        if stable.stable < self.order.all() {
            let answer = self.order.stable();
            let to = self.order.members[from].node;
            return self.out.send(to, answer, Route::Every);
        }
        self.order.learn_stable(stable.stable);
        self.progress();
        self.go_on();
    }

    /// A member reports how far its disk is; or it asks for this node's.
    pub fn stored(&mut self, from: usize, stored: Stored) {
        self.order.learn_stored(from, stored.stored);
        self.progress();
        let mine = self.order.stored.of(self.order.mine);
        if stored.question && mine > 0 {
            let answer = Stored { ring: self.order.id, stored: mine, question: false };
            let to = self.order.members[from].node;
            self.out.send(to, Message::Stored(answer), Route::Best);
        }
    }

    /// Tells all what is on this node's disk, and may ask them the same.
    pub fn tell_stored(&mut self, question: bool) {
        let stored = self.order.stored.of(self.order.mine);
        let told = Stored { ring: self.order.id, stored, question };
        let datagram = self.out.encode(Message::Stored(told));
        let route = if question { Route::Every } else { Route::Best };
        self.out.fan(&self.order.members, datagram, route);
    }

    pub fn want(&mut self, from: usize) {
        let bit = 1 << from;
        match &mut self.order.token {
            Some(token) => token.wants |= bit,
            None => self.order.asked |= bit,
        }
        self.go_on();
    }

    pub fn token(&mut self, sender: Member, token: Token) {
        match self.order.judge(&token, self.config) {
            Verdict::Impossible => {}
            Verdict::Copy => {
                let ack = self.order.ack(self.config);
                self.out.send(sender.node, ack, Route::Every);
            }
            Verdict::Take => {
                let places = (&mut *self.assembly, &mut *self.out);
                let again = self.order.take(self.now, self.config, places, token);
                // They are part of the turn, but may not use it up.
                self.turn.sent = again.min(self.config.turn - 1);
                self.turn.asking.over();
                if let Some(away) = self.turn.lookout.back(self.now) {
                    self.was_away(away);
                }
                self.turn.want.fulfilled();
                self.turn.heart.stir();
                self.turn.unseen = true;
                self.progress();
                self.go_on();
            }
        }
    }

    /// The token is back.
    fn was_away(&mut self, away: Duration) {
        if !self.queue.is_empty() {
            let members = self.order.members.len();
            self.turn.lookout.waited(self.now, away, &self.config.timing, members);
        }
        // A token that rests somewhere is not on its way.
        if !self.config.parking {
            self.turn.rotations.get_or_insert_default().record(away);
        }
    }

    /// Acts on new knowledge of which members have the messages.
    pub fn progress(&mut self) {
        self.order.advance(self.config, self.assembly, self.out);
        let grown = self.order.tell(self.out);
        if self.order.blocking().is_none() && !self.order.could_tell() {
            self.turn.safe_at = None;
        } else if grown || self.turn.safe_at.is_none() {
            self.turn.safe_at = Some(self.now + self.safe_wait());
        }
        self.conclude_round();
    }

    /// The time that safe messages wait for news before something is done. By then their sender
    /// would have sent the token round for want of an acknowledgement.
    fn safe_wait(&self) -> Duration {
        self.config.timing.ack_wait * 2
    }

    /// Safe messages wait, and nothing more has become stable: what all were told may have been
    /// lost, and what only some have got is told in part.
    fn ask_for_stability(&mut self) {
        self.turn.safe_at = Some(self.now + self.safe_wait());
        if self.order.could_tell() {
            return self.order.announce(self.out);
        }
        let Some(kept) = self.order.blocking() else {
            self.turn.safe_at = None;
            return;
        };
        let sender = kept.sender;
        let question = self.out.encode(self.order.stable());
        if sender == self.config.me {
            self.out.fan(&self.order.members, question, Route::Every);
        } else {
            self.out.send_bytes(sender.node, question, Route::Every);
        }
    }

    /// The holder's turn: send, then keep the token or pass it on. Called at whatever may change
    /// that decision; does nothing without the token.
    pub fn go_on(&mut self) {
        if self.order.token.is_none() {
            return;
        }
        self.turn.burst = 0;
        self.send();
        let others = self.order.everybody() & !self.order.my_bit();
        self.visit_the_overdue();
        let token = self.order.token.as_ref().expect("held");
        let wants = token.wants & others;
        let home = usize::from(token.home);
        let next = self.order.next_of(others);
        // With a full window no wanter can send before the slowest member is further: passed only
        // among those who want it, the token would never come to a member that misses something,
        // nor be lost on one that is dead.
        let ahead = token.sequence.saturating_sub(self.order.all());
        let wanter = self.order.next_of(wants).filter(|_| ahead < self.config.window as u64);
        let to = if !self.config.parking {
            next // As in the paper: always, and to everybody in turn.
        } else if wanter.is_some() {
            wanter
        } else if self.order.settled() {
            Some(home).filter(|home| *home != self.order.mine)
        } else if self.turn.asking.at.is_some_and(|at| self.now < at) {
            return;
        } else {
            next
        };
        match to {
            Some(to) => self.pass(to),
            None => self.rest(),
        }
    }

    /// Where it was used last, the token is sent to those who did not answer.
    fn visit_the_overdue(&mut self) {
        let token = self.order.token.as_mut().expect("held");
        if usize::from(token.home) == self.order.mine && !self.config.planted.is(Bug::HideTheSilent)
        {
            token.wants |= self.order.watch.overdue(self.now, &self.config.timing);
        }
    }

    fn pass(&mut self, to: usize) {
        self.turn.asking.over();
        self.turn.lookout.left(self.now);
        self.turn.heart.stir();
        self.turn.unseen = false;
        if !self.queue.is_empty() {
            let mine = self.order.my_bit();
            self.order.token.as_mut().expect("held").wants |= mine;
            self.turn.want.told();
        }
        let overtaken = self.turn.burst.min(self.config.overlap());
        self.order.pass(self.now, self.config, self.out, to, overtaken);
    }

    /// The token stays. Those who passed it would otherwise send it again, for want of a sign.
    fn rest(&mut self) {
        self.turn.asking.over();
        self.turn.sent = 0;
        if self.order.owes_stable(self.order.safe.last()) {
            self.order.announce(self.out);
            self.turn.unseen = false; // This shows it too.
        }
        if core::mem::take(&mut self.turn.unseen) {
            let ack = self.order.ack(self.config);
            let ack = self.out.encode(ack);
            self.out.fan(&self.order.members, ack, Route::Best);
        }
        if self.order.members.len() > 1 {
            self.turn.heart.rest(self.now, self.config);
        }
    }

    /// How many datagrams may be sent now: what the window leaves; and while others want the token,
    /// what is left of the turn, and no more than an equal share of the window.
    fn budget(&self) -> usize {
        let token = self.order.token.as_ref().expect("only the holder sends");
        let under_way = token.sequence.saturating_sub(self.order.all());
        let room = (self.config.window as u64).saturating_sub(under_way) as usize;
        let others = self.order.everybody() & !self.order.my_bit();
        let wanters = (token.wants & others).count_ones() as usize;
        let greedy =
            wanters == 0 && self.config.parking || self.config.planted.is(Bug::GreedyHolder);
        if others == 0 || greedy {
            return room;
        }
        let share = (room + self.turn.sent).div_ceil(1 + wanters);
        room.min(share.min(self.config.turn).saturating_sub(self.turn.sent))
    }

    /// Sends what is queued, as far as the window and the others' wants allow.
    fn send(&mut self) {
        let room = body_room(self.config);
        loop {
            let budget = self.budget();
            if budget == 0 || self.queue.is_empty() {
                return;
            }
            for left in (0..budget).rev() {
                let draft = self.queue.pack(room, &mut self.out.arena);
                let Some((draft, waited)) = draft else { break };
                let last = left == 0 || self.queue.is_empty();
                // A full window waits for nothing that nobody was asked for.
                let mark = self.order.is_mark(self.config) || left == 0;
                let Turn { asking, lookout, confirming, .. } = &mut *self.turn;
                let ack = match self.config.parking {
                    true => asking.asks(self.now, self.config, waited, last, mark),
                    // A token that goes round always collects what is acknowledged.
                    false => last && lookout.asks(self.now),
                };
                self.order.transmit(self.config, self.out, draft, None, ack);
                confirming.sent(self.order.window.high());
                if ack {
                    lookout.asked = self.order.window.high();
                }
                self.turn.sent += 1;
                self.turn.burst += 1;
            }
            self.turn.unseen = false;
            self.turn.heart.stir();
            if self.config.parking {
                let others = self.order.everybody() & !self.order.my_bit();
                self.order.watch.ask(self.now, others);
            }
            self.progress();
        }
    }

    /// The next thing that happens by itself; the token's loss is the caller's.
    pub fn next_timeout(order: &Order, turn: &Turn) -> Option<Time> {
        let passed = order.passed.as_ref().map(|passed| passed.retry_at);
        let next = earlier(passed, earlier(turn.want.at, turn.safe_at));
        let next = earlier(next, turn.confirming.at);
        if order.token.is_none() {
            return next;
        }
        earlier(next, earlier(turn.asking.at, turn.heart.at))
    }

    pub fn timeout(&mut self) {
        let now = self.now;
        let due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        self.order.pass_again(now, self.config, self.out);
        if due(self.turn.want.at) {
            self.ask_again();
        }
        if due(self.turn.safe_at) {
            self.ask_for_stability();
        }
        if due(self.turn.confirming.at) {
            self.ask_for_confirmation_again();
        }
        if self.order.token.is_some() && due(self.turn.heart.at) {
            if self.config.planted.is(Bug::UnansweredHeartbeat) {
                self.turn.heart.stir();
                self.turn.unseen = true;
                self.rest();
            } else {
                self.beat();
            }
        }
        if self.order.token.is_some() && due(self.turn.asking.at) {
            // A node that lacks something itself can only ask all, by the token.
            let sent = self.order.token.as_ref().map_or(0, |token| token.sequence);
            let complete = self.order.window.aru() == sent && !self.order.settled();
            if self.turn.asking.is_due() && complete {
                self.ask_round();
            } else {
                self.go_on();
            }
        }
    }

    /// The ring has just been installed. The first member to do so shows the token to all: the
    /// others install the ring when they see it, and all have a sign of life.
    pub fn settle_in(&mut self, first: bool) {
        self.progress();
        if self.order.token.is_none() {
            if !self.queue.is_empty() {
                self.queued();
            }
        } else if first {
            self.make_a_round();
        } else {
            self.go_on();
        }
    }

    /// Every member gets the token once: a round is made of wants that nobody had.
    pub fn make_a_round(&mut self) {
        self.turn.heart.stir();
        let others = self.order.everybody() & !self.order.my_bit();
        if let Some(token) = &mut self.order.token {
            token.wants |= others;
        }
        self.go_on();
    }
}

/// The time after which an installed or recovering ring is given up: none for the holder, who
/// has the token, and none for a node that is alone.
pub(crate) fn loss_at(order: &Order, config: &Config) -> Option<Time> {
    (order.token.is_none() && order.members.len() > 1)
        .then(|| order.watch.loss_at(&config.timing, order.passed.is_some()))
}
