//! The world of one store and its disk.
//!
//! Records and snapshots come and go, the disk fails in every way that it may ([`crate::disk`]),
//! the process dies, the host loses power, the store is closed and opened again. After each opening
//! what comes back is compared with a list ([`crate::oracle::log`]).

mod customer;
mod life;
mod options;

use store::{Config, FailureKind, Lane, Op, OpenError, Output, Store};
use wire::{Duration, Time};

use crate::check::{Verdict, demand};
use crate::disk::{Disk, Rot};
use crate::draw::Draw;
use crate::oracle::log::Log;
use crate::run::{Outcome, Plant, Summary};
use crate::trace::Trace;
use options::Options;

const PROPERTY: &str = "durable";

/// Everything that reaches a healthy disk is on it within this time.
const WITHIN: Duration = Duration::from_secs(20);

/// Bytes of a disk with room for everything.
const ROOM: usize = 64 << 20;

/// Records of one seed.
const RECORDS: u64 = 1_500;

/// When something ends, what it is, and whether it began well.
type UnderWay = (Time, Op, Result<(), store::Failure>);

/// The damage to a file while nobody used it.
#[derive(Clone, Debug)]
enum Harm {
    /// A bit changed by itself.
    Rot(Rot),
    /// Somebody brought an older manifest back from a copy; this is the one that was there.
    OldManifest(Vec<u8>),
}

/// One life of the store.
struct Life {
    store: Store,
    lanes: [Option<UnderWay>; 2],
    open: bool,
    over: Option<Result<(), OpenError>>,
    /// The store has said that its disk is full, and not since then that there is room.
    told_full: bool,
    /// A write to the log has found no room.
    log_is_full: bool,
    /// Snapshots that are to be taken.
    wanted: Vec<store::Strand>,
    /// Since when appends are refused as busy and the disk does nothing well.
    busy_since: Option<Time>,
}

struct World {
    now: Time,
    options: Options,
    disk: Disk,
    life: Life,
    log: Log,
    draw: Draw,
    trace: Trace,
    /// When a record was said to be persisted last.
    quiet_since: Time,
    /// Since when the disk has room.
    roomy_since: Time,
    /// The damage to the store's files before the last opening.
    harm: Option<Harm>,
    /// A copy of the manifest, as it once was.
    copy: Option<Vec<u8>>,
    lives: u64,
    appended: u64,
    /// Nothing goes wrong any more.
    healed: bool,
}

/// Runs one seed of this world.
pub fn run(draw: &mut Draw, plant: Plant, aloud: bool) -> Outcome {
    let options = Options::draw(draw, plant);
    let trace = Trace::new(aloud);
    trace.say(Time::ZERO, || format!("{options:#?}"));
    let disk = Disk::new(ROOM, options.troubles, draw.fork());
    let now = Time(1_000_000_000);
    let mut world = World {
        now,
        disk,
        life: Life::new(options.config),
        log: Log::default(),
        draw: draw.fork(),
        trace,
        quiet_since: now,
        roomy_since: now,
        harm: None,
        copy: None,
        lives: 0,
        appended: 0,
        healed: false,
        options,
    };
    let verdict = crate::run::guarded(|| world.run());
    let summary = Summary {
        virtual_time: world.now,
        steps: world.trace.steps(),
        answered: world.log.persisted(),
        deaths: world.lives,
        ..Summary::default()
    };
    Outcome { verdict, hash: world.trace.hash(), summary }
}

impl Life {
    fn new(config: Config) -> Life {
        Life {
            store: Store::open(config).expect("drawn knobs are in range"),
            lanes: [None, None],
            open: false,
            over: None,
            told_full: false,
            log_is_full: false,
            wanted: Vec::new(),
            busy_since: None,
        }
    }

    /// It has neither opened nor ended.
    fn opens(&self) -> bool {
        !self.open && self.over.is_none()
    }

    /// Records wait for room, and the store has not reported it: then nobody makes room.
    fn is_silent(&self) -> bool {
        self.log_is_full && self.open && !self.told_full
    }
}

impl World {
    fn run(&mut self) -> Verdict {
        self.reopen(None)?;
        for _ in 0..self.options.lives {
            self.live()?;
            self.restart()?;
        }
        self.heal()?;
        // All that is said to be on the disk is, once more.
        self.disk.lose_power();
        self.reopen(None)
    }

    /// Time goes on while the store is at work, and somebody uses it.
    fn live(&mut self) -> Verdict {
        if self.draw.permille(self.options.full) {
            let left = self.draw.count(0, 3 * self.options.config.segment as usize);
            self.disk.capacity = self.disk.used() + left;
        }
        let span = self.draw.span(Duration::ZERO, self.options.life);
        let end = self.now + span;
        let mut next = self.now;
        while self.now < end {
            if !self.life.open && self.life.over.is_some() {
                return Ok(());
            }
            // While it opens there is nothing to use.
            if self.life.open && next <= self.now {
                self.use_it()?;
                let think = self.options.think;
                let shortest = if self.has_enough() { think } else { Duration::from_nanos(1) };
                next = self.now + self.draw.scale(shortest, think);
            }
            self.step(if self.life.open { end.min(next) } else { end })?;
        }
        Ok(())
    }

