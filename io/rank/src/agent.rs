//! A rank's agent: what is saved by it, and how the rank goes on without it.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use channel::Notes;
use wire::rank::{Counts, Frame, Saved, Step, TOKEN, Welcome};

use crate::arena::Arena;
use crate::cadence::Cadence;
use crate::error::JobError;
use crate::link::{Link, LinkError};
use crate::messages::Messages;
use crate::output::{self, Output};
use crate::staging::{Extra, Staging};
use crate::tracker::{Kind, Tracker};

/// How often the agent is told how far the rank is, and is looked for when it is gone.
const TELL: Duration = Duration::from_millis(100);

/// How often the agent is listened to.
const LISTEN: Duration = Duration::from_millis(1);

/// How long a rank goes on without an agent. Its node may be gone, and the rank is started elsewhere.
const ALONE: Duration = Duration::from_secs(10);

/// A checkpoint that failed is tried again after so long.
const AGAIN: Duration = Duration::from_secs(1);

/// The agent, and what is saved by it.
#[derive(Debug)]
pub(crate) struct Agent {
    path: PathBuf,
    token: [u8; TOKEN],
    link: Option<Link>,
    /// Since when there is no link.
    alone: Duration,
    tracker: Tracker,
    staging: Staging,
    pub output: Output,
    cadence: Cadence,
    /// The snapshot that is being saved.
    saving: Option<Saving>,
    /// The next snapshot is to be a full one; a checkpoint is wanted.
    full: bool,
    wanted: bool,
    /// When one that failed is tried again.
    again: Option<Duration>,
    told: Duration,
    listened: Duration,
    /// When it said last that it waits.
    attended: Duration,
    /// The last checkpoint that failed, and why.
    failed: Option<String>,
}

/// A snapshot that is being saved.
#[derive(Clone, Copy, Debug)]
struct Saving {
    step: u64,
    begun: Duration,
    stop: Duration,
}

/// A link on which the rank was let in.
pub(crate) struct Opened {
    path: PathBuf,
    token: [u8; TOKEN],
    link: Link,
}

impl Opened {
    /// Waits to be let in: the welcome, the file of the state, if there is one, and what earlier
    /// starts have chosen.
    pub fn wait(
        path: PathBuf,
        token: [u8; TOKEN],
    ) -> Result<(Opened, Welcome, Option<File>, Notes), JobError> {
        // So that the agent sees the rank's death at once, however much memory it has.
        os::closer::begin();
        match Link::open(&path, token) {
            Ok((link, welcome, file, notes)) => {
                Ok((Opened { path, token, link }, welcome, file, notes))
            }
            Err(LinkError::Refused(reason)) => Err(JobError::Over(reason)),
            Err(LinkError::Io(source)) => {
                Err(JobError::Agent { path: path.display().to_string(), source })
            }
        }
    }
}

impl Opened {
    /// The rank cannot begin: it says why.
    pub fn say(&mut self, why: &Frame) {
        self.link.say_last(why);
    }
}

/// The end of the last checkpoint.
pub(crate) enum Outcome {
    Saved,
    Failed(String),
    /// There is no agent now.
    Alone,
}

impl Agent {
    pub fn new(
        opened: Opened,
        welcome: &Welcome,
        arena: &Arena,
        output: Output,
    ) -> Result<Agent, JobError> {
        let Opened { path, token, link } = opened;
        let mut tracker = Tracker::new(arena);
        if welcome.restored {
            tracker.saved();
        }
        Ok(Agent {
            path,
            token,
            link: Some(link),
            alone: Duration::ZERO,
            tracker,
            staging: Staging::new()?,
            output,
            cadence: Cadence::new(welcome.every, Duration::from_micros(welcome.age_us)),
            saving: None,
            full: welcome.full || !welcome.restored,
            wanted: false,
            again: None,
            told: Duration::ZERO,
            listened: Duration::ZERO,
            attended: Duration::ZERO,
            failed: None,
        })
    }

    /// How changes are found, and why by no better way.
    pub fn tracker(&self) -> (Kind, Option<&str>) {
        (self.tracker.kind(), self.tracker.instead())
    }

    /// The end of the last checkpoint, once it has settled.
    pub fn outcome(&self) -> Outcome {
        match (&self.failed, &self.link) {
            (_, None) => Outcome::Alone,
            (None, Some(_)) => Outcome::Saved,
            (Some(why), Some(_)) => Outcome::Failed(why.clone()),
        }
    }

