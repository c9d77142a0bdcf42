//! A rank for tests: `heard FOLDER`. Rank 0 sends to rank 1. In its first start that is all; in a later
//! one it sends only when a file says that the others are there already: they were kept.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use rank::{Job, JobError};

const MESSAGES: u64 = 100;
const PAUSE: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(3_600);

fn main() -> Result<(), JobError> {
    let folder = PathBuf::from(env::args().nth(1).unwrap_or_default());
    let mut job = Job::connect()?;
    let (start, heard) = (job.start(), |start: u64| folder.join(format!("heard-{start}")));
    if job.rank() == 0 {
        while start > 1 && !heard(start).exists() {
            sleep(PAUSE);
        }
        for number in 1..=MESSAGES {
            job.send(1, 0, [&number.to_le_bytes(), &[]])?;
        }
        // It comes in a later start alone.
        job.receive(Some(1), None, LONG)?;
    } else {
        for number in 1..=MESSAGES {
            let message = job.receive(Some(0), None, LONG)?;
            let bytes = message.map(|message| message.bytes()).transpose()?;
            assert_eq!(bytes.as_deref(), Some(&number.to_le_bytes()[..]));
        }
        fs::write(heard(start), [])?;
        if start == 1 {
            let (depth, from) = job.begin_loop(u64::MAX);
            for turn in from.. {
                job.turn(depth, turn)?;
                sleep(PAUSE);
            }
        }
        job.send(0, 0, [&[], &[]])?;
    }
    job.finish()
}
