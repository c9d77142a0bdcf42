//! Which real-time tasks a host's processors can serve in time (`stheno.txt`, sections 2.2 and 3.1).
//!
//! One admission test serves the manager, which places replicas, and the host, which reserves.
//!
//! - [`Task`]: a cost in every period, due within a deadline.
//! - [`Policy`]: can *one* processor serve these tasks in time? Exact for priorities by rate
//!   (response times) and for deadlines (processor demand).
//! - [`fit`]: which processor serves which task. No thread runs on two processors at once, so a
//!   task of 13 ms in every 10 ms fits on no host.
//! - [`global`]: the bound where the processors share one queue and cannot be partitioned.
//! - [`host`]: the reserves of one host, as a machine.
//! - [`daemon`]: who holds them, and what the kernel is asked.
//! - [`learn`]: the cost of a thread's work, from what it uses.
//! - [`priority`]: the level of a task by its rate.
//!
//! All is exact arithmetic in an order that depends on nothing but the input: every replica of the
//! manager decides alike.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bug;
pub mod daemon;
pub mod fit;
pub mod global;
pub mod host;
pub mod learn;
mod policy;
pub mod priority;
mod task;

#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use bug::Planted;
pub use policy::Policy;
pub use task::Task;