    /// A safe point of a rank that is so far. True: a checkpoint is due.
    pub fn look(
        &mut self,
        now: Duration,
        step: Step,
        arena: &Arena,
        messages: &mut Messages,
    ) -> Result<bool, JobError> {
        self.staging.prepare(arena.memory().bytes().len() as u64);
        if now >= self.listened + LISTEN {
            self.listened = now;
            self.listen(now, messages)?;
        }
        if now >= self.told + TELL || self.told.is_zero() {
            self.told = now;
            self.tell(now, Frame::Step(step), messages)?;
        }
        self.pass_on(now, messages)?;
        self.wanted |= self.again.take_if(|at| now >= *at).is_some();
        // All ranks save at this turn: this one first waits until its last image is saved.
        if self.cadence.is_due_at(step.step) {
            return Ok(self.link.is_some());
        }
        let due = self.wanted || self.cadence.is_due(now) || messages.wants_image();
        Ok(due && self.saving.is_none() && self.link.is_some())
    }

    /// Copies what has changed, and has the agent save it.
    pub fn snapshot(
        &mut self,
        began: Instant,
        arena: &Arena,
        beside: Vec<Extra<'_>>,
        (step, counts): (u64, Vec<Counts>),
    ) -> Result<(), JobError> {
        let begun = began.elapsed();
        let changed = self.tracker.changed(arena)?;
        let changed = (!self.full).then_some(&changed[..]);
        let printed = self.output.measure()?.and_then(|printed| self.output.save(printed));
        let mut beside = beside;
        beside.extend(printed.iter().flat_map(output::Saving::arrays));
        let mut snapshot = self.staging.take(arena, &beside, step, changed)?;
        snapshot.counts = counts;
        let now = began.elapsed();
        snapshot.stop_us = u32::try_from((now - begun).as_micros()).unwrap_or(u32::MAX);
        self.cadence.begin(now);
        let Some(link) = &mut self.link else { return Ok(()) };
        (self.saving, self.wanted) = (Some(Saving { step, begun, stop: now - begun }), false);
        match link.send(&Frame::Snapshot(snapshot), Some(self.staging.file())) {
            Ok(()) => Ok(()),
            Err(error) => self.lost(now, error),
        }
    }

    /// Waits until what was copied is saved.
    pub fn settle(&mut self, began: Instant, messages: &mut Messages) -> Result<(), JobError> {
        while self.saving.is_some() {
            let Some(link) = &mut self.link else { break };
            match link.wait() {
                Ok(frame) => self.hear(began.elapsed(), frame, messages)?,
                Err(error) => self.lost(began.elapsed(), error)?,
            }
        }
        Ok(())
    }

    /// Says that the work is done, until the job knows. False: the agent is gone, or wants a
    /// checkpoint.
    pub fn say_finished(
        &mut self,
        began: Instant,
        messages: &mut Messages,
    ) -> Result<bool, JobError> {
        self.pass_on(began.elapsed(), messages)?;
        let Some(link) = &mut self.link else { return Ok(false) };
        if let Err(error) = link.send(&Frame::Finish, None) {
            self.lost(began.elapsed(), error)?;
        }
        while let Some(link) = &mut self.link {
            match link.wait() {
                Ok((Frame::Finished, _)) => return Ok(true),
                Ok(frame) => {
                    self.hear(began.elapsed(), frame, messages)?;
                    self.pass_on(began.elapsed(), messages)?;
                    if self.wanted {
                        return Ok(false);
                    }
                }
                Err(error) => self.lost(began.elapsed(), error)?,
            }
        }
        Ok(false)
    }

    /// A rank that waits for a message says so at first, and hears what there is to hear. True: there
    /// was something.
    pub fn attend(
        &mut self,
        now: Duration,
        waits: bool,
        messages: &mut Messages,
    ) -> Result<bool, JobError> {
        let heard = self.listen(now, messages)?;
        self.pass_on(now, messages)?;
        // Its steps are told at their own times: a rank that waits in each turn comes further as well.
        if now >= self.attended + TELL {
            self.attended = now;
            if self.link.is_none() || waits {
                self.tell(now, Frame::Waits, messages)?;
            }
        }
        Ok(heard)
    }