    /// Runs the next event, at the latest at `until`.
    fn step(&mut self, until: Time) -> Verdict {
        self.drain()?;
        let lane = |lane: usize| self.life.lanes[lane].as_ref().map_or(Time::FAR, |(at, ..)| *at);
        let timer = self.life.store.next_timeout().unwrap_or(Time::FAR).max(self.now);
        let (log, maintenance) = (lane(0), lane(1));
        let next = log.min(maintenance).min(timer).min(until);
        self.now = next;
        if log == next {
            self.done(0);
        } else if maintenance == next {
            self.done(1);
        } else if timer == next {
            self.life.store.handle_timeout(next);
            // All due work is under way: else time would stand still.
            let due = self.life.store.next_timeout().is_some_and(|due| due <= next);
            demand(!due, "bounded", || "a timer is due again at once".into())?;
        }
        self.life.store.check_invariants();
        self.drain()?;
        demand(!self.life.is_silent(), "told", || {
            "the log finds no room, and nobody is told".into()
        })
    }

    fn done(&mut self, lane: usize) {
        let (_, op, begun) = self.life.lanes[lane].take().expect("it was under way");
        let result = begun.and_then(|()| self.disk.finish(&op));
        if result.is_ok() {
            self.life.busy_since = None;
        }
        self.trace
            .say(self.now, || format!("  {op} {}", if result.is_ok() { "done" } else { "FAILED" }));
        let name = [Lane::Log, Lane::Maintenance][lane];
        if name == Lane::Log {
            let full = |failure: &store::Failure| failure.kind == FailureKind::Full;
            self.life.log_is_full = result.as_ref().is_err_and(full);
        }
        self.life.store.handle_done(self.now, name, result);
    }

    fn drain(&mut self) -> Verdict {
        while let Some(output) = self.life.store.poll_output() {
            self.trace.note(self.now, 1, 0, [kind(&output), 0]);
            if !matches!(output, Output::Disk(..)) {
                self.trace.say(self.now, || brief(&output));
            }
            match output {
                Output::Disk(lane, op) => self.begin(lane, op)?,
                Output::Restored(snapshot) => self.log.restored(&snapshot)?,
                Output::Replayed(id, record) => self.log.replayed(id, &record)?,
                Output::Opened(_) | Output::NotOpened(_) | Output::Closed(_) => {
                    self.turn(output)?;
                }
                Output::Persisted(upto) => {
                    self.quiet_since = self.now;
                    self.log.say(upto)?;
                }
                Output::SnapshotStored(strand, covers) => self.log.stored(strand, covers)?,
                Output::Forgotten(strand, upto) => self.log.forgotten(strand, upto)?,
                Output::SnapshotWanted(strand) => self.life.wanted.push(strand),
                Output::SnapshotRefused(strand) => self.log.refused(strand)?,
                Output::Full(_) => self.life.told_full = true,
                Output::Room => self.life.told_full = false,
            }
        }
        Ok(())
    }

    /// The store's life takes a turn.
    fn turn(&mut self, output: Output) -> Verdict {
        match output {
            Output::Opened(opened) => {
                self.life.open = true;
                self.quiet_since = self.now;
                self.log.opened(&opened)
            }
            Output::NotOpened(error) => {
                self.life.over = Some(Err(error));
                Ok(())
            }
            Output::Closed(result) => {
                self.life.open = false;
                if result.is_ok() {
                    self.log.rest();
                    self.log.closed()?;
                }
                self.life.over = Some(Ok(()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, lane: Lane, op: Op) -> Verdict {
        let lane = usize::from(lane == Lane::Maintenance);
        demand(self.life.lanes[lane].is_none(), "bounded", || {
            "a lane is asked for two things".into()
        })?;
        let begun = self.disk.begin(&op);
        let shortest = Duration::from_micros(1);
        let takes = self.draw.scale(shortest, self.options.slowest);
        self.life.lanes[lane] = Some((self.now + takes, op, begun));
        Ok(())
    }
}

fn kind(output: &Output) -> u64 {
    match output {
        Output::Disk(Lane::Log, _) => 0,
        Output::Disk(Lane::Maintenance, _) => 1,
        Output::Restored(_) => 2,
        Output::Replayed(id, _) => 3 << 32 | id.0,
        Output::Opened(opened) => 4 << 32 | opened.next.0,
        Output::NotOpened(_) => 5,
        Output::Persisted(upto) => 6 << 32 | upto.0,
        Output::SnapshotStored(_, covers) => 7 << 32 | covers.0,
        Output::SnapshotRefused(_) => 8,
        Output::SnapshotWanted(_) => 9,
        Output::Full(_) => 10,
        Output::Room => 11,
        Output::Closed(_) => 12,
        Output::Forgotten(_, upto) => 13 << 32 | upto.0,
    }
}

/// An output in a line: contents are long.
fn brief(output: &Output) -> String {
    match output {
        Output::Restored(snapshot) => {
            format!("restored {:?} up to {}", snapshot.strand, snapshot.covers)
        }
        Output::Replayed(id, record) => format!("replayed {id} of {:?}", record.strand),
        other => format!("{other:?}"),
    }
}
