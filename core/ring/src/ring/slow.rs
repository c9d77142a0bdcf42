//! Members that do not keep up: who is charged for a shut window, and what becomes of them.

use wire::ring::Join;
use wire::{Member, Time};

use super::{Ring, State};
use crate::Config;
use crate::blame::Blame;
use crate::bug::Bug;
use crate::deadline::earlier;
use crate::gather::{Gather, Sets};
use crate::operational::Operational;
use crate::order::Order;
use crate::out::Out;
use crate::stalls::{Stall, Standing, Tariff};

impl Config {
    /// How much a member may hold up the others.
    pub(crate) fn tariff(&self) -> Tariff {
        Tariff { limit: self.timing.longest_stall(), share: self.slow_share }
    }
}

impl Order {
    /// Members that are half a window or more behind while a majority has everything up to `high`,
    /// and so has nothing to do. As long as the majority is busy, the ring goes at its pace. If no
    /// majority has a message, no single receiver is at fault: the sender, or its network, is slow.
    /// A member that is behind itself does not judge others.
    fn lagging(&self, config: &Config, high: u64) -> u64 {
        if self.majority() < high && !config.planted.is(Bug::BlameTheLast) {
            return 0;
        }
        let behind = |aru: u64| high.saturating_sub(aru) >= (config.window as u64 / 2).max(1);
        let bits = self.held.known().iter().enumerate();
        let bits = bits.fold(0, |bits, (i, aru)| bits | u64::from(behind(*aru)) << i);
        if config.planted.is(Bug::BlameTheLast) {
            let last = (0..self.members.len()).filter(|i| *i != self.mine);
            return last.min_by_key(|i| self.held.of(*i)).map_or(0, |i| 1 << i);
        }
        if bits & self.my_bit() == 0 { bits } else { 0 }
    }

    /// Where the token always circulates: members without the datagrams for which this node asked
    /// last, once a majority has them. The token cannot be back before they have taken those in. A
    /// member that lacks them itself does not judge others.
    fn late(&self, asked: u64) -> u64 {
        let late = self.still_behind(self.everybody(), asked);
        if self.majority() < asked || late & self.my_bit() != 0 { 0 } else { late }
    }

    /// How a node with something to send stands, and the window that was found shut.
    fn stopped(&self, config: &Config, stall: Option<Stall>) -> (Standing, Option<Stall>) {
        let high = self.window.high();
        let here = self.token.is_some() || self.passed.is_some();
        // Only who has the token, or had it just now, knows how far the others are.
        let full = here && high - self.all().min(high) >= config.window as u64;
        let stall = stall.filter(|stall| stall.high == high);
        if full || stall.is_some() {
            // Until more is sent by anybody, also while the token makes its round to the slowest.
            let mut stall = stall.unwrap_or(Stall { high, by: 0 });
            stall.by = self.still_behind(stall.by | self.lagging(config, high), high);
            (Standing::Stopped(stall.by), Some(stall))
        } else if self.token.is_some() {
            (Standing::Free, None)
        } else {
            (Standing::Waits, None)
        }
    }

    /// Those of `members` that have not got everything up to `high` yet.
    fn still_behind(&self, members: u64, high: u64) -> u64 {
        let arus = self.held.known().iter().enumerate();
        arus.filter(|(_, aru)| **aru >= high).fold(members, |bits, (i, _)| bits & !(1 << i))
    }
}

impl Ring {
    /// Charges, after each step of an installed ring, the time since the last one to the member
    /// that kept this node from sending. Excludes a member whose account is full.
    pub(crate) fn weigh_stalls(&mut self, now: Time) {
        let State::Operational(turn) = &mut self.state else { return };
        if self.config.planted.is(Bug::ForgiveTheSlow) {
            return;
        }
        let order = &self.order;
        let stall = turn.stalls.stall.take();
        let standing = if self.queue.is_empty() || order.members.len() == 1 {
            Standing::Free
        } else if !self.config.parking {
            // A member with nothing to send passes the token on at once. All time without it is
            // others' turns, which are as they should be, or this.
            match order.late(turn.lookout.asked) {
                late if late == 0 || order.token.is_some() => Standing::Free,
                late => Standing::Stopped(late),
            }
        } else {
            let (standing, stall) = order.stopped(&self.config, stall);
            turn.stalls.stall = stall;
            standing
        };
        let due = Operational::next_timeout(order, turn);
        // A node without the token may have no timer: one that finds its own lateness.
        let look = (!self.config.parking).then_some(now + self.config.timing.ack_wait);
        turn.stalls.note(now, self.config.tariff(), standing, earlier(due, look));
        let full = turn.stalls.full(self.config.tariff());
        if full != 0 {
            self.exclude(now, full);
        }
    }

    /// These members have held up this node beyond what is granted. It gathers without them, if
    /// those who keep up are a majority of the ring; else the ring goes on at their pace, for it
    /// would stop without them.
    fn exclude(&mut self, now: Time, slow: u64) {
        let State::Operational(turn) = &mut self.state else { return };
        let order = &self.order;
        let members = order.members.len();
        if 2 * (members - slow.count_ones() as usize) <= members {
            return turn.stalls.forgive(now);
        }
        let mut sets = Sets::of(&order.members);
        for index in (0..members).filter(|i| slow >> i & 1 == 1) {
            let (member, by) = (order.members[index], self.config.me);
            let charge = Some(turn.stalls.of(index, now, self.config.tariff()));
            let blame = Blame { member, by, charge };
            sets.fail(member);
            sets.blame(blame);
            self.out.event(blame.event());
        }
        self.gather(now, Gather::new(self.config.me, sets), None);
    }

    /// A proposal that was heard says that members were left out because they did not keep up;
    /// perhaps this one.
    pub(crate) fn tell_of_the_slow(
        out: &mut Out,
        me: Member,
        gather: &mut Gather,
        sender: Member,
        join: &Join,
    ) {
        for blame in Blame::heard(sender, join) {
            let news = if blame.member == me {
                !core::mem::replace(&mut gather.too_slow, true)
            } else {
                gather.sets.blame(blame)
            };
            if news {
                out.event(blame.event());
            }
        }
    }
}
