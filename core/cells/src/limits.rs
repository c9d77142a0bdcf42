//! The limits of a cell's book and of its links.

use wire::Duration;

/// Cells that are attached to one.
pub const MAX_CHILDREN: usize = 64;

/// Groups that a cell exports.
pub const MAX_EXPORTS: usize = 256;

/// Names that a cell knows of itself and of all below it. Of a cell below that has more it knows
/// that it has more, and asks.
pub const MAX_NAMES: usize = 10_240;

/// Changes of exports in one report. It fits into a message, and so into the order.
pub const MAX_REPORT: usize = 1_024;

/// Names of other cells that a cell remembers.
pub const MAX_KNOWN: usize = 1_024;

/// Addresses of a cell's nodes that others are told.
pub const MAX_PLACES: usize = 8;

/// Nodes that carry.
pub const MAX_CARRIERS: usize = wire::limits::MAX_MEMBERS;

/// An attachment that is not renewed so long has ended.
pub const LEASE: Duration = Duration::from_secs(3);

/// It is renewed so often, with the next ping.
pub const RENEW: Duration = Duration::from_secs(1);

/// An address that does not answer a dial holds up those behind it for so long, at least and at
/// most: four round trips, which handshakes over TCP take, and some time for them.
pub const DIAL: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(4));

/// A name that is nowhere is looked for again after this time.
pub const NOWHERE_FOR: Duration = Duration::from_millis(100);

/// A name that nobody has found after this time is asked for anew.
pub const WANTED_FOR: Duration = Duration::from_secs(2);

/// Calls on their way through one node.
pub const MAX_CARRIED: usize = 65_536;

/// Hops of a call or a question: down and up a whole system, and more.
pub const MAX_HOPS: u8 = 32;

/// Links of one node.
pub const MAX_LINKS: usize = 64;

/// Cells of a mesh.
pub const MAX_MEMBERS: usize = 256;
