//! The Totem single ring as a pure machine.
//!
//! Messages, time and verbs go in; [`Output`]s come out of one ordered queue. Nothing here reads a
//! clock, opens a socket or spawns a thread. Behaviour and reasons are in `docs/protocol/ring.md`.
//!
//! ```text
//!           handle_message   handle_timeout   multicast   handle_unreachable   leave
//!                  |                |             |               |              |
//!                  v                v             v               v              v
//!    Gather ---> Commit ---> Recovery ---> Operational            every state ---> Left
//!       ^           |            |              |
//!       +-----------+------------+--------------+      a timer, a refusal, a join, a stranger
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod acks;
mod blame;
mod bug;
mod commit;
mod config;
mod deadline;
mod ended;
mod gather;
mod links;
mod neighbours;
mod operational;
mod order;
mod out;
mod output;
mod packing;
mod recovery;
mod ring;
mod roll;
mod stalls;
mod turn;
mod watch;
mod window;

#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use bug::Planted;
pub use config::{Config, ConfigError, Timing};
pub use links::{LinkOutput, LinkState, LinkTiming, Links, LinksConfig};
pub use output::{
    Buffers, Charge, Configuration, ConfigurationKind, Delivery, Event, Fill, Output, Refused,
    Route,
};
pub use ring::Ring;
pub use wire::ring::Level;
