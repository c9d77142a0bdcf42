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
//! The state is plain memory. Where a checkpoint is due, it is compared with what was saved last, and
//! what differs is copied: some 50 ms for a gibibyte that has not changed. It takes as much memory
//! again.

use std::ops::Range;

pub use rank::JobError as Error;
use rank::{Job, Kind};
pub use steadfast_macros::State;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Bytes that are compared at a time: what a tracker sees as one.
const PAGE: usize = 4_096;

/// The state of a rank: numbers, and vectors and arrays of numbers, each by its name. Derive it.
pub trait State {
    /// The fields, in an order that is the same each time.
    fn fields(&self) -> Vec<(&'static str, &dyn Field)>;

    /// The same, to be restored.
    fn fields_mut(&mut self) -> Vec<(&'static str, &mut dyn Field)>;
}

/// A field of a state, and a result: a number, a vector or an array of numbers.
pub trait Field {
    /// Kind and shape, as NumPy has them: `<f8 (1000,)`.
    fn form(&self) -> String;

    /// Its bytes.
    fn bytes(&self) -> &[u8];

    /// Its bytes, to be restored.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// A number, as NumPy knows it.
pub trait Number: IntoBytes + FromBytes + Immutable {
    /// Its kind: `f8`.
    const KIND: &'static str;
}

const ORDER: &str = if cfg!(target_endian = "little") { "<" } else { ">" };

macro_rules! numbers {
    ($($number:ty: $kind:literal),* $(,)?) => {$(
        impl Number for $number {
            const KIND: &'static str = $kind;
        }

        impl Field for $number {
            fn form(&self) -> String {
                format!("{ORDER}{} ()", $kind)
            }

            fn bytes(&self) -> &[u8] {
                self.as_bytes()
            }

            fn bytes_mut(&mut self) -> &mut [u8] {
                self.as_mut_bytes()
            }
        }
    )*};
}

numbers! {
    u8: "u1", u16: "u2", u32: "u4", u64: "u8",
    i8: "i1", i16: "i2", i32: "i4", i64: "i8",
    f32: "f4", f64: "f8",
}

impl<T: Number> Field for Vec<T> {
    fn form(&self) -> String {
        format!("{ORDER}{} ({},)", T::KIND, self.len())
    }

    fn bytes(&self) -> &[u8] {
        self.as_slice().as_bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice().as_mut_bytes()
    }
}

impl<T: Number, const N: usize> Field for [T; N] {
    fn form(&self) -> String {
        format!("{ORDER}{} ({N},)", T::KIND)
    }

    fn bytes(&self) -> &[u8] {
        self.as_slice().as_bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice().as_mut_bytes()
    }
}

/// This process as a rank of a job.
#[derive(Debug)]
pub struct Rank {
    job: Job,
    /// The fields of the state: names, forms, and the array of each.
    fields: Vec<(&'static str, String, usize)>,
}

/// Runs a rank: makes its state, or has it as it was saved, and does its work. What `work` returns
/// without an error is the rank's end: its results are saved then, and the job knows.
///
/// # Errors
/// Those of `work`; the agent cannot be reached, or this start of the rank is over; the saved state
/// has other fields.
pub fn run<S: State>(
    init: impl FnOnce(&Rank) -> S,
    work: impl FnOnce(&mut Rank, &mut S) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut rank = Rank { job: Job::connect()?, fields: Vec::new() };
    let mut state = init(&rank);
    for (name, field) in state.fields_mut() {
        let bytes = field.bytes().len() as u64;
        let (array, known) = rank.job.array(name, &field.form(), bytes)?;
        rank.fields.push((name, field.form(), array));
        match known {
            true => field.bytes_mut().copy_from_slice(rank.job.bytes(array)),
            false => rank.job.bytes_mut(array).copy_from_slice(field.bytes()),
        }
    }
    work(&mut rank, &mut state)?;
    // The last image says that all loops are over: it has the state that they have left.
    rank.copy(&state)?;
    rank.job.finish()
}

impl Rank {
    /// Its number, from 0.
    pub fn number(&self) -> u32 {
        self.job.rank()
    }

    /// Ranks of the job.
    pub fn count(&self) -> u32 {
        self.job.ranks()
    }

    /// It goes on from a saved state.
    pub fn is_restored(&self) -> bool {
        self.job.is_restored()
    }

    /// How changes are found, and why by no better way. `None`: nothing is saved.
    pub fn tracker(&self) -> Option<(Kind, Option<&str>)> {
        self.job.tracker()
    }

    /// Does these turns, or those that are left. Before each the rank may be saved. Loops may stand
    /// in turns of others; they are known by their order, which has to be the same at each start.
    ///
    /// # Errors
    /// Those of `turn`; this start of the rank is over; a field has another length than at first.
    pub fn turns<S: State>(
        &mut self,
        state: &mut S,
        turns: Range<u64>,
        mut turn: impl FnMut(&mut Rank, &mut S, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let count = turns.end.saturating_sub(turns.start);
        let (depth, from) = self.job.begin_loop(count);
        for number in from..count {
            if self.job.turn(depth, number)? {
                self.save(state)?;
            }
            turn(self, state, turns.start + number)?;
        }
        self.job.end_loop(depth);
        Ok(())
    }

    /// Here the rank may be saved, beside the begins of turns.
    ///
    /// # Errors
    /// As of [`Rank::turns`].
    pub fn safe_point<S: State>(&mut self, state: &S) -> Result<(), Error> {
        if self.job.safe_point()? { self.save(state) } else { Ok(()) }
    }

    /// Delivers a result with the job's end: once, whatever dies.
    ///
    /// # Errors
    /// The name is too long, or there are too many results.
    pub fn result(&mut self, name: &str, result: &dyn Field) -> Result<(), Error> {
        self.job.result(name, &result.form(), result.bytes().to_vec())
    }

    fn save<S: State>(&mut self, state: &S) -> Result<(), Error> {
        self.copy(state)?;
        self.job.save()
    }

    /// Copies the fields of the state to the arrays that are saved.
    fn copy<S: State>(&mut self, state: &S) -> Result<(), Error> {
        let fields = state.fields();
        for (place, (name, form, array)) in self.fields.iter().enumerate() {
            let field =
                fields.get(place).filter(|(other, _)| other == name).map(|(_, field)| field);
            let field = field.filter(|field| field.form() == *form);
            let Some(field) = field else {
                return Err(Error::Field { name: (*name).into(), form: form.clone() });
            };
            let saved = self.job.bytes_mut(*array);
            // A page that has not changed is not written: it is in no increment.
            for (saved, now) in saved.chunks_mut(PAGE).zip(field.bytes().chunks(PAGE)) {
                if saved != now {
                    saved.copy_from_slice(now);
                }
            }
        }
        Ok(())
    }
}
