//! How a gate differs from another, and what comes through.

use std::net::TcpStream;

use bytes::{Bytes, BytesMut};
use tls::{Peer, Records};

/// A connection that has come through.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Nonblocking.
    pub stream: TcpStream,
    pub records: Box<Records>,
    /// Bytes that came behind the handshake already.
    pub input: BytesMut,
    /// Its certificate's.
    pub peer: Peer,
}

/// How a gate differs from another.
pub(crate) struct Manners {
    /// Hands a guest to its server; false when there is none any more.
    pub admit: Box<dyn FnMut(Guest) -> bool + Send>,
    /// The last words to a refused visitor, in the port's own protocol.
    pub farewell: fn(&str) -> Bytes,
}
