//! The sockets of the data plane.

mod buffers;
mod connection;
mod door;
pub(crate) mod gate;
mod listener;
mod segments;
pub(crate) mod tcp;
pub(crate) mod udp;

pub(crate) use listener::Listener;
pub(crate) use segments::{MAX_RUN, MAX_SEGMENTS};
