//! Things that links tell of.

use std::net::SocketAddr;

use bytes::Bytes;
use tls::Identity;
use wire::limits::MAX_LINKS_DIALLED;

use crate::class::{Class, LinkId, Transport};
use crate::refusal::{Malformed, Refusal};

/// Something that happened to a link.
#[derive(Debug)]
pub enum Event {
    /// Messages may go both ways.
    Up {
        /// The link.
        link: LinkId,
        /// This side has dialled it.
        dialled: bool,
        /// The other side, by its certificate. `None`: links have none here.
        peer: Option<Identity>,
        /// The other side's address.
        address: SocketAddr,
        /// The way in which its bytes travel.
        transport: Transport,
    },
    /// A message has come.
    Message {
        /// The link.
        link: LinkId,
        /// Its class: order holds within it.
        class: Class,
        /// The message.
        bytes: Bytes,
    },
    /// The link is gone. This is told exactly once of each that was dialled, or told to be up.
    Down {
        /// The link.
        link: LinkId,
        /// The reason.
        reason: Down,
    },
}

/// The reason for which a link is down. Of several addresses, it is that of the last one tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Down {
    /// This side has closed it.
    #[error("this side has closed it")]
    Closed,
    /// The other side has closed it, or its process has ended.
    #[error("the other side has closed it, or its process has ended")]
    Ended,
    /// The connection broke, or there was none.
    #[error("{0}: is the other side running, and does the network let it through?")]
    Lost(String),
    /// No answer came.
    #[error("no answer in time: is the other side running, and does the network let it through?")]
    Silent,
    /// A certificate was refused, here or there.
    #[error("{0}")]
    Untrusted(String),
    /// Somebody else than was expected is there.
    #[error("{0}: is the address right?")]
    Unexpected(String),
    /// The other side does not want the link.
    #[error("the other side refuses the link: {0}")]
    Refused(Refusal),
    /// The other side broke the protocol.
    #[error("the other side broke the protocol: {0}")]
    Malformed(Malformed),
    /// There is nothing to dial.
    #[error("there is no address to dial: give one that the transports of this side can reach")]
    NoAddress,
    /// This side dials as many links as it may.
    #[error("{MAX_LINKS_DIALLED} links are dialled, the limit: close some")]
    TooMany,
    /// All links of this process end.
    #[error("the links of this process have ended")]
    Stopped,
}
