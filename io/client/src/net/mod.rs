//! The blocking driver: sockets, clock and `poll(2)` in the threads that call.

mod client;
mod driver;
mod stream;

pub use client::Client;
