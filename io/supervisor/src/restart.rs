//! When a program is started, started again, and told to end: a pure machine, with the time as an
//! argument. One for each program.
//!
//! A program is to run until it is stopped. Whenever its process ends by itself it is started
//! again: at once the first time, and after the `n`-th end in a row without a healthy time between
//! them after
//!
//! ```text
//! min(FIRST_WAIT * 2^(n - 2), LONGEST_WAIT)
//! ```
//!
//! Attached for [`HEALTHY`] is a healthy time, and so is one in which it has answered a call, or
//! taken an update: what ends it may be one request. From [`CRASH_LOOP`] ends in a row on it is
//! called a crash loop, and told once.

use std::collections::VecDeque;

use wire::{Duration, Time};

/// How long the second start in a row waits.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// No start waits longer.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A program that was attached for this long has not failed to start.
const HEALTHY: Duration = Duration::from_secs(10);

/// So many ends in a row are a crash loop.
pub const CRASH_LOOP: u32 = 5;

/// How long a program that is not attached any more may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// How long it may take after SIGTERM, before it is killed.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// How far a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing runs until it is wanted.
    Standby,
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
pub(crate) enum Signal {
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
}

/// An action to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Have the replica hosted, and start nothing yet.
    Stand,
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
pub(crate) enum Standing {
    /// It is started when its replica's service is to run.
    Standby,
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
pub(crate) struct RestartPolicy {
    state: State,
    /// Its replica is hosted without it, and has it started when its service is to run.
    on_demand: bool,
    /// It is on its way out because it is not needed any more: its end is no failure.
    released: bool,
    /// It is needed.
    wanted: bool,
    /// It is not to be started again.
    stopped: bool,
    /// The present start has answered a call, or taken what a passive group's primary has changed.
    served: bool,
    /// Ends in a row.
    ends: u32,
    starts: u64,
    outputs: VecDeque<Output>,
}

impl RestartPolicy {
    /// The policy of a program that is to run from now on, or `on_demand`.
    pub fn new(on_demand: bool) -> RestartPolicy {
        let mut policy = RestartPolicy {
            state: State::Over,
            on_demand,
            released: false,
            wanted: false,
            stopped: false,
            served: false,
            ends: 0,
            starts: 0,
            outputs: VecDeque::new(),
        };
        policy.begin();
        policy
    }

    /// It is to end, and not to be started again.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub fn is_on_demand(&self) -> bool {
        self.on_demand
    }

    /// It is started, or its replica stands by.
    fn begin(&mut self) {
        if self.on_demand {
            self.wanted = false;
            self.state = State::Standby;
            self.outputs.push_back(Output::Stand);
        } else {
            self.start();
        }
    }

    /// Its replica's service is to run.
    pub fn wanted(&mut self) {
        self.wanted = true;
        if self.state == State::Standby {
            self.start();
        }
    }

    /// Its replica's service is to run no more: it has some time to end.
    pub fn released(&mut self, now: Time) {
        self.wanted = false;
        self.on_demand = true;
        if let State::Starting | State::Attached { .. } = self.state {
            self.settle(now);
            self.released = true;
            self.state = State::Ending { until: now + GRACE, next: Signal::Term };
        }
    }

    fn start(&mut self) {
        self.starts += 1;
        self.served = false;
        self.state = State::Starting;
        self.outputs.push_back(Output::Start);
    }

    /// Its process has attached.
    pub fn attached(&mut self, now: Time) {
        if self.state == State::Starting {
            self.state = State::Attached { since: now };
        }
    }

    /// It has answered a call.
    pub fn served(&mut self) {
        self.served = true;
    }

    /// It is not attached any more: its process is expected to end.
    pub fn detached(&mut self, now: Time) {
        if let State::Starting | State::Attached { .. } = self.state {
            self.settle(now);
            self.state = State::Ending { until: now + GRACE, next: Signal::Term };
        }
    }

    /// It is hung: that it would end by itself is not waited for.
    pub fn hung(&mut self, now: Time) {
        if let State::Starting | State::Attached { .. } = self.state {
            self.settle(now);
            self.signal(now, Signal::Term);
        }
    }

    /// Its process has ended, or could not be started.
    pub fn ended(&mut self, now: Time) {
        if let State::Standby | State::BackingOff { .. } | State::Over = self.state {
            return;
        }
        // That it was well is no news any more.
        if self.is_healthy(now) || self.served {
            self.ends = 0;
        }
        if self.stopped {
            return self.over();
        }
        if std::mem::take(&mut self.released) {
            self.state = State::Standby;
            if self.wanted {
                self.start();
            }
            return;
        }
        self.ends += 1;
        let wait = wait(self.ends);
        if self.ends == CRASH_LOOP {
            self.outputs.push_back(Output::CrashLoop { ends: self.ends, wait });
        }
        self.state = State::BackingOff { until: now + wait };
        if wait == Duration::ZERO {
            self.begin();
        }
    }

    /// It is to end, and not to be started again. Where `gently`, it has some time to leave its
    /// group.
    pub fn stop(&mut self, now: Time, gently: bool) {
        self.stopped = true;
        match self.state {
            State::Standby | State::BackingOff { .. } | State::Over => self.over(),
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
            State::BackingOff { until } if until <= now => self.begin(),
            State::Ending { until, next } if until <= now => self.signal(now, next),
            _ => self.settle(now),
        }
    }

    /// When [`handle_timeout`](RestartPolicy::handle_timeout) is due.
    pub fn next_timeout(&self) -> Time {
        match self.state {
            State::Attached { since } if self.ends > 0 => since + HEALTHY,
            State::Ending { until, .. } | State::BackingOff { until } => until,
            State::Standby | State::Starting | State::Attached { .. } | State::Over => Time::FAR,
        }
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub fn standing(&self) -> Standing {
        match self.state {
            _ if self.stopped => Standing::Stopping,
            State::Standby => Standing::Standby,
            State::Starting => Standing::Starting,
            State::Attached { .. } => Standing::Attached,
            State::BackingOff { until } => Standing::BackingOff(until),
            State::Ending { .. } | State::Over => Standing::Stopping,
        }
    }

    /// Starts after the first one.
    pub fn restarts(&self) -> u64 {
        self.starts.saturating_sub(1)
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
        self.state = State::Ending { until: now + TIMEOUT, next: Signal::Kill };
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
mod tests;
