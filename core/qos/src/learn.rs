//! The cost of a thread's work, learned from what it uses (`stheno.txt`, section 3.1, which
//! leaves it for future work).
//!
//! The use of each period is recorded. In each term the runtime becomes what all but one period in
//! a thousand use, and a quarter more, if it has drifted. It grows at once when more than one
//! period in a thousand, and more than one in all, uses it up: a reserve that is used up stops its
//! thread until the next period.

use core::time::Duration;

use wire::Time;
use wire::histogram::Histogram;

/// A term has at least so many periods with work, and is at least so long.
const PERIODS: u64 = 1_000;
const TERM: Duration = Duration::from_secs(10);

/// The smallest runtime that is learned.
const LEAST: Duration = Duration::from_micros(100);

/// How long nothing more is asked for after a refusal.
const REST: Duration = Duration::from_secs(60);

/// Learns a runtime of 100 microseconds at least, and of `most` at most.
#[derive(Clone, Debug)]
pub struct Learner {
    period: Duration,
    most: Duration,
    runtime: Duration,
    term: Option<Term>,
    /// Nothing more is asked for before.
    rests_until: Time,
}

#[derive(Clone, Debug)]
struct Term {
    began: Time,
    /// The present period: when it began, and what the thread had used then.
    period: (Time, Duration),
    uses: Histogram,
    /// Periods that used the runtime up.
    overruns: u64,
}

/// Another runtime is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The runtime that was in force.
    pub from: Duration,
    /// The next one.
    pub to: Duration,
    /// Periods of this term that used up the former. 0: it has drifted.
    pub overruns: u64,
}

impl Learner {
    /// One that has learned nothing: this runtime is in force in each period.
    pub fn new(runtime: Duration, period: Duration, most: Duration) -> Learner {
        let (most, rests_until) = (most.max(runtime), Time::ZERO);
        Learner { period, most, runtime, term: None, rests_until }
    }

    /// The runtime that it has learned.
    pub fn runtime(&self) -> Duration {
        self.runtime
    }

    /// The thread has used so much processor time by now. A thread asks whenever it has work, so
    /// what it used before a sleep belongs to the period in which it began. Periods begin at such a
    /// look, and not with the kernel's: a use that spans two of those may count as an overrun, and
    /// the runtime grows rather than not.
    pub fn look(&mut self, now: Time, used: Duration) -> Option<Change> {
        let term = self.term.get_or_insert_with(|| Term {
            began: now,
            period: (now, used),
            uses: Histogram::default(),
            overruns: 0,
        });
        let (began, before) = term.period;
        if now.since(began) < self.period {
            return None;
        }
        let spent = used.saturating_sub(before).min(self.period);
        term.period = (now, used);
        term.uses.record(spent);
        term.overruns += u64::from(spent >= self.runtime);
        let (total, overruns) = (term.uses.total(), term.overruns);
        let to = |spent: Duration| (spent * 5 / 4).clamp(LEAST.min(self.most), self.most);
        let rests = now < self.rests_until;
        if spent >= self.runtime && overruns > 1 + total / PERIODS && !rests {
            return self.change(to(spent), overruns);
        }
        if total < PERIODS || now.since(term.began) < TERM {
            return None;
        }
        let learned = to(term.uses.quantile(0.999).unwrap_or_default());
        self.term = None;
        let more = learned > self.runtime * 21 / 20 && !rests;
        let drifted = more || learned < self.runtime * 3 / 4;
        if drifted { self.change(learned, 0) } else { None }
    }

    fn change(&mut self, to: Duration, overruns: u64) -> Option<Change> {
        let from = core::mem::replace(&mut self.runtime, to);
        self.term = None;
        (to != from).then_some(Change { from, to, overruns })
    }

    /// The host refuses a change: the former runtime is still in force, and nothing more is asked
    /// for in the next minute.
    pub fn refused(&mut self, now: Time, change: Change) {
        (self.runtime, self.term) = (change.from, None);
        self.rests_until = now + REST;
    }
}

#[cfg(test)]
mod tests {
    use wire::Random;

    use super::*;

    const PERIOD: Duration = Duration::from_millis(4);

    fn micros(number: u64) -> Duration {
        Duration::from_micros(number)
    }

    /// A thread that uses so much in each period; the changes.
    struct Thread {
        learner: Learner,
        now: Time,
        used: Duration,
    }

    impl Thread {
        fn new(runtime: u64, most: u64) -> Thread {
            let learner = Learner::new(micros(runtime), PERIOD, micros(most));
            Thread { learner, now: Time::ZERO + PERIOD, used: Duration::ZERO }
        }

        fn runs(&mut self, periods: u64, mut uses: impl FnMut(u64) -> u64) -> Option<Change> {
            (0..periods).find_map(|number| {
                (self.now, self.used) = (self.now + PERIOD, self.used + micros(uses(number)));
                self.learner.look(self.now, self.used)
            })
        }
    }

    #[test]
    fn a_runtime_becomes_the_use_of_all_but_one_period_in_a_thousand_and_a_quarter() {
        let mut thread = Thread::new(2_000, 3_000);
        let mut random = Random::new(1);
        let change = thread.runs(10_000, |number| match number % 2_000 {
            1_999 => 1_900,
            _ => 400 + random.below(100),
        });
        let change = change.expect("it uses less");
        assert_eq!((change.from, change.overruns), (micros(2_000), 0));
        let to = change.to.as_micros();
        assert!((600..650).contains(&to), "499 us and a quarter: {to}");
        assert_eq!(thread.runs(10_000, |_| 450), None, "a small drift changes nothing");
    }

    #[test]
    fn a_runtime_that_is_used_up_again_and_again_grows_at_once() {
        let mut thread = Thread::new(500, 3_000);
        assert_eq!(thread.runs(900, |number| if number == 500 { 800 } else { 100 }), None);
        let change = thread.runs(3, |_| 800).expect("it is used up again");
        assert_eq!((change.to, change.overruns > 1), (micros(1_000), true));
        let change = thread.runs(10, |_| 3_900).expect("and again");
        assert_eq!(change.to, micros(3_000), "the most that may be learned");
        assert_eq!(thread.runs(100, |_| 3_900), None, "there is no more");
    }

    #[test]
    fn a_refused_change_is_asked_for_again_after_a_minute() {
        let mut thread = Thread::new(500, 3_000);
        let change = thread.runs(10, |_| 800).expect("it is used up");
        thread.learner.refused(thread.now, change);
        assert_eq!(thread.learner.runtime(), micros(500));
        assert_eq!(thread.runs(14_000, |_| 800), None, "56 seconds");
        let again = thread.runs(2_000, |_| 800).expect("a minute is over");
        assert_eq!(again.to, change.to);
        thread.learner.refused(thread.now, again);
        let less = thread.runs(10_000, |_| 80).expect("less may be asked for at once");
        assert_eq!(less.to, LEAST);
    }

    #[test]
    fn a_sleep_is_no_use() {
        let mut thread = Thread::new(500, 3_000);
        assert_eq!(thread.runs(10, |_| 10), None);
        thread.now += Duration::from_secs(100);
        assert_eq!(thread.runs(10, |_| 10), None);
        assert_eq!(thread.learner.runtime(), micros(500));
    }
}
