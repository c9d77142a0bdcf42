//! Names of things on a link: its number, its classes, how its bytes travel.

use std::fmt;

/// The number of a link in this process. It is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub(crate) u64);

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}", self.0)
    }
}

/// The classes of a link's messages. Order holds within a class, and no class waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// News of cells about themselves.
    Control,
    /// Things that must be known at once.
    Alarm,
    /// Things that operation depends on.
    Critical,
    /// Everything else.
    Normal,
}

/// Classes of a link, and so its connections.
pub(crate) const CLASSES: usize = Class::ALL.len();

impl Class {
    /// All, the most urgent first.
    pub const ALL: [Class; 4] = [Class::Control, Class::Alarm, Class::Critical, Class::Normal];

    /// Its place in [`Class::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Class> {
        Class::ALL.get(usize::from(byte)).copied()
    }
}

/// The way in which a link's bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// QUIC over UDP.
    Quic,
    /// TLS 1.3 over TCP.
    Tls,
    /// Bare TCP, for trials on loopback.
    Tcp,
}

/// One of the two ways to an address. Whether TCP has TLS is a matter of all links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    Quic,
    Tcp,
}

impl Way {
    pub fn other(self) -> Way {
        match self {
            Way::Quic => Way::Tcp,
            Way::Tcp => Way::Quic,
        }
    }
}

/// One connection of this process. A number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pipe {
    pub way: Way,
    pub number: u64,
}

impl Pipe {
    pub fn quic(number: u64) -> Pipe {
        Pipe { way: Way::Quic, number }
    }

    pub fn tcp(number: u64) -> Pipe {
        Pipe { way: Way::Tcp, number }
    }
}
