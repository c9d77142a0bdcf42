//! A rank of a job in Rust: sums of numbers, turn by turn.
//!
//! ```sh
//! cargo build --release -p steadfast --features job --example rank
//! steadfast job run -n 4 -- target/release/examples/rank 3000 1000
//! ```
//!
//! The arguments are turns, and microseconds of rest in each.

use std::env;
use std::time::Duration;

use steadfast::job::{self, State};

#[derive(State)]
struct Sums {
    sums: Vec<u64>,
}

fn main() -> Result<(), job::Error> {
    let number = |place: usize| env::args().nth(place).and_then(|text| text.parse().ok());
    let (turns, rest) = (number(1).unwrap_or(1_000), number(2).unwrap_or(0));
    job::run(
        |_| Sums { sums: vec![0; 1_000] },
        |rank, state| {
            rank.turns(state, 0..turns, |rank, state, turn| {
                for (place, sum) in (0_u64..).zip(&mut state.sums) {
                    let number = turn ^ place ^ u64::from(rank.number());
                    *sum = sum.wrapping_mul(3).wrapping_add(number);
                }
                std::thread::sleep(Duration::from_micros(rest));
                Ok(())
            })?;
            rank.result("sums", &state.sums)?;
            println!("rank {} is done", rank.number());
            Ok(())
        },
    )
}
