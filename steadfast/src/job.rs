//! Ranks of jobs: long computations that go on after the loss of their process or host
//! (`docs/jobs.md`). Needs the feature `job`.
//!
//! ```no_run
//! use steadfast::job::{self, State};
//!
//! #[derive(State)]
//! struct Sums {
//!     sums: Vec<f64>,
//!     total: f64,
//! }
//!
//! fn main() -> Result<(), job::Error> {
//!     job::run(
//!         |_| Sums { sums: vec![0.0; 1_000], total: 0.0 },
//!         |rank, state| {
//!             rank.turns(state, 0..500, |rank, state, turn| {
//!                 for (place, sum) in state.sums.iter_mut().enumerate() {
//!                     *sum += (turn * place as u64 + u64::from(rank.number())) as f64;
//!                 }
//!                 Ok(())
//!             })?;
//!             state.total = state.sums.iter().sum();
//!             rank.result("total", &state.total)
//!         },
//!     )
//! }
//! ```
//!
//! `steadfast job run -n 4 -- ./program` runs it as four ranks. By itself, the program is the only
//! rank of a job that saves nothing.
//!
//! Ranks send each other messages ([`Rank::send`]) and join values ([`Rank::all_reduce`]). The example
//! `heat` does both, and `messages` has each kind.
//!
//! The state is plain memory. Where a checkpoint is due, it is compared with what was saved last, and
//! what differs is copied: some 50 ms for a gibibyte that has not changed. It takes as much memory
//! again.

mod collectives;
mod messages;
mod numbers;
mod rank;

pub use ::rank::JobError as Error;
pub use steadfast_macros::State;

pub use self::messages::{ANY, Status};
pub use self::numbers::{Field, Number, State};
pub use self::rank::{Rank, run};
