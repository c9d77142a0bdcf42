//! A client of replicated services: it finds a group through any node, calls it, and goes to the
//! next replica when one fails, so that every call is executed at most once and answered by its
//! deadline.
//!
//! - [`Session`] is the whole behaviour as a pure machine: no socket, no clock, no thread. What it
//!   does, rule by rule, is in `docs/protocol/client.md`.
//! - `Client` (feature `net`) runs it in the calling threads, with `poll(2)`.
//! - `AsyncClient` (feature `tokio`) runs it in a task.
//! - `Tls` (feature `tls`) lets both talk with nodes that demand it.
#![forbid(unsafe_code)]

mod attempts;
mod binding;
#[cfg(any(feature = "net", feature = "tokio"))]
mod buffers;
mod bug;
#[cfg(any(feature = "net", feature = "tokio"))]
mod builder;
mod call;
#[cfg(any(feature = "net", feature = "tokio"))]
mod channel;
mod choice;
mod error;
mod hedge;
mod links;
mod multicast;
#[cfg(feature = "net")]
mod net;
mod output;
mod policy;
mod retries;
#[cfg(any(feature = "net", feature = "tokio"))]
mod secure;
mod session;
mod shed;
mod spread;
mod targets;
#[cfg(feature = "tokio")]
mod task;
mod trail;

#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use bug::Planted;
#[cfg(any(feature = "net", feature = "tokio"))]
pub use builder::Builder;
pub use error::{CallError, ConnectError};
pub use hedge::Hedging;
#[cfg(feature = "net")]
pub use net::Client;
pub use output::{CallId, Cause, Event, Link, MAX_STALE, Output, Reading, Stats, Trouble};
pub use policy::{Anycast, Choice, Policy, Refresh, Replies, Retries, Strategy};
pub use session::{Config, Reach, Session};
pub use spread::Answer;
#[cfg(feature = "tokio")]
pub use task::AsyncClient;
#[cfg(feature = "tls")]
pub use tls::{Client as Tls, CredentialsError as TlsError};

#[cfg(test)]
mod tests;
