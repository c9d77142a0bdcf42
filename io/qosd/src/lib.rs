//! The host's daemon of reserves (`stheno.txt`, sections 2.2 and 3.1: the QoS daemon).
//!
//! All nodes of a host ask one daemon, over a Unix socket. The daemon admits what the host can
//! give, by the machine [`qos::host`], and has the kernel enforce it. A reserve lasts as long as
//! its connection. The kernel keeps what is in force while no daemon runs: a daemon that starts
//! again is asked again, and finds nothing to change.
//!
//! - `message`: requests and answers
//! - [`Server`]: the daemon
//! - [`Client`]: a connection to it; [`Keeper`] holds reserves across restarts of the daemon
//! - [`Groups`]: control groups, version 1 and 2; [`Networks`]: classes of network interfaces
//! - `owner`: which threads and processes a peer may name
//! - [`path()`], [`disk_of`]: names of reserves and disks
//! - [`platform`]: what the kernel permits, by trial
#![forbid(unsafe_code)]

mod client;
mod enforce;
mod groups;
mod keeper;
mod message;
mod networks;
mod owner;
mod place;
pub mod platform;
mod server;

pub use client::{Client, ClientError};
pub use enforce::Limiters;
pub use groups::Groups;
pub use keeper::{Keeper, Standing};
pub use message::{Answer, Cpu, Device, Enforced, MAX_LINE, Request, Shown, Tree, Wanted};
pub use networks::Networks;
pub use place::{disk_of, path};
pub use server::{OpenError, Server};
