//! Things that carriers tell of their connections.

use std::net::SocketAddr;

use tls::Peer;

use crate::class::Pipe;
use crate::event::Down;

/// Something that happened to a connection.
#[derive(Debug)]
pub(crate) enum News {
    /// Somebody has begun it. It is not open yet.
    Entered(Pipe, SocketAddr),
    /// It is open, and the other side has proved who it is.
    Open(Pipe, Option<Peer>),
    /// Something has come.
    Read(Pipe),
    /// It has ended. Its owner still has to close it.
    Ended(Pipe, Down),
}
