//! The blocking porch: sockets, clock and `poll(2)` in the threads that call.

mod client;
mod porch;
mod stream;

pub use client::Client;
