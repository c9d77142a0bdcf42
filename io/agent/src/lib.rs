//! A node's agent: has ranks of jobs run, and saves and restores their images. It is a process of
//! its own beside the node, so that what ranks do costs the node's data plane nothing.
//!
//! - [`run`]: the agent, until its node is gone or it is told to stop.
//! - [`Ledger`]: its way to the book of jobs: through its node, or a test's own book.
//! - [`local`]: a book for one agent, in memory.
//! - [`host`]: this host, as ranks find it; [`program`]: what a job computes.
//! - [`prints`]: what ranks print.
//! - [`images`]: images in folders; [`copies`]: from agent to agent.
//! - `post`: messages between ranks, from agent to agent; `keeping`: on disks.
//!
//! The decisions are the pure machine's, `job::Agent`; here are the processes, files and sockets that
//! it asks for, each on a thread of its own that reports to one.
#![deny(unsafe_code)]

mod bells;
pub mod copies;
mod door;
mod driver;
mod error;
mod event;
mod exchange;
pub mod host;
pub mod images;
mod inbox;
mod keeping;
mod ledger;
mod link;
mod listener;
pub mod local;
mod notes;
mod options;
mod post;
pub mod prints;
mod process;
pub mod program;
mod records;
pub mod streams;
mod warm;
mod writers;

pub use driver::run;
pub use error::AgentError;
pub use event::Stop;
pub use ledger::{Ledger, LedgerError, Node};
pub use options::{Options, Port};
