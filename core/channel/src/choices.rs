//! Choices: what a rank's program cannot know by itself.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wire::rank::Choice;

use crate::error::ChannelError;

/// The notes of a rank at another host, for its next start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Choices before the first of these are needed by no state.
    pub after: u64,
    /// The next ones.
    pub choices: Vec<Choice>,
}

/// One rank's choices, by their numbers from 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choices {
    /// Those up to this one are needed by no state.
    after: u64,
    /// All behind it, also those that only an earlier start has made.
    all: VecDeque<Choice>,
    /// So many were made, by this start and those from which it goes on.
    made: u64,
    /// So many are noted at another host.
    noted: u64,
}

impl Choices {
    /// After so many, of which an image has the last, and no state needs the first. `notes`: those that
    /// are noted.
    pub fn restored(
        (made, needless): (u64, u64),
        last: Vec<Choice>,
        notes: Notes,
    ) -> Result<Choices, ChannelError> {
        let noted = notes.after + notes.choices.len() as u64;
        // The other host may not have got, or not have been told to keep, what nobody needs.
        let notes = match noted < needless {
            true => Notes { after: needless, choices: Vec::new() },
            false => notes,
        };
        let Notes { after, choices } = notes;
        let noted = after + choices.len() as u64;
        let (mut all, before) = (VecDeque::from(choices), made - last.len() as u64);
        if after > made || noted < before {
            return Err(ChannelError::Notes { from: after + 1, to: noted, wanted: before });
        }
        // Both have some of them, and either may have more.
        all.extend(last.into_iter().skip((noted - before) as usize));
        Ok(Choices { after, all, made, noted })
    }

    pub fn made(&self) -> u64 {
        self.made
    }

    /// No state needs those up to this one.
    pub fn needless(&self) -> u64 {
        self.after
    }

    pub fn noted(&self) -> u64 {
        self.noted
    }

    /// All up to this one are noted.
    pub fn note(&mut self, noted: u64) {
        self.noted = self.noted.max(noted.min(self.after + self.all.len() as u64));
    }

    /// Another host is to have all of them.
    pub fn move_notes(&mut self) {
        self.noted = self.after;
    }

    /// No state needs those up to this one.
    pub fn forget(&mut self, until: u64) {
        let many = until.min(self.made).saturating_sub(self.after);
        self.all.drain(..many as usize);
        self.after += many;
        self.noted = self.noted.max(self.after);
    }

    /// Those behind this one, with their numbers.
    pub fn behind(&self, number: u64) -> impl Iterator<Item = (u64, Choice)> + '_ {
        let skip = number.saturating_sub(self.after);
        (self.after + 1..).zip(self.all.iter().copied()).skip(skip as usize)
    }

    /// The last that were made and are not noted.
    pub fn unnoted(&self) -> Vec<Choice> {
        let made = |(number, _): &(u64, Choice)| *number <= self.made;
        self.behind(self.noted).take_while(made).map(|(_, choice)| choice).collect()
    }

    /// The choice that was made here before, if this start has not come further.
    pub fn earlier(&self) -> Option<Choice> {
        self.all.get((self.made - self.after) as usize).copied()
    }

    /// A choice is made. True: it is a new one.
    pub fn make(&mut self, choice: Choice) -> Result<bool, ChannelError> {
        let earlier = self.earlier();
        self.made += 1;
        match earlier {
            Some(earlier) if earlier != choice => Err(ChannelError::Choice(self.made)),
            Some(_) => Ok(false),
            None => {
                self.all.push_back(choice);
                Ok(true)
            }
        }
    }

    /// All that were made pass for noted: a planted mistake.
    pub fn note_all(&mut self) {
        self.noted = self.made;
    }

    /// One is passed over that was made otherwise before: a planted mistake.
    pub fn skip(&mut self) {
        self.made += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(from: u64, to: u64) -> Vec<Choice> {
        (from..=to).map(Choice::Number).collect()
    }

    #[test]
    fn notes_and_an_image_together_have_all_choices() {
        let notes = |after, to| Notes { after, choices: numbers(after + 1, to) };
        let restored = |made, last, notes| Choices::restored((made, 0), last, notes);
        let it = restored(7, numbers(6, 7), notes(3, 5)).unwrap();
        assert_eq!((it.made(), it.noted(), it.earlier()), (7, 5, None));
        assert_eq!(it.unnoted(), numbers(6, 7));
        let mut it = restored(7, numbers(6, 7), notes(3, 9)).unwrap();
        assert_eq!((it.noted(), it.earlier()), (9, Some(Choice::Number(8))));
        it.move_notes();
        assert_eq!((it.noted(), it.behind(it.noted()).count()), (3, 6));
        it.forget(5);
        assert_eq!(it.behind(0).next(), Some((6, Choice::Number(6))));
        assert_eq!(it.make(Choice::Number(8)), Ok(false));
        assert_eq!(it.make(Choice::Number(7)), Err(ChannelError::Choice(9)));
        let it = Choices::restored((7, 6), numbers(7, 7), notes(3, 4)).unwrap();
        assert_eq!((it.noted(), it.unnoted()), (6, numbers(7, 7)));
        let lost = alloc::format!("{}", restored(7, numbers(6, 7), notes(3, 4)).unwrap_err());
        assert!(lost.contains("choices up to 5 are needed"), "{lost}");
    }
}
