//! A client of replicated services. It finds a group through any node, and calls it. When a
//! replica fails, it goes to the next one. Every call is executed at most once, and ends by its
//! deadline.
//!
//! - [`Invocation`] describes a call.
//! - `Client` (feature `net`) makes calls in the calling threads, with `poll(2)`.
//! - `AsyncClient` (feature `tokio`) makes calls in a task of the tokio runtime.
//! - `Builder` sets what a client does: [`Policy`], [`RetryBudget`], [`Hedging`], and `Tls`
//!   (feature `tls`).
//! - [`Session`] is the behaviour of both clients as a pure machine, without socket, clock and
//!   thread. `docs/protocol/client.md` has its rules. [`Sessions`] has one for each cell.
#![forbid(unsafe_code)]

mod attempts;
mod balancing;
mod binding;
#[cfg(any(feature = "net", feature = "tokio"))]
mod buffers;
mod bug;
#[cfg(any(feature = "net", feature = "tokio"))]
mod builder;
mod call;
#[cfg(any(feature = "net", feature = "tokio"))]
mod channel;
mod error;
mod follow;
mod hedge;
mod invocation;
mod links;
mod multicast;
#[cfg(feature = "net")]
mod net;
mod output;
mod policy;
mod retries;
mod retry_budget;
#[cfg(any(feature = "net", feature = "tokio"))]
mod secure;
mod session;
mod sessions;
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
pub use follow::Followed;
pub use hedge::Hedging;
pub use invocation::{DEFAULT_DEADLINE, Invocation, Key, MAX_STALE, Reading};
#[cfg(feature = "net")]
pub use net::Client;
pub use output::{CallId, Cause, Event, Link, Output, Stats, Trouble};
pub use policy::{Balancing, Policy, Refresh, Strategy};
pub use retry_budget::RetryBudget;
pub use session::{Config, Reach, Session};
pub use sessions::Sessions;
pub use spread::Answer;
#[cfg(feature = "tokio")]
pub use task::AsyncClient;
#[cfg(feature = "tls")]
pub use tls::{Client as Tls, CredentialsError as TlsError};

#[cfg(test)]
mod tests;
