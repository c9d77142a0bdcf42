//! The way in for every language: unmodified gRPC clients, and HTTP with JSON, call groups.
//!
//! A gateway runs beside a node, or beside a client (`steadfast gateway`). It is itself a client of
//! the cluster. Calls with a key (`keys.rs`) are executed exactly once, whichever gateways they come
//! by. The rules are in `docs/gateway.md`.
//!
//! - [`bind`]: the port, its connections, and where each request goes.
//! - `call.rs`: one call, from names and bytes to a result; `grpc.rs` and `http.rs` are its two ways.
//! - `refusals.rs`: all that is told of a call without a result.
//! - `xds.rs`: tells gRPC clients the ranked list of gateways for a group.
//! - [`Channel`]: the same under generated tonic stubs, without a port.
#![forbid(unsafe_code)]

mod announce;
mod budget;
mod call;
mod caller;
mod channel;
mod connection;
mod contracts;
mod fit;
mod grpc;
mod health;
mod http;
mod keepalive;
mod keys;
mod load;
mod message;
mod names;
mod options;
mod orca;
mod pieces;
mod proto;
mod reflection;
mod refusals;
mod server;
mod sessions;
mod spans;
mod status;
mod streams;
mod xds;

pub use channel::{Channel, UnfitName};
pub use options::{Door, Listen, Options, OptionsError, Place};
pub use proto::proto_of;
pub use server::{Bound, Failed, bind};
