//! The world of one store and its disk.
//!
//! Records and snapshots come and go, the disk fails in every way that it may ([`crate::disk`]), the process dies, the host
//! loses power, the store is closed and opened again. After each opening what comes back is compared with a list
//! ([`crate::oracle::log`]).

mod customer;

use store::{Config, FileName, Lane, Op, OpenError, Output, Owner, Store};
use wire::{Duration, NodeId, Time};

use crate::check::{Verdict, demand};
use crate::disk::{Disk, Troubles};
use crate::draw::Draw;
use crate::options::CLUSTER_ID;
use crate::oracle::log::Log;
use crate::run::{Outcome, Plant, Summary};
use crate::trace::Trace;

const PROPERTY: &str = "durable";

/// What comes on a disk that is well is on it within this.
const WITHIN: Duration = Duration::from_secs(20);

/// Bytes of a disk with room for everything.
const ROOM: usize = 64 << 20;

/// Records of one seed.
const RECORDS: u64 = 1_500;

/// When something ends, what it is, and whether it began well.
type UnderWay = (Time, Op, Result<(), store::Failure>);

/// A bit that changed by itself.
type Rot = (FileName, usize, u8);

/// What a seed draws.
#[derive(Clone, Debug)]
struct Options {
    config: Config,
    troubles: Troubles,
    /// Lives that end before all heals.
    lives: usize,
    /// The longest life.
    life: Duration,
    /// The longest time that the disk takes for something.
    slowest: Duration,
    /// Pause between records.
    think: Duration,
    /// Bytes of the longest record.
    longest: usize,
    strands: u64,
    /// How a life ends, each as often as it is named.
    ends: Vec<End>,
    /// Bits rot, of 1,000 restarts.
    rot: u64,
    /// The disk is full, of 1,000 lives.
    full: u64,
    /// Snapshots that are asked for are taken.
    obliging: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The process dies.
    Kill,
    /// The host loses power.
    Power,
    /// The store is closed.
    Close,
    /// The host loses power after a rest.
    Rest,
}

