//! When a program is started, started again, and told to end: a pure machine, with the time as an
//! argument. One for each program.
//!
//! A program is to run until it is stopped. Whenever its process ends by itself it is started again: at
//! once the first time, and after the `n`-th end in a row without a healthy time between them after
//!
//! ```text
//! min(FIRST_WAIT * 2^(n - 2), LONGEST_WAIT)
//! ```
//!
//! Attached for [`HEALTHY`] is a healthy time. From [`CRASH_LOOP`] ends in a row on it is called a crash loop,
//! and told once.

use std::collections::VecDeque;

use wire::{Duration, Time};

/// How long the second start in a row waits.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// No start waits longer.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A program that was attached for this long has not failed to start.
const HEALTHY: Duration = Duration::from_secs(10);

/// So many ends in a row are a crash loop.
const CRASH_LOOP: u32 = 5;

/// How long a program that is not attached any more may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// How long it may take after SIGTERM, before it is killed.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// How far a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its process runs, or is about to.
    Starting,
    /// It serves its replica.
    Attached { since: Time },
    /// It may not serve any more: it has until then to end, and is then told so by the next signal.
    Ending { until: Time, next: Signal },
    /// Nothing runs until then.
    BackingOff { until: Time },
    /// Nothing runs, and nothing will.
    Over,
}

/// How a process is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Start a process.
    Start,
    /// Send its process a signal.
    Signal(Signal),
    /// Tell people: it ends again and again.
    CrashLoop {
        /// How often in a row.
        ends: u32,
        /// When it is tried again.
        wait: Duration,
    },
    /// Tell people: it was in a crash loop, and has been healthy now.
    Recovered,
    /// Forget the program.
    Over,
}

/// How a program stands, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its process runs and has not attached yet.
    Starting,
    /// It serves.
    Attached,
    /// It waits for its next start.
    BackingOff(Time),
    /// It is on its way out, or will be started anew when it has ended.
    Stopping,
}

#[derive(Debug)]
pub(super) struct Minder {
    state: State,
    /// It is not to be started again.
    stopped: bool,
    /// Ends in a row.
    ends: u32,
    starts: u64,
    outputs: VecDeque<Output>,
}

impl Minder {
    /// Of a program that is to run from now on.
    pub fn new() -> Minder {
        let mut minder = Minder {
            state: State::Over,
            stopped: false,
            ends: 0,
            starts: 0,
            outputs: VecDeque::new(),
        };
        minder.start();
        minder
    }

    fn start(&mut self) {
        self.starts += 1;
        self.state = State::Starting;
        self.outputs.push_back(Output::Start);
    }

    /// Its process has attached.
    pub fn attached(&mut self, now: Time) {
        if self.state == State::Starting {
            self.state = State::Attached { since: now };
        }
    }

    /// It is not attached any more: its process is expected to end.
    pub fn detached(&mut self, now: Time) {
        if let State::Starting | State::Attached { .. } = self.state {
            self.settle(now);
            self.state = State::Ending { until: now + GRACE, next: Signal::Term };
        }
    }

    /// Its process has ended, or could not be started.
    pub fn ended(&mut self, now: Time) {
        if let State::BackingOff { .. } | State::Over = self.state {
            return;
        }
        // That it was well is no news any more.
        if self.is_healthy(now) {
            self.ends = 0;
        }
        if self.stopped {
            return self.over();
        }
        self.ends += 1;
        let wait = wait(self.ends);
        if self.ends == CRASH_LOOP {
            self.outputs.push_back(Output::CrashLoop { ends: self.ends, wait });
        }
        self.state = State::BackingOff { until: now + wait };
        if wait == Duration::ZERO {
            self.start();
        }
    }

