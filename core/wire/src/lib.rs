//! The messages that cross a process boundary, and their vocabulary.
//!
//! Ids, [`Time`], seeded [`Random`], [`limits`], and every message: [`ring`] (node to node, one
//! datagram each), [`report`] (the same, about links), [`ordered`] (what the engine orders on the
//! ring), [`client`] (frames between a client and a node) [`attach`] (frames between a node and a
//! program that serves a replica), [`rank`] (frames between an agent and a rank of a job) and
//! [`agents`] (frames between agents). Hot headers are fixed little-endian layouts read in place
//! (zerocopy); the rest is postcard. Every layout is drawn beside its type, every number is
//! explicit and is never used again for another meaning.
//!
//! The crate is `no_std`: it cannot read a clock, open a socket or hash in a random order.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod agents;
mod arena;
pub mod attach;
pub mod bench;
pub mod client;
mod codec;
pub mod histogram;
mod ids;
pub mod kept;
pub mod keys;
mod lane;
pub mod limits;
mod nodes;
pub mod ordered;
pub mod path;
mod payload;
mod planted;
mod random;
pub mod rank;
pub mod report;
pub mod ring;
pub mod roster;
mod secret;
mod share;
pub mod system;
mod time;
mod version_range;
pub mod versions;

pub use arena::Arena;
pub use codec::Malformed;
pub use ids::fnv1a;
pub use ids::{
    Caller, ClientId, ClusterId, GroupId, Incarnation, Member, MethodId, NodeId, RingId, ViewNumber,
};
pub use lane::Lane;
pub use nodes::{NodeList, NodeSet};
pub use payload::Payload;
pub use random::Random;
pub use secret::Secret;
pub use share::Share;
pub use time::{Duration, Time};
pub use versions::{Extension, Program, Speaks, VersionRange};
