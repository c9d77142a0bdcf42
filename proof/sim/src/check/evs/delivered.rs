//! The subject of the specifications: which node delivers which message where.

use ring::Level;
use wire::{Member, RingId};

/// A message of the simulation: its sender, and the sender's count.
pub type MessageId = (Member, u64);

/// A node delivers a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The node.
    pub by: Member,
    /// The message.
    pub message: MessageId,
    /// The ring that ordered it.
    pub ring: RingId,
    /// Its sequence number there.
    pub sequence: u64,
    /// Everything before it was delivered here too.
    pub contiguous: bool,
    /// The level at which it was sent.
    pub level: Level,
}
