//! A sender of a benchmark: when it sends, and what it measures of its own messages.

use alloc::collections::VecDeque;

use bytes::Bytes;
use wire::bench::{Load, Measured, Pacing, Plan, Until};
use wire::histogram::Histogram;
use wire::limits::{MAX_BENCH_BACKLOG, MAX_BENCH_MEASURED, MAX_BENCH_WINDOW};
use wire::{Duration, Time};

/// A message of which something is still to be measured.
#[derive(Clone, Debug)]
struct Flight {
    /// When it was handed in.
    at: Time,
    /// How much this node had handed in then, this included.
    count: u64,
    /// Its place in the order, once it is delivered here.
    sequence: u64,
}

/// One sender. Its messages are numbered from 0, and what happens to them happens in that order:
/// each counter below says how many have come so far.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    id: u32,
    place: u16,
    size: usize,
    count: u64,
    warm: u64,
    pacing: Pacing,
    until: Until,
    /// No message is begun from here on.
    ends: Time,
    /// Where a pace is set: when the next message is due.
    due: Time,
    /// Messages that may be handed in before the node's loop must come round: it has other work.
    budget: u32,
    sent: u64,
    left: u64,
    own: u64,
    held: u64,
    answered: u64,
    /// Everybody has everything up to here.
    all: u64,
    /// The messages from `sent - flights.len()` on.
    flights: VecDeque<Flight>,
    times: Times,
}

/// How long its messages took to come so far, and how late they began.
#[derive(Clone, Debug, Default)]
struct Times {
    send: Histogram,
    own: Histogram,
    all: Histogram,
    echo: Histogram,
    late: Duration,
}

impl Times {
    fn measured(&self) -> Measured {
        Measured {
            send: self.send.times(),
            own: self.own.times(),
            all: self.all.times(),
            echo: self.echo.times(),
            late: self.late,
        }
    }
}

impl Sending {
    pub fn new(now: Time, plan: &Plan, place: u16) -> Sending {
        Sending {
            id: plan.id,
            place,
            size: plan.size as usize,
            count: plan.count,
            warm: plan.warm,
            pacing: plan.pacing,
            until: plan.until,
            ends: now + plan.span,
            due: now,
            budget: MAX_BENCH_WINDOW,
            sent: 0,
            left: 0,
            own: 0,
            held: 0,
            answered: 0,
            all: 0,
            flights: VecDeque::new(),
            times: Times::default(),
        }
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn new_turn(&mut self) {
        self.budget = MAX_BENCH_WINDOW;
    }

    /// It sends no more.
    pub fn is_over(&self, now: Time) -> bool {
        self.sent == self.count || now >= self.ends
    }

    /// Nothing more is to be measured.
    pub fn has_measured(&self) -> bool {
        self.flights.is_empty()
    }

    /// A message may be begun, as far as those before it are concerned.
    fn has_room(&self) -> bool {
        let complete = match self.until {
            Until::Own => self.own,
            Until::All => self.held,
            Until::Echo => self.answered,
        };
        let in_window = match self.pacing {
            Pacing::Window(window) => self.sent - complete < u64::from(window),
            // The token may be away for a while, but a ring that is slower than the pace is not to
            // be loaded for long after.
            Pacing::Every(_) => {
                let waiting = self.sent - self.left;
                let bytes = waiting.saturating_mul(self.size as u64);
                waiting < u64::from(MAX_BENCH_WINDOW) && (waiting == 0 || bytes < MAX_BENCH_BACKLOG)
            }
        };
        self.sent < self.count && in_window && self.flights.len() < MAX_BENCH_MEASURED
    }

    fn is_due(&self, now: Time) -> bool {
        matches!(self.pacing, Pacing::Window(_)) || self.due <= now
    }

    pub fn next(&self, now: Time) -> Option<Bytes> {
        let may = self.has_room() && self.is_due(now) && self.budget > 0 && now < self.ends;
        may.then(|| Load::message(self.id, self.place, self.sent, self.size))
    }

    pub fn handed(&mut self, now: Time, count: u64) {
        if let Pacing::Every(pause) = self.pacing {
            self.times.late = self.times.late.max(now.since(self.due));
            self.due += pause;
        }
        self.budget -= 1;
        self.sent += 1;
        self.flights.push_back(Flight { at: now, count, sequence: u64::MAX });
    }

    pub fn next_timeout(&self) -> Option<Time> {
        if self.sent == self.count {
            return None;
        }
        let next = match self.pacing {
            _ if !self.has_room() => self.ends,
            // The loop comes round at once: it waits only for whatever else is ready.
            Pacing::Window(_) => Time::ZERO,
            Pacing::Every(_) => self.due,
        };
        Some(next.min(self.ends))
    }

    /// The flight of a message, by its number.
    fn flight(&mut self, number: u64) -> Option<&mut Flight> {
        let first = self.sent - self.flights.len() as u64;
        self.flights.get_mut(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// How long a message has been under way, if that counts.
    fn age(&mut self, now: Time, number: u64) -> Option<Duration> {
        let warm = self.warm;
        let flight = self.flight(number)?;
        (number >= warm).then(|| now.since(flight.at))
    }

    pub fn left(&mut self, now: Time, upto: u64) {
        while self.left < self.sent {
            let number = self.left;
            if self.flight(number).is_some_and(|flight| flight.count > upto) {
                return;
            }
            self.has_left(now);
        }
    }

    fn has_left(&mut self, now: Time) {
        if let Some(age) = self.age(now, self.left) {
            self.times.send.record(age);
        }
        self.left += 1;
    }

    pub fn delivered(&mut self, now: Time, number: u64, sequence: u64) {
        if number != self.own {
            return; // counted as disordered; what follows is not measured
        }
        if self.left <= number {
            self.has_left(now);
        }
        if let Some(age) = self.age(now, number) {
            self.times.own.record(age);
        }
        if let Some(flight) = self.flight(number) {
            flight.sequence = sequence;
        }
        self.own += 1;
        // A safe message is held by all before it is delivered here.
        self.held(now, self.all);
    }

    pub fn held(&mut self, now: Time, all: u64) {
        self.all = self.all.max(all);
        while self.held < self.own {
            let number = self.held;
            if self.flight(number).is_some_and(|flight| flight.sequence > all) {
                break;
            }
            if let Some(age) = self.age(now, number) {
                self.times.all.record(age);
            }
            self.held += 1;
        }
        self.forget();
    }

    pub fn answered(&mut self, now: Time, number: u64) {
        if number != self.answered || number >= self.own {
            return;
        }
        if let Some(age) = self.age(now, number) {
            self.times.echo.record(age);
        }
        self.answered += 1;
        self.forget();
    }

    /// Lets go of what is wholly measured.
    fn forget(&mut self) {
        let echo = if self.until == Until::Echo { self.answered } else { u64::MAX };
        let complete = self.held.min(self.own).min(echo);
        while self.sent - (self.flights.len() as u64) < complete {
            self.flights.pop_front();
        }
    }

    pub fn measured(&self) -> Measured {
        self.times.measured()
    }
}