    /// It is to end, and not to be started again. Where `gently`, it has some time to leave its group.
    pub fn stop(&mut self, now: Time, gently: bool) {
        self.stopped = true;
        match self.state {
            State::BackingOff { .. } | State::Over => self.over(),
            State::Attached { .. } if gently => {
                self.state = State::Ending { until: now + GRACE, next: Signal::Term };
            }
            State::Starting | State::Attached { .. } => self.signal(now, Signal::Term),
            State::Ending { .. } => {}
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Time) {
        match self.state {
            State::BackingOff { until } if until <= now => self.start(),
            State::Ending { until, next } if until <= now => self.signal(now, next),
            _ => self.settle(now),
        }
    }

    /// When [`handle_timeout`](Minder::handle_timeout) is due.
    pub fn next_timeout(&self) -> Time {
        match self.state {
            State::Attached { since } if self.ends > 0 => since + HEALTHY,
            State::Ending { until, .. } | State::BackingOff { until } => until,
            State::Starting | State::Attached { .. } | State::Over => Time::FAR,
        }
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub fn standing(&self) -> Standing {
        match self.state {
            _ if self.stopped => Standing::Stopping,
            State::Starting => Standing::Starting,
            State::Attached { .. } => Standing::Attached,
            State::BackingOff { until } => Standing::BackingOff(until),
            State::Ending { .. } | State::Over => Standing::Stopping,
        }
    }

    /// Starts after the first one.
    pub fn restarts(&self) -> u64 {
        self.starts - 1
    }

    /// Ends in a row, without a healthy time between them.
    pub fn ends(&self) -> u32 {
        self.ends
    }

    /// Counts a healthy time.
    fn settle(&mut self, now: Time) {
        if self.is_healthy(now) {
            if self.ends >= CRASH_LOOP {
                self.outputs.push_back(Output::Recovered);
            }
            self.ends = 0;
        }
    }

    fn is_healthy(&self, now: Time) -> bool {
        matches!(self.state, State::Attached { since } if now >= since + HEALTHY)
    }

    fn signal(&mut self, now: Time, signal: Signal) {
        self.outputs.push_back(Output::Signal(signal));
        // A killed process may take a while to be gone; once more does no harm.
        self.state = State::Ending { until: now + PATIENCE, next: Signal::Kill };
    }

    fn over(&mut self) {
        if self.state != State::Over {
            self.state = State::Over;
            self.outputs.push_back(Output::Over);
        }
    }
}

/// How long the start after the `ends`-th end in a row waits.
fn wait(ends: u32) -> Duration {
    match ends.checked_sub(2) {
        None => Duration::ZERO,
        // Doubled more often than this it is over the longest in any case.
        Some(doublings) => (FIRST_WAIT * 2u32.pow(doublings.min(16))).min(LONGEST_WAIT),
    }
}

#[cfg(test)]
mod tests {
    use wire::Random;

    use super::*;

    const fn ms(millis: u64) -> Time {
        Time(millis * 1_000_000)
    }

    fn outputs(minder: &mut Minder) -> Vec<Output> {
        std::iter::from_fn(|| minder.poll_output()).collect()
    }

    #[test]
    fn who_ends_for_the_first_time_is_started_at_once_and_then_ever_later() {
        let mut minder = Minder::new();
        assert_eq!(outputs(&mut minder), [Output::Start]);
        let (mut now, mut waits) = (ms(1), Vec::new());
        for _ in 0..12 {
            minder.ended(now);
            let begun = now;
            if let Standing::BackingOff(until) = minder.standing() {
                now = until;
                minder.handle_timeout(now);
            }
            waits.push(now.since(begun).as_millis() as u64);
            assert_eq!(minder.standing(), Standing::Starting);
        }
        let expected = [0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000];
        assert_eq!(waits, expected);
        assert_eq!(minder.restarts(), 12);
        let told = outputs(&mut minder);
        let told: Vec<_> = told.iter().filter(|output| **output != Output::Start).collect();
        let wait = Duration::from_millis(800);
        assert_eq!(told, [&Output::CrashLoop { ends: 5, wait }], "it is told once");
    }

    #[test]
    fn a_healthy_time_makes_good_for_all_that_was_before() {
        let mut minder = Minder::new();
        for _ in 0..CRASH_LOOP {
            minder.ended(ms(0));
            minder.handle_timeout(minder.next_timeout());
        }
        outputs(&mut minder);
        minder.attached(ms(20_000));
        assert_eq!(minder.next_timeout(), ms(30_000));
        minder.handle_timeout(ms(29_999));
        assert_eq!(outputs(&mut minder), []);
        minder.handle_timeout(ms(30_000));
        assert_eq!(outputs(&mut minder), [Output::Recovered]);
        minder.detached(ms(40_000));
        minder.ended(ms(40_001));
        assert_eq!(outputs(&mut minder), [Output::Start], "at once, as the first time");
    }

    #[test]
    fn who_does_not_end_is_told_to_and_then_made_to() {
        let mut minder = Minder::new();
        minder.attached(ms(0));
        minder.stop(ms(10), true);
        outputs(&mut minder);
        let mut told = Vec::new();
        while told.len() < 3 {
            let due = minder.next_timeout();
            minder.handle_timeout(due);
            told.extend(outputs(&mut minder).into_iter().map(|output| (due, output)));
        }
        assert_eq!(
            told,
            [
                (ms(2_010), Output::Signal(Signal::Term)),
                (ms(7_010), Output::Signal(Signal::Kill)),
                (ms(12_010), Output::Signal(Signal::Kill)),
            ]
        );
        minder.ended(ms(12_020));
        assert_eq!(outputs(&mut minder), [Output::Over]);
        assert_eq!(minder.next_timeout(), Time::FAR);
    }

    #[test]
    fn who_was_turned_away_has_to_end_before_it_is_started_again() {
        let mut minder = Minder::new();
        outputs(&mut minder);
        minder.detached(ms(5));
        assert_eq!(outputs(&mut minder), [], "it may end by itself");
        minder.ended(ms(6));
        assert_eq!(outputs(&mut minder), [Output::Start]);
    }

    #[test]
    fn who_waits_for_its_start_is_stopped_at_once() {
        let mut minder = Minder::new();
        minder.ended(ms(0));
        minder.ended(ms(0));
        outputs(&mut minder);
        minder.stop(ms(1), true);
        assert_eq!(outputs(&mut minder), [Output::Over]);
    }

    /// What must hold whatever happens, in whatever order: checked over drawn histories.
    #[derive(Default)]
    struct Checker {
        /// Processes that run.
        running: u32,
        stopped: bool,
        over: bool,
        /// Ends of processes since one was attached for long enough.
        ends: u32,
        ended_at: Option<Time>,
    }

    impl Checker {
        fn check(&mut self, now: Time, output: Output) {
            assert!(!self.over, "{output:?} of a program that is forgotten");
            match output {
                Output::Start => {
                    assert!(!self.stopped, "a stopped program is started");
                    assert_eq!(self.running, 0, "two processes of one program");
                    if let Some(ended) = self.ended_at {
                        assert!(
                            now.since(ended) >= wait(self.ends),
                            "too early: end {}",
                            self.ends
                        );
                    }
                    self.running = 1;
                }
                Output::Signal(_) => assert_eq!(self.running, 1, "a signal to nobody"),
                Output::CrashLoop { ends, .. } => assert_eq!(ends, self.ends),
                Output::Recovered => assert_eq!(self.running, 1),
                Output::Over => {
                    assert!(self.stopped && self.running == 0, "forgotten while it runs");
                    self.over = true;
                }
            }
        }
    }

    fn history(seed: u64) -> u64 {
        let mut random = Random::new(seed);
        let (mut minder, mut checker) = (Minder::new(), Checker::default());
        let (mut now, mut attached_at) = (ms(1), None);
        while let Some(output) = minder.poll_output() {
            checker.check(now, output);
        }
        for _ in 0..200 {
            let due = minder.next_timeout();
            let step = Duration::from_millis(random.below(12_000));
            now = if random.below(3) == 0 && due != Time::FAR { due.max(now) } else { now + step };
            match random.below(12) {
                0..=3 if checker.running == 1 => {
                    if attached_at.take().is_some_and(|at: Time| now >= at + HEALTHY) {
                        checker.ends = 0;
                    }
                    checker.running = 0;
                    checker.ends += 1;
                    checker.ended_at = Some(now);
                    minder.ended(now);
                }
                4..=6 if minder.standing() == Standing::Starting && checker.running == 1 => {
                    attached_at = Some(now);
                    minder.attached(now);
                }
                7 => {
                    if attached_at.take().is_some_and(|at| now >= at + HEALTHY) {
                        checker.ends = 0;
                    }
                    minder.detached(now);
                }
                8 if random.below(20) == 0 => {
                    checker.stopped = true;
                    minder.stop(now, random.below(2) == 0);
                }
                _ => {}
            }
            if minder.next_timeout() <= now {
                minder.handle_timeout(now);
            }
            while let Some(output) = minder.poll_output() {
                checker.check(now, output);
            }
            assert!(minder.next_timeout() > now, "what is due is done");
        }
        minder.restarts()
    }

    #[test]
    fn no_history_starts_two_processes_or_one_too_early_or_after_a_stop() {
        let restarts: u64 = (0..2_000).map(history).sum();
        assert!(restarts > 10_000, "the histories have something to check: {restarts}");
    }
}
