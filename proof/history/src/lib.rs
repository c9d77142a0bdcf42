//! Clients' observations, and whether one copy of the object could have shown them to them.
//!
//! A *history* is a list of operations: the client, the call, its time, and its end. It is
//! *linearizable* (Herlihy and Wing, *Linearizability: A Correctness Condition for Concurrent
//! Objects*, TOPLAS 1990) if each operation can be given one instant between its call and its
//! answer such that the object, taking them one by one at these instants, gives the observed
//! answers. An operation whose end is not known may have its instant at any time after its call, or
//! none.
//!
//! - [`record`]: operations and histories
//! - [`model`]: the behaviour of an object, and [`models`] of some
//! - [`check()`]: the verdict, key by key; `search.rs` is the search of one key
//! - [`counterexample`]: the smallest failing part, as text
//! - [`twin`]: the definition itself, for small histories, to check the checker
//! - [`atomic`]: histories that are right by construction
//!
//! How to read a counterexample: `docs/linearizability.md`.
#![forbid(unsafe_code)]

pub mod atomic;
pub mod check;
pub mod counterexample;
mod limits;
mod list;
pub mod model;
pub mod models;
mod picture;
pub mod record;
mod search;
pub mod twin;

pub use check::{Report, Undecided, check};
pub use counterexample::Counterexample;
pub use limits::Limits;
pub use model::{Model, Told};
pub use record::{End, Handle, History, Operation};
