//! The machine: from opening to its end.

use alloc::collections::VecDeque;

use wire::Time;
use wire::ordered::Place;

use crate::api::{
    AppendError, Broken, Config, ConfigError, Done, Failure, FailureKind, Lane, OpenError, Opened,
    Output, Record, RecordId, Snapshot, SnapshotError, Strand,
};
use crate::bug::Bug;
use crate::log::Log;
use crate::maintenance::{Maintenance, Progress};
use crate::opening::{Next, Opening, Ready};

/// A node's stable storage, without its disk. See the crate's documentation.
#[derive(Debug)]
pub struct Store {
    config: Config,
    phase: Phase,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
enum Phase {
    /// The files are read.
    Opening(Opening),
    /// The first segment of this life is made.
    Beginning(Open, Opened),
    Open(Open),
    /// The waiting records are written, then the store closes.
    Closing(Open),
    Over,
}

#[derive(Debug)]
struct Open {
    log: Log,
    maintenance: Maintenance,
}

impl Store {
    /// Opens the store, or makes one where there is none. The results are outputs.
    ///
    /// # Errors
    /// [`ConfigError`] names the knob.
    pub fn open(config: Config) -> Result<Store, ConfigError> {
        config.check()?;
        let (opening, op) = Opening::new(&config);
        let mut outputs = VecDeque::new();
        outputs.push_back(Output::Disk(Lane::Maintenance, op));
        Ok(Store { config, phase: Phase::Opening(opening), outputs })
    }

    /// Takes a record, and gives its number. It is on the disk when [`Output::Persisted`] says so.
    ///
    /// # Errors
    /// [`AppendError`] says why it is not taken.
    pub fn append(&mut self, now: Time, record: Record) -> Result<RecordId, AppendError> {
        let Phase::Open(open) = &mut self.phase else { return Err(AppendError::NotOpen) };
        let id = open.log.append(now, record, &self.config, open.maintenance.is_full())?;
        self.advance(now);
        Ok(id)
    }

    /// Takes a strand's state. [`Output::SnapshotStored`] tells that it is on the disk.
    ///
    /// # Errors
    /// [`SnapshotError`] says why it is not taken.
    pub fn snapshot(&mut self, now: Time, snapshot: Snapshot) -> Result<(), SnapshotError> {
        let Phase::Open(open) = &mut self.phase else { return Err(SnapshotError::NotOpen) };
        open.maintenance.snapshot(snapshot, &open.log, &self.config)?;
        self.advance(now);
        Ok(())
    }

    /// Nobody needs this strand any more: neither its snapshot nor its records so far come back,
    /// once [`Output::Forgotten`] tells that this is on the disk.
    ///
    /// # Errors
    /// [`SnapshotError`] says why not now.
    pub fn forget(&mut self, now: Time, strand: Strand, place: Place) -> Result<(), SnapshotError> {
        let Phase::Open(open) = &mut self.phase else { return Err(SnapshotError::NotOpen) };
        open.maintenance.forget(strand, place, &open.log, &self.config)?;
        self.advance(now);
        Ok(())
    }

    /// Writes what waits, then closes. Snapshots and strands to be forgotten that wait are told of
    /// before: [`Output::SnapshotStored`],
    /// [`Output::Forgotten`], or, where there is no room, [`Output::SnapshotRefused`].
    pub fn close(&mut self, now: Time) {
        self.phase = match core::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Open(open) | Phase::Closing(open) => Phase::Closing(open),
            Phase::Over => Phase::Over,
            // Nothing was appended yet.
            Phase::Opening(_) | Phase::Beginning(..) => {
                self.outputs.push_back(Output::Closed(Ok(())));
                Phase::Over
            }
        };
        self.advance(now);
    }

