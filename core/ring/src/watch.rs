//! The signs of life of a node's ring, and how long the ring may show none.
//!
//! The time-out follows what is measured, as TCP's does (RFC 6298: mean and deviation), and
//! remembers the longest wait of the last seconds, because a host that was held up once is held up
//! again. See docs/protocol/ring.md, "Failure detection".

use alloc::vec;
use alloc::vec::Vec;

use wire::{Duration, Time};

use crate::Timing;

/// How long this node has had to wait for signs of life.
///
/// One sample per `heartbeat` in which there was a sign: the longest wait within it. A busy ring
/// shows thousands of signs in that time; were each a sample, a quiet second would wipe out what is
/// known of a bad one.
#[derive(Clone, Debug, Default)]
pub(crate) struct AdaptiveTimeout {
    /// The smoothed mean of the samples, in nanoseconds.
    mean: u64,
    /// The smoothed deviation of the samples from their mean.
    deviation: u64,
    /// The longest wait; older ones fade.
    longest: u64,
    /// The longest wait of the period that is under way, and its end.
    worst: u64,
    ends_at: Time,
}

/// A longest wait fades by this fraction per period: to a third in 20 seconds of 20 ms periods.
const FADE: u64 = 1024;

impl AdaptiveTimeout {
    /// A sign of life came this much later than it could have.
    pub fn waited(&mut self, now: Time, span: Duration, timing: &Timing) {
        if span > timing.ceiling() {
            return; // An outage, which no time-out is to cover.
        }
        let span = nanos(span);
        if now >= self.ends_at {
            let periods = 1 + nanos(now.since(self.ends_at)) / nanos(timing.heartbeat).max(1);
            self.close(periods);
            self.ends_at = now + timing.heartbeat;
        }
        self.worst = self.worst.max(span);
        self.longest = self.longest.max(span);
    }

    /// So many periods are over, of which only the first had signs: what is remembered fades with
    /// time, not with the signs that an idle ring shows more rarely.
    fn close(&mut self, periods: u64) {
        let sample = self.worst;
        self.worst = 0;
        if self.mean == 0 {
            self.mean = sample;
            self.deviation = sample / 2;
            return;
        }
        let off = self.mean.abs_diff(sample);
        self.deviation = self.deviation - self.deviation / 4 + off / 4;
        self.mean = self.mean - self.mean / 8 + sample / 8;
        self.longest -= self.longest / FADE * periods.min(FADE / 8);
    }

    /// How long a member may leave the token, or the ring its heartbeat, unanswered.
    pub fn span(&self, timing: &Timing) -> Duration {
        let measured = (self.mean + 4 * self.deviation).max(2 * self.longest);
        Duration::from_nanos(measured).clamp(timing.token_timeout, timing.ceiling())
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Signs of life of one ring.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// When the token was last seen to be alive.
    pub evidence: Time,
    /// Index of the member that had the token when it was seen last, or to which this node
    /// passed it: whom to suspect when it is lost.
    pub holder: usize,
    /// The holder has said that nothing need be seen of it before.
    quiet_until: Time,
    /// For each member, since when it owes this node an answer.
    owes: Vec<Option<Time>>,
    /// Members that are to be visited by the token because they owe an answer.
    demanded: u64,
    pub timeout: AdaptiveTimeout,
}

impl Watch {
    pub fn new(members: usize, mine: usize, now: Time) -> Self {
        Watch {
            evidence: now,
            holder: mine,
            quiet_until: Time::ZERO,
            owes: vec![None; members],
            demanded: 0,
            timeout: AdaptiveTimeout::default(),
        }
    }

    /// The token is alive at `holder`. A wait of this node for it is over: for the receipt of its
    /// own pass (`passed`), or for a sign that was due at the next heartbeat at the latest.
    pub fn seen(&mut self, now: Time, timing: &Timing, holder: usize, passed: bool) {
        let waited = now.since(self.due_at(timing, passed));
        self.timeout.waited(now, waited, timing);
        self.evidence = now;
        self.holder = holder;
    }

    /// The token rests at `holder`, who need not show itself before `until`.
    pub fn quiet(&mut self, holder: usize, until: Time) {
        self.holder = holder;
        self.quiet_until = until;
    }

