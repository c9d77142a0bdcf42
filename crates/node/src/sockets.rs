//! The sockets of the data plane.

mod connection;
pub(crate) mod gate;
pub(crate) mod tcp;
pub(crate) mod udp;
