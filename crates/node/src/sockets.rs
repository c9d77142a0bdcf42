//! The sockets of the data plane.

pub(crate) mod tcp;
pub(crate) mod udp;