    /// The disk did what it was asked for in this lane, or not.
    ///
    /// # Panics
    /// If it was not asked for anything there.
    pub fn handle_done(&mut self, now: Time, lane: Lane, result: Result<Done, Failure>) {
        match (&mut self.phase, lane) {
            (Phase::Over, _) => {}
            (Phase::Opening(opening), Lane::Maintenance) => {
                match opening.handle(result, &self.config, &mut self.outputs) {
                    Ok(Next::Ask(op)) => {
                        self.outputs.push_back(Output::Disk(Lane::Maintenance, op))
                    }
                    Ok(Next::Read(ready)) => self.begin(ready),
                    Err(error) => self.not_opened(error),
                }
            }
            (Phase::Opening(_), Lane::Log) => panic!("nothing is written while the store is read"),
            (_, Lane::Maintenance) => self.maintenance_done(now, result.map(|_| ())),
            (_, Lane::Log) => self.log_done(now, result.map(|_| ())),
        }
        self.advance(now);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
    }

    /// Returns the next request or report.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Store::handle_timeout`] is to be called at the latest.
    pub fn next_timeout(&self) -> Option<Time> {
        let (Phase::Open(open) | Phase::Closing(open) | Phase::Beginning(open, _)) = &self.phase
        else {
            return None;
        };
        let times = [open.log.next_timeout(&self.config), open.maintenance.next_timeout()];
        times.into_iter().flatten().min()
    }

    /// The last record that is on the disk, if the store is open.
    pub fn persisted(&self) -> Option<RecordId> {
        match &self.phase {
            Phase::Open(open) | Phase::Closing(open) => Some(open.log.persisted()),
            _ => None,
        }
    }

    /// Records that were taken wait for room on the disk. That happens only where the disk takes
    /// room for what is written over; else what is taken has its room.
    pub fn waits_for_room(&self) -> bool {
        match &self.phase {
            Phase::Open(open) | Phase::Closing(open) => open.log.is_put_off(),
            _ => false,
        }
    }

    /// Checks what must always hold.
    ///
    /// # Panics
    /// If something does not: a bug.
    pub fn check_invariants(&self) {
        if let Phase::Open(open) | Phase::Closing(open) | Phase::Beginning(open, _) = &self.phase {
            open.log.check_invariants();
            open.maintenance.check_invariants();
        }
    }

    /// All is read: the first segment of this life is made, and the last batch is said again in it.
    fn begin(&mut self, ready: Ready) {
        let Ready { found, link, mut repeat, snapshots, replayed, torn } = ready;
        let fresh = found.fresh;
        let next = RecordId(link.next.0 + repeat.as_ref().map_or(0, |r| r.len() as u64));
        let mut link = link;
        if self.config.planted.is(Bug::TrustTail)
            && let Some(end) = found.segments.values().rev().find_map(|held| held.end)
        {
            (repeat, link) = (None, end);
        }
        let log = Log::new(found.manifest.store, link, repeat);
        let maintenance = Maintenance::new(found, &self.config);
        let opened = Opened { fresh, snapshots, replayed, next, torn };
        self.phase = Phase::Beginning(Open { log, maintenance }, opened);
    }

    fn not_opened(&mut self, error: OpenError) {
        self.phase = Phase::Over;
        self.outputs.push_back(Output::NotOpened(error));
    }

