//! The ranks of figure 2.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use harness::Outcome;
use rank::Job;
use serde::{Deserialize, Serialize};

/// Bytes of a message.
pub const SIZE: usize = 1_024;
/// As often before it is measured.
pub const GROWS: u32 = 4;
/// How long a message may take.
const WITHIN: Duration = Duration::from_secs(60);

/// Two ranks: one sends in a row, and the other answers the last message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sending {
    /// Messages that are sent in a row, and how often it is measured.
    pub messages: u32,
    pub repeats: u32,
    /// Rank 0 writes there how long it took: a list of microseconds.
    pub file: PathBuf,
}

impl Sending {
    /// A rank's life.
    pub fn live(self) -> Outcome<()> {
        let mut job = Job::connect()?;
        let (rank, mut bytes, mut times) = (job.rank(), vec![7; SIZE], Vec::new());
        // The first ones are for the logs to grow.
        for repeat in 0..GROWS + self.repeats {
            let begun = Instant::now();
            for number in 1..=self.messages {
                if rank == 0 {
                    job.send(1, 0, [&bytes, &[]])?;
                } else {
                    receive(&mut job, &mut bytes)?;
                }
                if number == self.messages && rank == 0 {
                    receive(&mut job, &mut bytes)?;
                } else if number == self.messages {
                    job.send(0, 0, [&bytes, &[]])?;
                }
            }
            if repeat >= GROWS {
                times.push(begun.elapsed().as_secs_f64() * 1e6);
            }
            // Which lets go what was sent before the last one.
            job.safe_point()?;
            job.save()?;
        }
        if rank == 0 {
            std::fs::write(&self.file, serde_json::to_vec(&times)?)?;
        }
        Ok(job.finish()?)
    }
}

fn receive(job: &mut Job, bytes: &mut [u8]) -> Outcome<()> {
    let message = job.receive(Some(1 - job.rank()), Some(0), WITHIN)?;
    Ok(message.ok_or("no message has come")?.read(0, bytes)?)
}
