//! The account of stalls: which members keep this node from sending, and for how long.
//!
//! Flow control waits for the slowest member. Each node that waits so charges the time to those who
//! make it wait, and an account empties with time, as a leaky bucket does: so a short hold-up is
//! forgiven, and a member that is slow for good is found. See docs/protocol/ring.md, "Slow
//! receivers".

use alloc::vec;
use alloc::vec::Vec;

use wire::{Duration, Time};

use crate::Charge;

/// How this node stands with its sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing waits to be sent, or it is sent as it comes.
    Free,
    /// It waits for the token, as is fair among senders. This time says nothing of anybody.
    Waits,
    /// The window is shut, by these members; by none of them alone if there are no bits.
    Stopped(u64),
}

/// The debt of one member.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Nanoseconds charged, less those that were forgiven.
    level: u64,
    /// Nanoseconds charged since the account was empty last, and when that was.
    stopped: u64,
    since: Time,
}

/// The accounts of one ring's members at one node.
#[derive(Debug)]
pub(crate) struct Stalls {
    accounts: Vec<Account>,
    standing: Standing,
    /// Everything up to here is charged.
    at: Time,
    /// This node does something by itself by then: what it is late beyond that is its own.
    due: Time,
    /// The window was found shut, and nobody has sent anything since.
    pub stall: Option<Stall>,
}

/// A window that was found shut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    /// The largest number on the ring then.
    pub high: u64,
    /// Those who kept it shut, until they have got that number.
    pub by: u64,
}

/// How much may be charged, and how much is forgiven.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tariff {
    /// The account is full.
    pub limit: Duration,
    /// Percent of all time that are forgiven.
    pub share: u32,
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn percent(span: u64, share: u32) -> u64 {
    span / 100 * u64::from(share) + span % 100 * u64::from(share) / 100
}

impl Stalls {
    /// Empty accounts of so many members.
    pub fn new(members: usize, now: Time) -> Self {
        let empty = Account { since: now, ..Account::default() };
        Stalls {
            accounts: vec![empty; members],
            standing: Standing::Free,
            at: now,
            due: Time::FAR,
            stall: None,
        }
    }

    /// From now on this node stands so, and does something by itself at `due`.
    pub fn note(&mut self, now: Time, tariff: Tariff, standing: Standing, due: Option<Time>) {
        self.settle(now, tariff);
        self.standing = standing;
        self.due = due.unwrap_or(Time::FAR);
    }

    /// This node was held up: the time until now is charged to nobody.
    pub fn excuse(&mut self, now: Time) {
        self.at = self.at.max(now);
    }

    /// Those who are charged now.
    fn charged(&self) -> u64 {
        if let Standing::Stopped(members) = self.standing { members } else { 0 }
    }

    fn settle(&mut self, now: Time, tariff: Tariff) {
        let passed = nanos(now.since(self.at));
        let stopped = nanos(now.min(self.due).since(self.at));
        let (charged, waits) = (self.charged(), self.standing == Standing::Waits);
        self.at = self.at.max(now);
        if waits || passed == 0 {
            return;
        }
        for (i, account) in self.accounts.iter_mut().enumerate() {
            if charged >> i & 1 == 1 {
                account.level += percent(stopped, 100 - tariff.share);
                account.stopped += stopped;
            } else {
                account.level = account.level.saturating_sub(percent(passed, tariff.share));
            }
            if account.level == 0 {
                *account = Account { since: now, ..Account::default() };
            }
        }
    }

    /// Those whose account is full.
    pub fn full(&self, tariff: Tariff) -> u64 {
        let limit = nanos(tariff.limit);
        let full = |account: &Account| account.level > 0 && account.level >= limit;
        let bits = self.accounts.iter().enumerate();
        bits.fold(0, |bits, (i, account)| bits | u64::from(full(account)) << i)
    }

    /// When to look again while somebody is charged: when the first account will be full, if
    /// nothing happens, or when this node does something by itself.
    pub fn next_timeout(&self, tariff: Tariff) -> Option<Time> {
        let full = self.full_at(tariff)?;
        Some(full.min(self.due))
    }

    /// When the first account will be full, if nothing happens.
    fn full_at(&self, tariff: Tariff) -> Option<Time> {
        let rate = u64::from(100 - tariff.share);
        let limit = nanos(tariff.limit);
        let charged = self.charged();
        let rising = self.accounts.iter().enumerate().filter(|(i, _)| charged >> i & 1 == 1);
        let highest = rising.map(|(_, account)| account.level).max().filter(|_| rate > 0)?;
        let left = limit.saturating_sub(highest).saturating_mul(100).div_ceil(rate);
        // Charges are rounded down.
        Some(self.at + Duration::from_nanos(left.saturating_add(100)))
    }

