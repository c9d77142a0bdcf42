//! Links of the thread, and the owners of its connections.

use std::time::Instant;

use bytes::Bytes;
use tls::Identity;

use crate::class::{CLASSES, Class, LinkId, Pipe};
use crate::greeting::Token;
use crate::race::Race;
use crate::security::Expect;

/// The one that a connection is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    /// Nobody yet: it has been begun by somebody else.
    Visitor,
    /// A link that is dialled.
    Dial(LinkId, Class),
    /// A link that is up. The dialler's side of each connection waits for the answer first.
    Link { link: LinkId, class: Class, answered: bool },
}

/// The four connections of a link, by class.
#[derive(Debug)]
pub(super) struct Link {
    pub pipes: [Pipe; CLASSES],
    /// The number by which it was accepted. `None`: this side has dialled it.
    pub token: Option<Token>,
}

/// A link that is being dialled.
#[derive(Debug)]
pub(super) struct Dial {
    pub race: Race,
    pub expect: Option<Expect>,
    /// Connections at the present address, by way.
    pub lanes: [Option<[Pipe; CLASSES]>; 2],
    /// The nodes at the ends of each way.
    pub peers: [Option<Identity>; 2],
    /// Messages that were sent before it is up. The meters bound them.
    pub early: Vec<(Class, Bytes)>,
}

impl Dial {
    pub fn next_timeout(&self) -> Option<Instant> {
        self.race.next_timeout()
    }

    pub fn pipes(&self) -> Vec<Pipe> {
        self.lanes.iter().flatten().flatten().copied().collect()
    }
}
