//! One connection's records: plain bytes on one side, TLS on the other, no socket.

use std::io::{self, BufRead, IoSlice, Write};

use rustls::{Connection, Error, HandshakeKind};

use crate::denied::Peer;
use crate::name::Identity;

/// Encrypted bytes that wait for the socket. Plain ones wait, and are counted, at their owner.
const MAX_SEALED: usize = 64 << 10;

/// Turns the bytes of a stream into plain ones, and plain ones into the stream's.
#[derive(Debug)]
pub struct Records {
    connection: Connection,
}

impl Records {
    pub(crate) fn new(mut connection: Connection) -> Records {
        connection.set_buffer_limit(Some(MAX_SEALED));
        Records { connection }
    }

    /// Takes received bytes and gives their contents to `plain`, piece by piece.
    ///
    /// # Errors
    /// The other side broke the protocol, is not who it must be, or says that this side is not. The
    /// bytes to write are then the last ones.
    pub fn receive(&mut self, mut bytes: &[u8], mut plain: impl FnMut(&[u8])) -> Result<(), Error> {
        loop {
            let taken = self.connection.read_tls(&mut bytes).unwrap_or(0);
            self.connection.process_new_packets()?;
            let mut reader = self.connection.reader();
            // An error says only that nothing is left.
            while let Ok(piece) = reader.fill_buf() {
                let count = piece.len();
                if count == 0 {
                    break;
                }
                plain(piece);
                reader.consume(count);
            }
            // After its farewell the other side has nothing more to say.
            if bytes.is_empty() || taken == 0 {
                return Ok(());
            }
        }
    }

    /// The handshake is over: both sides are who they say.
    pub fn is_open(&self) -> bool {
        !self.connection.is_handshaking()
    }

    /// Encrypts as much as there is room for; gives how many bytes that were. Before the handshake
    /// is over there is no room.
    pub fn seal(&mut self, slices: &[IoSlice<'_>]) -> usize {
        // One record for many frames: each costs a tag and a pass of the cipher.
        if self.is_open() {
            self.connection.writer().write_vectored(slices).unwrap_or(0)
        } else {
            0
        }
    }

    /// There are bytes for the stream.
    pub fn wants_to_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Gives the stream what it takes at once.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn write(&mut self, stream: &mut dyn Write) -> io::Result<usize> {
        self.connection.write_tls(stream)
    }

    /// Tells the other side that nothing more will come.
    pub fn say_goodbye(&mut self) {
        self.connection.send_close_notify();
    }

    /// The other side has said that nothing more will come.
    pub fn has_ended(&mut self) -> bool {
        self.connection.process_new_packets().is_ok_and(|state| state.peer_has_closed())
    }

    /// The identity in the other side's certificate, once the handshake is over. `None`: it is not
    /// of a Steadfast cluster.
    pub fn identity(&self) -> Option<Identity> {
        Identity::of(self.connection.peer_certificates()?.first()?).ok()
    }

    /// The other side, once the handshake is over. `None`: it is not of a Steadfast cluster.
    pub fn peer(&self) -> Option<Peer> {
        Peer::of(&self.connection)
    }

    /// The handshake was a short one, by a ticket of an earlier connection.
    pub fn was_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }
}
