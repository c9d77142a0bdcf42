//! One start of a rank, beside the machine's part of it.

use std::fs::File;

use job::{End, Moments, Progress, Task};
use memlog::Bell;
use os::clock::{monotonic, wall_clock};
use rustix::process::Pid;
use wire::Time;
use wire::rank::{Frame, Snapshot, Step, TOKEN};

use super::stall::Stall;
use crate::images::Restored;
use crate::link::Link;

/// A rank's start, beside what the machine has of it.
pub(super) struct Rank {
    pub token: [u8; TOKEN],
    pub task: Option<Task>,
    pub pid: Option<Pid>,
    pub link: Option<Link>,
    /// Wakes it, where it waits for messages.
    pub bell: Option<Bell>,
    /// The state that it goes on from, while it was not handed over; and it is still being read.
    pub state: Option<Restored>,
    pub reads: bool,
    /// Other agents have yet to say what its earlier starts have chosen.
    pub asks: bool,
    /// The last snapshot, until the machine has it written.
    pub snapshot: Option<(Snapshot, File)>,
    /// When it came, and how far the rank was.
    pub snapped: Time,
    pub step: u64,
    pub moments: Moments,
    pub progress: Progress,
    /// Since when its rate is measured, and from which turn on.
    pub measured: (Time, u64),
    pub changed: bool,
    /// It was let in once.
    pub welcomed: bool,
    /// A checkpoint was wished for before it was here to hear of it.
    pub owes_save: bool,
    /// It has said that it cannot go on from what it and others did.
    pub diverged: Option<End>,
    /// It was told that the book knows of its end: when it is ended by force.
    pub ends_by: Option<Time>,
    pub stall: Stall,
}

impl Rank {
    pub fn new(token: [u8; TOKEN], pid: Option<Pid>, task: Option<Task>) -> Rank {
        Rank {
            token,
            task,
            pid,
            link: None,
            bell: None,
            state: None,
            reads: false,
            asks: false,
            snapshot: None,
            snapped: Time::ZERO,
            step: 0,
            moments: Moments::default(),
            progress: Progress::default(),
            measured: (Time::ZERO, 0),
            changed: false,
            welcomed: false,
            owes_save: false,
            diverged: None,
            ends_by: None,
            stall: Stall::default(),
        }
    }

    pub fn tell(&self, frame: &Frame) {
        self.tell_with(frame, None);
    }

    /// Nothing but a farewell comes before its welcome.
    pub fn tell_with(&self, frame: &Frame, file: Option<&File>) {
        let farewell = matches!(frame, Frame::Farewell(_));
        if let Some(link) = self.link.as_ref().filter(|_| self.welcomed || farewell) {
            link.tell(frame, file);
            self.bell.iter().for_each(Bell::ring);
        }
    }

    /// It is to save at its next safe point, now or as soon as it is let in.
    pub fn wish_for_save(&mut self) {
        match &self.link {
            Some(_) if self.welcomed => self.tell(&Frame::Save),
            _ => self.owes_save = true,
        }
    }

    /// It was let in, and has reached no safe point for longer than it may.
    pub fn stands_still(&self, now: Time) -> bool {
        self.welcomed && self.link.is_some() && self.stall.is_over(now)
    }

    /// The rank is so far. True: this is the first that is heard of it.
    pub fn heard(&mut self, step: Step) -> bool {
        let now = monotonic();
        let (since, from) = self.measured;
        let span = now.since(since).as_micros();
        if since == Time::ZERO || step.step < from {
            self.measured = (now, step.step);
        } else if span >= 1_000_000 {
            let turns = u128::from(step.step - from);
            self.progress.rate = u64::try_from(turns * 1_000_000_000 / span).unwrap_or(u64::MAX);
            self.measured = (now, step.step);
        }
        // It says so at safe points alone.
        self.stall.reached(now);
        self.changed |= self.progress.step != step;
        self.progress.step = step;
        let first = self.moments.computes == Time::ZERO;
        if first {
            self.moments.computes = wall();
        }
        first
    }
}

/// The wall clock: people compare its times.
pub(super) fn wall() -> Time {
    Time(wall_clock())
}
