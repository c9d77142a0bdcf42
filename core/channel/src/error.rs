//! Reasons for which a rank cannot go on with its channels.

use alloc::string::String;

use crate::MAX_AHEAD;

/// Why a rank cannot go on so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// There is no such rank.
    #[error("there is no rank {0} in this job of {1} ranks")]
    NoRank(u32, u32),
    /// Messages of a channel are missing: the sender's log does not go back so far.
    #[error(
        "messages {wanted} and later of rank {from} are needed, and it has them from {first} on"
    )]
    Gap {
        /// The sender.
        from: u32,
        /// The first that is needed.
        wanted: u64,
        /// The first that is there.
        first: u64,
    },
    /// Too many messages wait, because the program takes later ones first.
    #[error(
        "{MAX_AHEAD} messages of rank {0} were taken before an older one: receive that one (its tag is \
         {1})"
    )]
    Ahead(u32, u32),
    /// The program does not do what it did before.
    #[error(
        "the program is not deterministic: message {number} of rank {from} (tag {tag}) is not what it \
         was before"
    )]
    Diverged {
        /// The sender.
        from: u32,
        /// The message.
        number: u64,
        /// Its tag.
        tag: u32,
    },
    /// Choices are lost, and others may know what followed on them.
    #[error("choices up to {wanted} are needed, and those from {from} to {to} are noted")]
    Notes {
        /// The first that is noted.
        from: u64,
        /// The last.
        to: u64,
        /// The last that is needed.
        wanted: u64,
    },
    /// The program asks for what it did not ask for before.
    #[error("the program is not deterministic: it makes choice {0} in another way than before")]
    Choice(u64),
    /// A saved state of channels makes no sense.
    #[error("the saved channels make no sense: {0}")]
    Vector(String),
}
