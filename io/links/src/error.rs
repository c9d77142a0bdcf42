//! Errors that callers of links get at once. What happens later is told as [`Down`](crate::Down).

use std::io;
use std::net::SocketAddr;

use tls::CredentialsError;
use wire::limits::{MAX_CLASS_BACKLOG, MAX_LINK_MESSAGE};

/// Why links could not be started, or renewed.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// There are no certificates.
    #[error(
        "links need certificates: give their security, or say that they are insecure (bare TCP, for \
         trials on loopback)"
    )]
    NoSecurity,
    /// There are certificates, and links are said to be insecure.
    #[error("links are said to be insecure and have certificates: leave one of them out")]
    TwoMinds,
    /// QUIC alone is wanted, and there are no certificates.
    #[error("QUIC needs certificates: without them, links are over TCP alone")]
    NeedsSecurity,
    /// The certificates cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// QUIC cannot use them.
    #[error("QUIC cannot use the certificates: {0}")]
    Quic(String),
    /// The port is taken, or the address is not of this host.
    #[error("cannot listen at {address}: {source}; is the port free, and the address this host's?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The system has no descriptor, thread or random bytes left.
    #[error("the system gives no descriptor, thread or random bytes: {0}; raise its limits")]
    System(#[from] io::Error),
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// So much of its class waits that it would be too much.
    #[error("{MAX_CLASS_BACKLOG} bytes of this class wait, the limit: send less, or later")]
    Full,
    /// The link is down, or was never there.
    #[error("the link is down: dial again, or wait until the other side does")]
    Gone,
    /// The message is too long.
    #[error("a message has at most {MAX_LINK_MESSAGE} bytes: cut it")]
    TooLarge,
    /// There is no message.
    #[error("a message has at least one byte")]
    Empty,
}