    /// Something has been sent since the token came to rest, or it is asked for: its holder shows
    /// itself every heartbeat again.
    pub fn stirred(&mut self, now: Time) {
        self.quiet_until = self.quiet_until.min(now);
    }

    fn due_at(&self, timing: &Timing, passed: bool) -> Time {
        if passed {
            return self.evidence;
        }
        self.quiet_until.max(self.evidence + timing.heartbeat)
    }

    /// When the ring is given up if nothing more is seen of the token.
    pub fn loss_at(&self, timing: &Timing, passed: bool) -> Time {
        self.due_at(timing, passed) + self.timeout.span(timing)
    }

    /// This node was held up itself: it has sent nothing that could have been answered. Half a
    /// period more, in which it asks again.
    pub fn was_held_up(&mut self, now: Time, late: Duration, timing: &Timing) {
        self.timeout.waited(now, late, timing);
        let half = self.timeout.span(timing) / 2;
        self.evidence = self.evidence.max(Time(now.0.saturating_sub(nanos(half))));
    }

    /// These members have been asked for an answer.
    pub fn ask(&mut self, now: Time, members: u64) {
        for (i, since) in self.owes.iter_mut().enumerate() {
            if members >> i & 1 == 1 {
                since.get_or_insert(now);
            }
        }
    }

    /// This member has answered.
    pub fn answered(&mut self, member: usize) {
        self.owes[member] = None;
        self.demanded &= !(1 << member);
    }

    /// Members that have owed an answer for longer than a heartbeat. The token has to visit them,
    /// or those who want it could pass it to and fro past a dead one.
    pub fn overdue(&mut self, now: Time, timing: &Timing) -> u64 {
        let late = |since: &Option<Time>| since.is_some_and(|at| now >= at + timing.heartbeat);
        let bits = self.owes.iter().enumerate();
        let bits = bits.fold(0, |bits, (i, since)| bits | u64::from(late(since)) << i);
        self.demanded |= bits;
        bits
    }

    /// The token is here, and has still to visit `wants`. The other members that it had to visit
    /// live.
    pub fn visited(&mut self, wants: u64) {
        for (i, since) in self.owes.iter_mut().enumerate() {
            if self.demanded & !wants & 1 << i != 0 {
                *since = None;
            }
        }
        self.demanded &= wants;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(spans_ms: &[u64], timing: &Timing) -> Duration {
        let mut timeout = AdaptiveTimeout::default();
        let mut now = Time::ZERO;
        for span in spans_ms {
            now += timing.heartbeat;
            timeout.waited(now, Duration::from_millis(*span), timing);
        }
        timeout.waited(now + timing.heartbeat, Duration::ZERO, timing);
        timeout.span(timing)
    }

    #[test]
    fn the_time_out_follows_what_is_measured_between_its_bounds() {
        let timing = Timing::default();
        assert_eq!(after(&[], &timing), timing.token_timeout);
        assert_eq!(after(&[1; 100], &timing), timing.token_timeout, "the floor");
        assert_eq!(after(&[150; 3], &timing), timing.token_timeout_max, "the ceiling");
        assert_eq!(after(&[5_000; 3], &timing), timing.token_timeout, "an outage is no measure");
        let once = after(&[&[1; 100][..], &[40], &[1; 50]].concat(), &timing);
        assert!(once > Duration::from_millis(70), "what happened once happens again: {once:?}");
        let later = after(&[&[40][..], &[1; 3_000]].concat(), &timing);
        assert_eq!(later, timing.token_timeout, "it is forgotten in a minute");
        let spread = after(&[10, 40].repeat(50), &timing);
        assert!(spread >= Duration::from_millis(80), "{spread:?}");
    }

    #[test]
    fn who_owes_an_answer_is_visited_and_then_owes_none() {
        let timing = Timing::default();
        let mut watch = Watch::new(3, 0, Time::ZERO);
        watch.ask(Time::ZERO, 0b110);
        watch.answered(1);
        let due = Time::ZERO + timing.heartbeat;
        assert_eq!(watch.overdue(Time(due.0 - 1), &timing), 0);
        assert_eq!(watch.overdue(due, &timing), 0b100);
        watch.visited(0b100);
        assert_eq!(watch.overdue(due, &timing), 0b100, "not yet");
        watch.visited(0);
        assert_eq!(watch.overdue(due, &timing), 0);
    }
}
