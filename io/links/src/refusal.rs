//! Reasons for which a side does not go on with the other one.

use wire::limits::MAX_LINKS_ACCEPTED;

/// Bytes that the protocol does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The first bytes are not those of a link.
    #[error("its first bytes are not those of a link: is this another protocol, or version?")]
    Magic,
    /// There is no such class.
    #[error("it greets for class {0}, and there are four")]
    Class(u8),
    /// It spoke before the link was up.
    #[error("it spoke before the link was up")]
    Early,
    /// The answer to a greeting is not one.
    #[error("it answers with {0}, which is no answer")]
    Answer(u8),
    /// The length of a message is 0, or too large.
    #[error("a message of {0} bytes: 1 to 1,114,112 are allowed")]
    Length(u32),
}

/// Why an acceptor refuses a link, or ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It has no room.
    #[error("it has {MAX_LINKS_ACCEPTED} links, or the limit that it was given: dial another node")]
    Crowded,
    /// The certificate is good, but this one may not come in.
    #[error(
        "this side's certificate is denied there, is not a node's, or is of a cluster that may not \
         come in"
    )]
    Unwelcome,
    /// The link has a connection of this class.
    #[error("the link has a connection of this class already, or its connections differ")]
    Twice,
    /// It said nothing in time, or the others of its link did not come.
    #[error("the link's connections did not come in time")]
    Late,
    /// It sent bytes that the protocol does not have.
    #[error("it cannot read what this side sent: do both have the same version?")]
    Unreadable,
}

impl Refusal {
    pub(crate) const ALL: [Refusal; 5] =
        [Refusal::Crowded, Refusal::Unwelcome, Refusal::Twice, Refusal::Late, Refusal::Unreadable];

    /// Its number on connections. 0 is none.
    pub(crate) fn byte(self) -> u8 {
        self as u8 + 1
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Refusal> {
        Refusal::ALL.get(usize::from(byte).checked_sub(1)?).copied()
    }
}
