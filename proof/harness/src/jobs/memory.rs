//! A rank that changes its memory, and what ranks of experiments say.

use std::thread;
use std::time::{Duration, Instant};

use rank::Job;
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::cluster::wall;
use crate::orders::{Changes, Memory};

/// Bytes of a page.
const PAGE: usize = 4_096;

/// A line of a rank's log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// It was let in by its agent, and computes.
    Begun,
    /// It has saved.
    Saved {
        /// Before this turn.
        turn: u64,
        /// When it began to, in nanoseconds of the wall clock.
        at: u64,
        /// Nanoseconds for which the program did not go on.
        stop: u64,
    },
    /// A turn has ended.
    Turned {
        /// When, in nanoseconds of the wall clock.
        at: u64,
    },
    /// It has computed all.
    Done {
        /// Seconds between the first turn and the last.
        computed: f64,
        /// Seconds in safe points: whether to save, and saving.
        safe: f64,
        /// Checkpoints.
        saves: u64,
        /// A sum of what it has computed, to be compared.
        sum: f64,
    },
}

fn say(said: &Said) -> Outcome<()> {
    println!("{}", serde_json::to_string(said)?);
    Ok(())
}

/// The safe points of a rank, and the time that they take.
pub struct Turns {
    begun: Instant,
    safe: Duration,
    saves: u64,
}

impl Turns {
    /// The first turn is about to begin.
    pub fn begin() -> Outcome<Turns> {
        say(&Said::Begun)?;
        Ok(Turns { begun: Instant::now(), safe: Duration::ZERO, saves: 0 })
    }

    /// A turn is about to begin. True: the rank was saved.
    pub fn turn(&mut self, job: &mut Job, depth: usize, turn: u64) -> Outcome<bool> {
        let begun = Instant::now();
        let due = job.turn(depth, turn)?;
        if due {
            let (at, stop) = (wall(), Instant::now());
            job.save()?;
            let stop = u64::try_from(stop.elapsed().as_nanos())?;
            self.safe += begun.elapsed();
            self.saves += 1;
            say(&Said::Saved { turn, at, stop })?;
        } else {
            self.safe += begun.elapsed();
        }
        Ok(due)
    }

    /// The last turn has ended.
    pub fn end(self, sum: f64) -> Outcome<()> {
        let (computed, safe) = (self.begun.elapsed().as_secs_f64(), self.safe.as_secs_f64());
        say(&Said::Done { computed, safe, saves: self.saves, sum })
    }
}

impl Memory {
    /// The rank's life.
    pub(crate) fn live(&self) -> Outcome<()> {
        let mut job = Job::connect()?;
        let form = format!("|u1 ({},)", self.bytes);
        let (array, restored) = job.array("a", &form, self.bytes)?;
        if !restored {
            job.bytes_mut(array).fill(1);
        }
        let (depth, from) = job.begin_loop(self.turns);
        let (mut turns, mut sum) = (Turns::begin()?, 0);
        for turn in from..self.turns {
            let saved = turns.turn(&mut job, depth, turn)?;
            sum = sum_of(self.work, sum);
            if self.pause_us > 0 {
                thread::sleep(Duration::from_micros(self.pause_us));
            }
            match self.changes {
                Changes::EachTurn => self.change(job.bytes_mut(array), turn, sum),
                Changes::AfterSave if saved => {
                    change_spread(job.bytes_mut(array), self.dirty, sum as u8 | 1);
                }
                Changes::AfterSave => {}
            }
            if self.trace {
                say(&Said::Turned { at: wall() })?;
            }
        }
        turns.end((sum % 1_000) as f64)?;
        job.end_loop(depth);
        Ok(job.finish()?)
    }

    fn change(&self, bytes: &mut [u8], turn: u64, sum: u64) {
        for (number, page) in (turn..).zip(bytes.chunks_mut(PAGE)) {
            if number % 100 < self.dirty {
                page[7] = page[7].wrapping_add(sum as u8 | 1);
            }
        }
    }
}

/// Changes so many percent of the pages, spread over all.
pub fn change_spread(bytes: &mut [u8], dirty: u64, by: u8) {
    for (number, page) in (0_u64..).zip(bytes.chunks_mut(PAGE)) {
        if number * dirty / 100 != (number + 1) * dirty / 100 {
            page[7] = page[7].wrapping_add(by);
        }
    }
}

/// Computes so many iterations of a sum.
fn sum_of(work: u64, begin: u64) -> u64 {
    (0..work).fold(begin, |sum, it| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(it)))
}

/// Iterations of the sum in a millisecond, on this machine now.
pub fn per_millisecond() -> u64 {
    let (begun, work) = (Instant::now(), 20_000_000);
    std::hint::black_box(sum_of(work, 1));
    (work as f64 / begun.elapsed().as_secs_f64() / 1e3) as u64
}
