//! Every order of small worlds: an explorer of the real machines (`docs/simulator.md`, "The
//! explorer").
//!
//! - `plan`: what a world has; `choice`: what may happen next, and its words
//! - `ideal`: one node's end of an ideal order; `order`: that order
//! - `node`, `disk`: a node with its program and its disk; `world`: three of them with clients and
//!   all checkers
//! - `search`: depth first over all choices, with a set of the states that were seen
//! - `trace`: a way through a world as text; how it is repeated and shortened

mod choice;
mod command;
mod disk;
mod ideal;
mod node;
mod order;
mod plan;
mod search;
mod trace;
mod world;

pub use choice::Choice;
pub use command::{Options, run};
pub use plan::{Plan, STYLES, Victims, style_named};
pub use search::{Bound, Coverage, Finding, explore};
pub use trace::{Trace, read, repeat, shorten};
pub use world::World;
