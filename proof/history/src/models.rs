//! Models of some objects.

mod counter;
mod log;
mod queue;
mod register;

pub use counter::{Counter, CounterCall};
pub use log::{Log, LogCall, LogReply};
pub use queue::{Queue, QueueCall};
pub use register::{Register, RegisterCall, RegisterReply};