    /// Says to the agent all that there is to say because of messages.
    pub fn pass_on(&mut self, now: Duration, messages: &mut Messages) -> Result<(), JobError> {
        let mut broken = None;
        for (frame, file) in messages.words() {
            let Some(link) = &mut self.link else { continue };
            if let Err(error) = link.send(&frame, file.as_ref()) {
                broken = Some(error);
                break;
            }
        }
        broken.map_or(Ok(()), |error| self.lost(now, error))
    }

    /// Hears what there is to hear. True: there was something.
    fn listen(&mut self, now: Duration, messages: &mut Messages) -> Result<bool, JobError> {
        let mut heard = false;
        while let Some(link) = &mut self.link {
            match link.poll() {
                Ok(Some(frame)) => self.hear(now, frame, messages)?,
                Ok(None) => return Ok(heard),
                Err(error) => self.lost(now, error)?,
            }
            heard = true;
        }
        Ok(heard)
    }

    fn hear(
        &mut self,
        now: Duration,
        (frame, file): (Frame, Option<File>),
        messages: &mut Messages,
    ) -> Result<(), JobError> {
        match frame {
            Frame::Saved(Saved { outcome, full, generation, step }) => {
                // An answer to one from before the link was lost says nothing of the present one.
                let Some(saving) = self.saving.take_if(|saving| saving.step == step) else {
                    return Ok(());
                };
                messages.saved(outcome.is_ok().then_some(generation));
                self.output.saved(outcome.is_ok());
                let Saving { begun, stop, .. } = saving;
                if outcome.is_ok() {
                    self.tracker.saved();
                    // The agent's work for it costs a part of a processor as well.
                    self.cadence.cost(stop + (now - begun) / 4);
                }
                (self.full, self.failed) = (full, outcome.err());
                if self.failed.is_some() {
                    self.cadence.again(now);
                    // Somebody may have wished for it.
                    self.again = Some(now + AGAIN);
                }
                Ok(())
            }
            Frame::Save => {
                self.wanted = true;
                Ok(())
            }
            Frame::Farewell(reason) => Err(JobError::Over(reason)),
            frame => {
                messages.hear(frame, file);
                Ok(())
            }
        }
    }

    /// Tells how the rank is, or looks for an agent.
    fn tell(
        &mut self,
        now: Duration,
        frame: Frame,
        messages: &mut Messages,
    ) -> Result<(), JobError> {
        match &mut self.link {
            Some(link) => match link.send(&frame, None) {
                Ok(()) => Ok(()),
                Err(error) => self.lost(now, error),
            },
            None => self.look_for(now, messages),
        }
    }

    /// The link is broken. The rank computes on: another agent may come.
    fn lost(&mut self, now: Duration, error: LinkError) -> Result<(), JobError> {
        if let LinkError::Refused(reason) = error {
            return Err(JobError::Over(reason));
        }
        (self.link, self.alone) = (None, now);
        // The agent may still read what was copied: it is left to it.
        if self.saving.take().is_some() {
            self.staging = Staging::new()?;
        }
        // Nobody knows which image would be the one below.
        self.full = true;
        self.failed = Some("the agent has gone".into());
        Ok(())
    }

    fn look_for(&mut self, now: Duration, messages: &mut Messages) -> Result<(), JobError> {
        match Link::open(&self.path, self.token) {
            Ok((link, ..)) => {
                // A copy that was made meanwhile went to nobody.
                (self.link, self.saving, self.wanted) = (Some(link), None, true);
                messages.offer_again()?;
                self.pass_on(now, messages)
            }
            Err(LinkError::Refused(reason)) => Err(JobError::Over(reason)),
            Err(LinkError::Io(_)) if now >= self.alone + ALONE => {
                Err(JobError::Alone(ALONE.as_secs()))
            }
            Err(LinkError::Io(_)) => Ok(()),
        }
    }

    /// Says why the rank cannot go on.
    pub fn say(&mut self, why: &Frame) {
        if let Some(link) = &mut self.link {
            link.say_last(why);
        }
    }

    /// It has asked for a checkpoint.
    pub fn wants_save(&self) -> bool {
        self.wanted && self.link.is_some()
    }

    /// Waits for another agent, if this one is gone.
    pub fn find_again(&mut self, began: Instant, messages: &mut Messages) -> Result<(), JobError> {
        while self.link.is_none() {
            self.look_for(began.elapsed(), messages)?;
            if self.link.is_none() {
                std::thread::sleep(TELL);
            }
        }
        Ok(())
    }
}
