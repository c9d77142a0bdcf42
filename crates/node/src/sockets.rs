//! The sockets of the data plane.

mod buffers;
mod connection;
pub(crate) mod gate;
mod segments;
pub(crate) mod tcp;
pub(crate) mod udp;

pub(crate) use segments::{MAX_RUN, MAX_SEGMENTS};