    /// The debt of this member since its account was empty last, and its allowance.
    pub fn of(&self, member: usize, now: Time, tariff: Tariff) -> Charge {
        let account = &self.accounts[member];
        let (stopped, within) = (Duration::from_nanos(account.stopped), now.since(account.since));
        Charge { stopped, within, limit: tariff.limit, share: tariff.share }
    }

    /// All accounts are empty again.
    pub fn forgive(&mut self, now: Time) {
        self.accounts.fill(Account { since: now, ..Account::default() });
    }

    pub fn check(&self, members: usize) {
        assert_eq!(self.accounts.len(), members, "an account for each member");
        assert!(members >= 64 || self.charged() >> members == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARIFF: Tariff = Tariff { limit: Duration::from_millis(500), share: 50 };

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Plays stretches of one standing each, in milliseconds.
    fn play(stretches: &[(Standing, u64)]) -> (Stalls, Time) {
        let mut stalls = Stalls::new(3, Time::ZERO);
        let mut now = Time::ZERO;
        for (standing, span) in stretches {
            stalls.note(now, TARIFF, *standing, None);
            now += ms(*span);
        }
        stalls.note(now, TARIFF, Standing::Free, None);
        (stalls, now)
    }

    /// For how long this member stopped others, and within which time.
    fn owed(stalls: &Stalls, member: usize, now: Time) -> (Duration, Duration) {
        let Charge { stopped, within, .. } = stalls.of(member, now, TARIFF);
        (stopped, within)
    }

    #[test]
    fn a_member_may_stop_the_others_for_the_limit_and_the_share_of_the_time() {
        let (stalls, now) = play(&[(Standing::Stopped(0b100), 999)]);
        assert_eq!(stalls.full(TARIFF), 0);
        assert_eq!(owed(&stalls, 2, now), (ms(999), ms(999)));
        let (stalls, _) = play(&[(Standing::Stopped(0b100), 1_000)]);
        assert_eq!(stalls.full(TARIFF), 0b100);
        // Half of the time, for as long as one likes.
        let (stalls, _) =
            play(&[(Standing::Stopped(0b010), 100), (Standing::Free, 100)].repeat(99));
        assert_eq!(stalls.full(TARIFF), 0);
        // Three quarters of it, for two seconds.
        let most = [(Standing::Stopped(0b010), 150), (Standing::Free, 50)];
        assert_eq!(play(&most.repeat(9)).0.full(TARIFF), 0);
        assert_eq!(play(&most.repeat(11)).0.full(TARIFF), 0b010);
    }

    #[test]
    fn time_in_which_others_send_neither_charges_nor_forgives() {
        let alternating = [(Standing::Stopped(0b1), 10), (Standing::Waits, 90)];
        assert_eq!(play(&alternating.repeat(99)).0.full(TARIFF), 0);
        assert_eq!(play(&alternating.repeat(101)).0.full(TARIFF), 0b1);
    }

    #[test]
    fn an_account_that_was_empty_says_since_when() {
        let long_ago = [(Standing::Stopped(0b1), 100), (Standing::Free, 900)];
        let (stalls, now) = play(&[&long_ago[..], &[(Standing::Stopped(0b1), 40)]].concat());
        assert_eq!(owed(&stalls, 0, now), (ms(40), ms(40)));
    }

    #[test]
    fn the_time_when_an_account_is_full_is_known_before() {
        let mut stalls = Stalls::new(3, Time::ZERO);
        stalls.note(Time::ZERO, TARIFF, Standing::Stopped(0b10), None);
        let at = stalls.full_at(TARIFF).unwrap();
        assert_eq!(at.since(Time::ZERO).as_millis(), 1_000);
        stalls.note(at, TARIFF, Standing::Free, None);
        assert_eq!(stalls.full(TARIFF), 0b10);
        assert_eq!(stalls.full_at(TARIFF), None, "nobody is charged");
        let never = Tariff { share: 100, ..TARIFF };
        stalls.forgive(at);
        stalls.note(at, never, Standing::Stopped(0b10), None);
        assert_eq!(stalls.full_at(never), None);
        stalls.note(at + ms(100_000), never, Standing::Free, None);
        assert_eq!(stalls.full(never), 0, "a share of 100 excludes nobody");
    }

    #[test]
    fn own_lateness_is_charged_to_nobody() {
        let mut stalls = Stalls::new(3, Time::ZERO);
        stalls.note(Time::ZERO, TARIFF, Standing::Stopped(0b10), Some(Time::ZERO + ms(2)));
        let late = Time::ZERO + ms(5_000);
        stalls.note(late, TARIFF, Standing::Stopped(0b10), None);
        assert_eq!(owed(&stalls, 1, late), (ms(2), ms(5_000)));
        stalls.excuse(late + ms(5_000));
        stalls.note(late + ms(5_001), TARIFF, Standing::Free, None);
        assert_eq!(owed(&stalls, 1, late).0, ms(3));
    }
}