struct World {
    now: Time,
    options: Options,
    disk: Disk,
    store: Store,
    lanes: [Option<UnderWay>; 2],
    log: Log,
    draw: Draw,
    trace: Trace,
    open: bool,
    over: Option<Result<(), OpenError>>,
    /// When a record was said to be persisted last.
    quiet_since: Time,
    /// Since when the disk has room.
    roomy_since: Time,
    /// What has rotted before the last opening.
    rotten: Option<Rot>,
    /// A snapshot that is to be taken.
    wanted: Vec<store::Strand>,
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
    let store = Store::open(options.config).expect("drawn knobs are in range");
    let now = Time(1_000_000_000);
    let mut world = World {
        now,
        disk,
        store,
        lanes: [None, None],
        log: Log::default(),
        draw: draw.fork(),
        trace,
        open: false,
        over: None,
        quiet_since: now,
        roomy_since: now,
        rotten: None,
        wanted: Vec::new(),
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

impl Options {
    fn draw(draw: &mut Draw, plant: Plant) -> Options {
        let mut faults = draw.fork();
        let sometimes = |faults: &mut Draw, rates: &[u64]| match faults.one_in(2) {
            true => faults.pick(rates),
            false => 0,
        };
        let batch = draw.pick(&[2_000, 8_000, 30_000]);
        let segment = draw.pick(&[1, 2, 4, 8]) * ((batch as u64).div_ceil(4_096) + 5) * 4_096;
        let owner = Owner { cluster: CLUSTER_ID, node: NodeId(1) };
        let mut config = Config::new(owner, draw.bits());
        (config.segment, config.batch) = (segment, batch);
        config.reserve = segment.max(draw.pick(&[0, 30_000, 200_000]));
        config.keep = draw.count(1, 6);
        config.delay = Duration::from_micros(draw.pick(&[0, 0, 300]));
        config.mark_after = Duration::from_millis(draw.pick(&[1, 10, 100]));
        config.retry = Duration::from_millis(draw.pick(&[5, 50]));
        plant.into_store(&mut config);
        let kinds = [End::Kill, End::Power, End::Close, End::Rest];
        let many = faults.count(1, kinds.len());
        let ends = faults.distinct(many, kinds.len()).into_iter().map(|kind| kinds[kind]).collect();
        Options {
            config,
            troubles: Troubles {
                unsynced: sometimes(&mut faults, &[2, 10, 40]),
                refused: sometimes(&mut faults, &[0, 1, 5]),
                spoilt: sometimes(&mut faults, &[20, 200]),
                copies: faults.one_in(4),
            },
            lives: draw.count(2, 16),
            life: Duration::from_millis(draw.pick(&[2, 20, 100])),
            slowest: Duration::from_micros(draw.pick(&[50, 500, 500, 5_000])),
            think: Duration::from_micros(draw.pick(&[20, 100, 1_000])),
            longest: draw.pick(&[40, 400, 1_500]),
            strands: draw.between(1, 4),
            ends,
            rot: sometimes(&mut faults, &[50, 200, 500]),
            full: sometimes(&mut faults, &[100, 400]),
            obliging: draw.permille(800),
        }
    }
}

impl World {
    fn run(&mut self) -> Verdict {
        self.reopen(false)?;
        for _ in 0..self.options.lives {
            self.life()?;
            self.restart()?;
        }
        self.heal()?;
        // All that is said to be on the disk is, once more.
        self.disk.lose_power();
        self.reopen(false)
    }

    /// Time goes on while the store is at work, and somebody uses it.
    fn life(&mut self) -> Verdict {
        if self.draw.permille(self.options.full) {
            let left = self.draw.count(0, 3 * self.options.config.segment as usize);
            self.disk.capacity = self.disk.used() + left;
        }
        let span = self.draw.span(Duration::ZERO, self.options.life);
        let end = self.now + span;
        let mut next = self.now;
        while self.now < end {
            if !self.open && self.over.is_some() {
                return Ok(());
            }
            if next <= self.now {
                self.use_it()?;
                let think = self.options.think;
                next = self.now + self.draw.scale(Duration::from_nanos(1), think);
            }
            self.step(end.min(next))?;
        }
        Ok(())
    }

    /// What happens next, at the latest at `until`.
    fn step(&mut self, until: Time) -> Verdict {
        self.drain()?;
        let lane = |lane: usize| self.lanes[lane].as_ref().map_or(Time::FAR, |(at, ..)| *at);
        let timer = self.store.next_timeout().unwrap_or(Time::FAR).max(self.now);
        let (log, house) = (lane(0), lane(1));
        let next = log.min(house).min(timer).min(until);
        self.now = next;
        if log == next {
            self.done(0);
        } else if house == next {
            self.done(1);
        } else if timer == next {
            self.store.handle_timeout(next);
            // Whatever was due is under way: else time would stand still.
            let due = self.store.next_timeout().is_some_and(|due| due <= next);
            demand(!due, "bounded", || "a timer is due again at once".into())?;
        }
        self.store.check_invariants();
        self.drain()
    }

    fn done(&mut self, lane: usize) {
        let (_, op, begun) = self.lanes[lane].take().expect("it was under way");
        let result = begun.and_then(|()| self.disk.finish(&op));
        self.trace
            .say(self.now, || format!("  {op} {}", if result.is_ok() { "done" } else { "FAILED" }));
        let name = [Lane::Log, Lane::House][lane];
        self.store.handle_done(self.now, name, result);
    }

    fn drain(&mut self) -> Verdict {
        while let Some(output) = self.store.poll_output() {
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
                Output::SnapshotStored(strand, covers) => self.log.stored(strand, covers),
                Output::SnapshotWanted(strand) => self.wanted.push(strand),
                Output::SnapshotRefused(_) | Output::Full(_) | Output::Room => {}
            }
        }
        Ok(())
    }

    /// The store's life takes a turn.
    fn turn(&mut self, output: Output) -> Verdict {
        match output {
            Output::Opened(opened) => {
                self.open = true;
                self.quiet_since = self.now;
                self.log.opened(&opened, self.is_rotten())
            }
            Output::NotOpened(error) => {
                self.over = Some(Err(error));
                Ok(())
            }
            Output::Closed(result) => {
                self.open = false;
                if result.is_ok() {
                    self.log.rest();
                }
                self.over = Some(Ok(()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, lane: Lane, op: Op) -> Verdict {
        let lane = usize::from(lane == Lane::House);
        demand(self.lanes[lane].is_none(), "bounded", || "a lane is asked for two things".into())?;
        let begun = self.disk.begin(&op);
        let shortest = Duration::from_micros(1);
        let takes = self.draw.scale(shortest, self.options.slowest);
        self.lanes[lane] = Some((self.now + takes, op, begun));
        Ok(())
    }

    /// The life ends somehow, and another begins.
    fn restart(&mut self) -> Verdict {
        let end = self.draw.pick(&self.options.ends);
        self.trace.note(self.now, 2, 0, [end as u64, 0]);
        self.trace.say(self.now, || format!("FAULT {end:?}"));
        self.lives += 1;
        if end == End::Close {
            self.store.close(self.now);
            self.until_over()?;
        }
        if end == End::Rest && self.open {
            self.rest()?;
        }
        // What is under way when a process dies is done or not.
        for (_, op, begun) in std::mem::take(&mut self.lanes).into_iter().flatten() {
            if begun.is_ok() && self.draw.one_in(2) {
                let _ = self.disk.finish(&op);
            }
        }
        if matches!(end, End::Power | End::Rest) {
            self.disk.lose_power();
        }
        // Enough room to begin with, most of the times.
        if !self.draw.one_in(3) {
            self.make_room();
        }
        let rotten = self.draw.permille(self.options.rot);
        self.reopen(rotten)
    }

    /// Nobody uses the store for a while.
    fn rest(&mut self) -> Verdict {
        let long = self.options.config.mark_after + 200 * self.options.slowest;
        let end = self.now + 2 * long;
        while self.now < end {
            self.step(end)?;
        }
        // Whatever waits, for want of room, keeps the log from resting.
        let settled =
            self.log.persisted() == self.log.last().0 && self.now >= self.quiet_since + long;
        if self.open && settled && !self.is_short() {
            self.log.rest();
        }
        Ok(())
    }

    /// The disk's room may keep the log from what it would do.
    fn is_short(&self) -> bool {
        // What found no room tries again after a while, and then makes itself a segment.
        let known = 2 * self.options.config.retry + 200 * self.options.slowest;
        self.disk.capacity < ROOM || self.now < self.roomy_since + known
    }

    fn make_room(&mut self) {
        self.disk.capacity = ROOM;
        self.roomy_since = self.now;
    }

    fn until_over(&mut self) -> Verdict {
        let end = self.now + WITHIN;
        while self.over.is_none() && self.now < end {
            self.step(end)?;
        }
        let over = self.over.is_some();
        demand(over, "liveness", || "the store neither opens nor closes".into())
    }

    /// Opens the store until it is open. With `rotten`, a bit changes before.
    fn reopen(&mut self, rotten: bool) -> Verdict {
        self.rotten = if rotten { self.disk.rot() } else { None };
        self.trace.say(self.now, || format!("ROT {:?}", self.rotten));
        for _ in 0..50 {
            self.lanes = [None, None];
            self.wanted.clear();
            (self.open, self.over) = (false, None);
            self.log.begin();
            self.store = Store::open(self.options.config).expect("drawn knobs are in range");
            let end = self.now + WITHIN;
            while !self.open && self.over.is_none() && self.now < end {
                self.step(end)?;
            }
            match self.over.take() {
                None => return demand(self.open, "liveness", || "the store does not open".into()),
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) => self.judge(&error)?,
            }
        }
        demand(false, "liveness", || "the store never opens".into())
    }

    /// Whether this is a reason not to open. What is rotten is mended; what is full gets room.
    fn judge(&mut self, error: &OpenError) -> Verdict {
        match error {
            OpenError::Full(_) => {
                self.make_room();
                Ok(())
            }
            OpenError::Disk(_) => Ok(()),
            _ => {
                let rotten = self.rotten.take();
                rotten.into_iter().for_each(|bit| self.disk.flip(bit));
                demand(rotten.is_some(), PROPERTY, || {
                    format!("nothing had rotted, and yet: {error}")
                })
            }
        }
    }

    fn is_rotten(&self) -> bool {
        self.rotten.is_some()
    }

    /// Nothing goes wrong any more: what is appended must come to the disk.
    fn heal(&mut self) -> Verdict {
        self.trace.say(self.now, || "ALL HEALS".into());
        self.disk.troubles = Troubles::default();
        self.healed = true;
        self.make_room();
        // What was under way may have failed already: all begins anew.
        self.reopen(false)?;
        let end = self.now + WITHIN;
        let mut left = 20;
        while left > 0 && self.now < end {
            let before = self.log.last();
            self.append()?;
            left -= usize::from(self.log.last() > before);
            self.step(self.now + Duration::from_millis(1))?;
        }
        while self.log.persisted() < self.log.last().0 && self.now < end {
            self.step(end)?;
        }
        let done = left == 0 && self.log.persisted() == self.log.last().0;
        demand(done, "liveness", || "what is appended does not come to the disk".into())?;
        self.store.close(self.now);
        self.until_over()
    }
}

fn kind(output: &Output) -> u64 {
    match output {
        Output::Disk(Lane::Log, _) => 0,
        Output::Disk(Lane::House, _) => 1,
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
