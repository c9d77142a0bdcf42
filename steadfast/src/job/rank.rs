//! A rank: its state, its turns and its results.

use std::ops::Range;

use rank::{Job, JobError as Error, Kind};

use super::numbers::{Field, State};

/// Bytes that are compared at a time: what a tracker sees as one.
const PAGE: usize = 4_096;

/// This process as a rank of a job.
#[derive(Debug)]
pub struct Rank {
    pub(super) job: Job,
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
