//! Checkpoints of one rank, each when it is asked for.

use std::time::Duration;

use clap::ValueEnum;
use job::{Command, Spec};
use serde::Serialize;
use wire::rank::Every;

use super::memory::Said;
use super::scene::Scene;
use crate::Outcome;
use crate::cluster::wall;
use crate::orders::Memory;
use crate::process::Role;
use crate::wait::until;

/// How long a rank may take to write a line.
const SAYS_WITHIN: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_micros(200);

/// A way to save.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Whole images; the program waits until each is on a disk.
    Blocking,
    /// Whole images, written while the program goes on.
    Full,
    /// Changed pages, written while the program goes on.
    Incremental,
}

impl Kind {
    /// All ways.
    pub const ALL: [Kind; 3] = [Kind::Blocking, Kind::Full, Kind::Incremental];

    /// A job that saves so.
    pub fn of(self, spec: Spec) -> Spec {
        Spec { full: self != Kind::Incremental, blocking: self == Kind::Blocking, ..spec }
    }
}

/// A checkpoint that was seen.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint {
    /// The time for which the program did not go on.
    pub stop: Duration,
    /// From the beginning of that until the book had the image: it is on the first disk.
    pub durable: Duration,
    /// Until the book had it at all its holders.
    pub copied: Duration,
    /// Bytes of the image.
    pub bytes: u64,
    /// It is a whole one.
    pub full: bool,
}

/// A job of one rank, which saves when it is asked to.
pub struct Saving {
    job: u64,
    copies: usize,
    last: u64,
}

impl Saving {
    /// Starts it, and has it save once: that image is a whole one, and warms what is cold.
    pub fn start(scene: &mut Scene, memory: &Memory, kind: Kind, copies: u8) -> Outcome<Saving> {
        let command = Role::Rank(memory.clone()).command()?;
        let spec = Spec { command, ranks: 1, copies, every: Every::Never, ..Spec::default() };
        let job = scene.submit(kind.of(spec))?;
        scene.computes(job)?;
        let mut saving = Saving { job, copies: copies.into(), last: 0 };
        saving.next(scene)?;
        Ok(saving)
    }

    /// The job.
    pub fn job(&self) -> u64 {
        self.job
    }

    /// One more checkpoint.
    pub fn next(&mut self, scene: &mut Scene) -> Outcome<Checkpoint> {
        let (job, last, copies) = (self.job, self.last, self.copies);
        scene.take(&Command::Save { job })?;
        let mut first = None;
        let (image, copied) = scene.wait("a checkpoint", |jobs| {
            let rank = &jobs.job(job)?.ranks[0];
            let image = rank.images.generations().find(|it| it.place.generation > last)?;
            let now = wall();
            first.get_or_insert(now);
            (image.holders.len() >= copies).then(|| (image.clone(), now))
        })?;
        self.last = image.place.generation;
        let (begun, stop) = until(SAYS_WITHIN, LOOK, || {
            let said = scene.said(job, 0).into_iter().rev().find_map(|said| match said {
                Said::Saved { turn, at, stop } if turn == image.step => Some((at, stop)),
                _ => None,
            });
            Ok(said.ok_or_else(|| format!("the rank does not say when it saved: {image:?}")))
        })?;
        let since = |at: u64| Duration::from_nanos(at.saturating_sub(begun));
        Ok(Checkpoint {
            stop: Duration::from_nanos(stop),
            durable: since(first.unwrap_or(copied)),
            copied: since(copied),
            bytes: image.bytes,
            full: image.parent.is_none(),
        })
    }

    /// Stops the job, and forgets it.
    pub fn end(self, scene: &mut Scene) -> Outcome<()> {
        scene.end(self.job)
    }
}
