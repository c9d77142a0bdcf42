//! The options that links are started with.

use std::net::SocketAddr;
use std::time::Duration;

use wire::limits::MAX_LINKS_ACCEPTED;

use crate::security::Security;

/// Where to listen, how, and for whom.
#[derive(Debug, Default)]
pub struct Options {
    /// UDP and TCP of this port take links. Port 0: the system chooses one that both have free.
    /// `None`: links are dialled only.
    pub listen: Option<SocketAddr>,
    /// Certificates, which both sides of each link show.
    pub security: Option<Security>,
    /// Links without certificates, over bare TCP. It is for trials on loopback: whoever reaches the
    /// port may come in. Without this, there must be certificates.
    pub insecure: bool,
    /// The transports to listen with, and to dial with.
    pub transports: Transports,
    /// Bounds of numbers and times.
    pub limits: Limits,
}

/// The transports of links. Without certificates there is TCP alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transports {
    /// QUIC, and TCP where QUIC does not get through.
    #[default]
    Both,
    /// QUIC alone.
    Quic,
    /// TCP alone.
    Tcp,
}

impl Transports {
    pub(crate) fn quic(self) -> bool {
        self != Transports::Tcp
    }

    pub(crate) fn tcp(self) -> bool {
        self != Transports::Quic
    }
}

/// Bounds of numbers and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Links that others may have here: at most [`MAX_LINKS_ACCEPTED`], which is the default.
    pub accepted: usize,
    /// How long another one's connection may take to shake hands, to say what it is, and to see the
    /// others of its link come.
    pub greeting: Duration,
    /// How long one address may take until a link is up.
    pub dial: Duration,
    /// How long QUIC is tried alone before TCP begins beside it.
    pub head_start: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let patience = Duration::from_secs(5);
        Limits {
            accepted: MAX_LINKS_ACCEPTED,
            greeting: patience,
            dial: patience,
            head_start: Duration::from_millis(200),
        }
    }
}
