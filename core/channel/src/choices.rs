//! Choices: what a rank's program cannot know by itself.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::error::ChannelError;

/// A choice, as it is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Choice {
    /// The next message came from this rank.
    From(u32),
    /// A message was there, or not yet.
    There(bool),
    /// A number from outside: a clock, a random one.
    Number(u64),
}

/// One rank's choices, by their numbers from 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choices {
    /// So many were made, by this start and those from which it goes on.
    made: u64,
    /// Those that are not yet noted at another host, the oldest first.
    unnoted: VecDeque<Choice>,
    /// Those that an earlier start has made after the state that was restored.
    earlier: VecDeque<Choice>,
}

impl Choices {
    /// After so many, of which the last were not yet noted. `earlier`: the next ones, which an earlier
    /// start has made, and which are noted.
    pub fn restored(
        made: u64,
        unnoted: Vec<Choice>,
        earlier: impl IntoIterator<Item = Choice>,
    ) -> Choices {
        Choices { made, unnoted: unnoted.into(), earlier: earlier.into_iter().collect() }
    }

    pub fn made(&self) -> u64 {
        self.made
    }

    /// So many are noted, with those that an earlier start has made.
    pub fn noted(&self) -> u64 {
        self.made - self.unnoted.len() as u64
    }

    /// So many are noted by now.
    pub fn note(&mut self, noted: u64) {
        let many = noted.saturating_sub(self.noted()).min(self.unnoted.len() as u64);
        self.unnoted.drain(..many as usize);
    }

    /// Those that are not yet noted, with their numbers.
    pub fn unnoted(&self) -> impl Iterator<Item = (u64, Choice)> + '_ {
        (self.noted() + 1..).zip(self.unnoted.iter().copied())
    }

    /// The choice that was made here before, if this start has not come further.
    pub fn earlier(&self) -> Option<Choice> {
        self.earlier.front().copied()
    }

    /// A choice is made. True: it is to be noted.
    pub fn make(&mut self, choice: Choice) -> Result<bool, ChannelError> {
        self.made += 1;
        match self.earlier.pop_front() {
            Some(earlier) if earlier != choice => Err(ChannelError::Choice(self.made)),
            // Noted as all that were made before it, or behind them.
            Some(_) if self.unnoted.is_empty() => Ok(false),
            _ => {
                self.unnoted.push_back(choice);
                Ok(true)
            }
        }
    }

    /// All that were made pass for noted: a planted mistake.
    pub fn note_all(&mut self) {
        self.unnoted.clear();
    }

    /// One is passed over that was made otherwise before: a planted mistake.
    pub fn skip(&mut self) {
        self.made += 1;
        self.earlier.pop_front();
    }
}
