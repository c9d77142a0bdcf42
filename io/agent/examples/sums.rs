//! A rank for tests: sums of numbers in an array, turn by turn. `sums TURNS PAUSE_US`.

use std::env;
use std::time::Duration;

use rank::{Job, JobError};

fn main() -> Result<(), JobError> {
    let number = |place: usize| env::args().nth(place).and_then(|text| text.parse().ok());
    let (turns, pause) = (number(1).unwrap_or(1_000), number(2).unwrap_or(0));
    let mut job = Job::connect()?;
    println!("rank {} of {}", job.rank(), job.ranks());
    let (array, _) = job.array("sums", "<u8 (1000,)", 8_000)?;
    let (depth, from) = job.begin_loop(turns);
    for turn in from..turns {
        if job.turn(depth, turn)? {
            job.save()?;
        }
        if turn % 50 == 0 {
            println!("turn {turn}");
        }
        let rank = u64::from(job.rank());
        for (place, bytes) in (0_u64..).zip(job.bytes_mut(array).chunks_exact_mut(8)) {
            let sum = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            let next = sum.wrapping_mul(3).wrapping_add(turn ^ place ^ rank);
            bytes.copy_from_slice(&next.to_le_bytes());
        }
        std::thread::sleep(Duration::from_micros(pause));
    }
    job.end_loop(depth);
    let result = job.bytes(array).to_vec();
    job.result("sums", "<u8 (1000,)", result)?;
    println!("rank {} is done", job.rank());
    job.finish()
}
