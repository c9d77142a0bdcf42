//! The admin protocol: what people and tools ask of a node, and what it tells.
//!
//! - `message.rs`: what is asked and answered, one JSON object a line.
//! - [`status`], [`events`], [`mod@bench`], [`deployments`], [`growth`], [`registry`], [`jobs`],
//!   [`cell`]: what the answers are made of.
//! - [`explain()`]: what follows from a status.
//! - [`Client`]: the asker's end; [`server`]: the node's end, which a [`server::Handler`] serves.
//! - `stream.rs`: a connection of either.
#![forbid(unsafe_code)]

pub mod bench;
pub mod cell;
mod client;
pub mod deployments;
pub mod events;
mod explain;
pub mod growth;
mod hex;
pub mod jobs;
mod message;
mod poisoned;
pub mod registry;
pub mod server;
pub mod status;
mod stream;

pub use client::{AdminError, Client, Events};
pub use explain::{Explanation, IfLost, Standing, explain};
pub use hex::{digest, hex};
pub use message::{
    DeployAnswer, DoneAnswer, KeyAnswer, KeyAsk, LevelAnswer, MoveAnswer, ReloadAnswer, Request,
    RestoreAnswer, RestyleAnswer, SaveAnswer, StateAnswer, StopAnswer,
};
pub use poisoned::{PoisonedAnswer, PoisonedCall};