    /// The disk cannot be trusted any more. A write under way may be there or not.
    fn broken(&mut self, text: alloc::string::String) {
        match core::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Opening(_) | Phase::Beginning(..) => {
                self.outputs.push_back(Output::NotOpened(OpenError::Disk(text)));
            }
            Phase::Open(_) | Phase::Closing(_) => {
                self.outputs.push_back(Output::Closed(Err(Broken(text))));
            }
            Phase::Over => {}
        }
    }

    fn maintenance_done(&mut self, now: Time, result: Result<(), Failure>) {
        let (Phase::Beginning(open, _) | Phase::Open(open) | Phase::Closing(open)) =
            &mut self.phase
        else {
            return;
        };
        let Open { log, maintenance } = open;
        match maintenance.done(now, result, log, &self.config, &mut self.outputs) {
            Progress::Well => {
                let next = maintenance.go_on(&self.config);
                self.outputs.extend(next.map(|op| Output::Disk(Lane::Maintenance, op)));
            }
            Progress::NoRoom(text) => self.not_opened(OpenError::Full(text)),
            Progress::Broken(text) => self.broken(text),
        }
    }

    fn log_done(&mut self, now: Time, result: Result<(), Failure>) {
        if let (Phase::Beginning(..), Err(Failure { kind: FailureKind::Full, text })) =
            (&self.phase, &result)
        {
            // The caller that waits for the store is told now, not when there is room.
            let text = text.clone();
            return self.not_opened(OpenError::Full(text));
        }
        let (Phase::Beginning(open, _) | Phase::Open(open) | Phase::Closing(open)) =
            &mut self.phase
        else {
            return;
        };
        let result = match result {
            Err(Failure { kind: FailureKind::Full, .. })
                if self.config.planted.is(Bug::AcknowledgeFull) =>
            {
                Ok(())
            }
            result => result,
        };
        match result {
            Ok(()) => {
                let room = open.log.is_put_off() && !open.maintenance.is_full();
                let written = open.log.done(now, &self.config);
                open.maintenance.note(&written);
                self.outputs.extend(room.then_some(Output::Room));
                if written.news && !self.config.planted.is(Bug::ReportBeforeSync) {
                    self.outputs.push_back(Output::Persisted(open.log.persisted()));
                }
            }
            Err(Failure { kind: FailureKind::Full, text }) => {
                let known = open.log.is_put_off() || open.maintenance.is_full();
                open.log.put_off(now, &self.config);
                let news = open.log.is_put_off() && !known;
                self.outputs.extend(news.then_some(Output::Full(text)));
            }
            Err(_) if self.config.planted.is(Bug::RetryFailedSync) => {
                let file = open.log.file().expect("it is written to");
                self.outputs.push_back(Output::Disk(Lane::Log, crate::Op::Sync { file }));
            }
            Err(failure) => self.broken(failure.text),
        }
    }

    /// Asks the disk for whatever is next, and goes on to the next phase if this one is done.
    fn advance(&mut self, now: Time) {
        let begins = matches!(self.phase, Phase::Beginning(..));
        let closes = matches!(self.phase, Phase::Closing(_));
        let (Phase::Beginning(open, _) | Phase::Open(open) | Phase::Closing(open)) =
            &mut self.phase
        else {
            return;
        };
        let Open { log, maintenance } = open;
        let config = &self.config;
        let op = log.next_op(now, config, begins || closes);
        let early = op.is_some() && !begins && config.planted.is(Bug::ReportBeforeSync);
        if let Some(upto) = log.flying_to().filter(|&upto| early && upto > log.persisted()) {
            self.outputs.push_back(Output::Persisted(upto));
        }
        let op = op.or_else(|| log.try_again(now, config));
        self.outputs.extend(op.map(|op| Output::Disk(Lane::Log, op)));
        // Requests that wait behind the maintenance's work are written, too, as long as there is
        // room.
        let done = |maintenance: &Maintenance, log: &Log| {
            let hopeless = maintenance.is_put_off() || log.is_stuck();
            hopeless || !maintenance.owes() || config.planted.is(Bug::CloseAtRest)
        };
        if !begins {
            maintenance.let_go(log, config);
        }
        let ends = closes && log.is_at_rest() && done(maintenance, log);
        if !maintenance.is_busy() && !ends {
            let op = maintenance.next_op(now, log, config);
            self.outputs.extend(op.map(|op| Output::Disk(Lane::Maintenance, op)));
        }
        if !begins && !closes {
            maintenance.ask_for_snapshots(log, config, &mut self.outputs);
        }
        let unmarked = config.planted.is(Bug::ForgetMark) && log.is_empty();
        let rests = log.is_at_rest() || unmarked;
        if begins && log.has_begun() && rests {
            let Phase::Beginning(open, opened) = core::mem::replace(&mut self.phase, Phase::Over)
            else {
                unreachable!("it begins");
            };
            self.phase = Phase::Open(open);
            self.outputs.push_back(Output::Opened(opened));
            self.advance(now);
        } else if closes
            && (rests || log.is_stuck())
            && !maintenance.is_busy()
            && done(maintenance, log)
        {
            if !config.planted.is(Bug::CloseAtRest) {
                maintenance.give_up(&mut self.outputs);
            }
            // Only the mark may be missing.
            let end = if log.is_empty() { Ok(()) } else { Err(Broken("it is full".into())) };
            self.phase = Phase::Over;
            self.outputs.push_back(Output::Closed(end));
        }
    }
}
