//! The state of a rank's channels, for an image.

use alloc::string::ToString;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::error::ChannelError;
use crate::seen::Seen;
use crate::{Choice, Counts};

/// The channels of a rank in an image, beside the messages in its logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vector {
    /// To each rank: the first message in the log, and the last one that was sent. The first is one
    /// more than the last if the log is empty.
    pub sent: Vec<(u64, u64)>,
    /// To each rank: the checksum of the last one that was sent.
    pub checks: Vec<u32>,
    /// From each rank: what was taken.
    pub seen: Vec<Seen>,
    /// Choices that were made.
    pub choices: u64,
    /// Those up to this one were needed by no state.
    pub needless: u64,
    /// The last of them, which were not yet noted at another host.
    pub unnoted: Vec<Choice>,
}

impl Vector {
    /// The channels with each rank, for the choice of states that fit together.
    pub fn counts(&self) -> Vec<Counts> {
        let counts = |(((first, sent), check), seen): ((&(u64, u64), &u32), &Seen)| Counts {
            first: *first,
            sent: *sent,
            below: seen.below(),
            taken: seen.last(),
            start: seen.start(),
            checks: [*check, seen.check()],
        };
        self.sent.iter().zip(&self.checks).zip(&self.seen).map(counts).collect()
    }

    /// The bytes for an image.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a vector is plain data")
    }

    /// Reads them, for a job of so many ranks.
    ///
    /// # Errors
    /// They make no sense.
    pub fn decode(bytes: &[u8], ranks: u32) -> Result<Vector, ChannelError> {
        let wrong = |why: &str| ChannelError::Vector(why.to_string());
        let vector: Vector =
            postcard::from_bytes(bytes).map_err(|error| ChannelError::Vector(error.to_string()))?;
        let many = ranks as usize;
        if [vector.sent.len(), vector.checks.len(), vector.seen.len()] != [many; 3] {
            return Err(wrong("they are of a job with another number of ranks"));
        }
        let possible = |(first, last): &(u64, u64)| *first > 0 && *first <= last.saturating_add(1);
        let unnoted = vector.unnoted.len() as u64;
        if vector.choices.checked_sub(unnoted).is_none_or(|noted| noted < vector.needless) {
            return Err(wrong("more choices are to be noted than were made"));
        }
        if !vector.sent.iter().all(possible) || !vector.seen.iter().all(Seen::is_possible) {
            return Err(wrong("numbers of messages do not follow on each other"));
        }
        Ok(vector)
    }
}
