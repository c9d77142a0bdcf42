//! Somebody at the gate: from the first byte to the end of the handshake, or of the last words.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};

use bytes::{Bytes, BytesMut};
use os::clock::monotonic;
use tls::{Records, Server, Visitor};
use wire::{Duration, Time};

use super::manners::Manners;
use super::tally::{Tally, count};

/// A handshake that is not over after this long never will be: clients give up after a second.
const SHAKE_WITHIN: Duration = Duration::from_secs(2);

/// The time that a refused visitor has to read the reason.
const LINGER: Duration = Duration::from_secs(1);

/// The first byte of a TLS connection (RFC 8446, 5.1: a handshake record).
const TLS: u8 = 22;

/// Somebody at the gate.
#[derive(Debug)]
pub(super) struct Waiting {
    pub stream: TcpStream,
    pub records: Box<Records>,
    /// Bytes that came behind the handshake already.
    pub input: BytesMut,
    /// Where from: handshakes under way are counted by it.
    pub origin: u128,
    pub until: Time,
    /// Bytes have come.
    begun: bool,
    /// It was refused: what is left of this in plain bytes, then it only has to read it.
    pub leaving: bool,
    last_words: Bytes,
    silent: bool,
}

/// The decision on a visitor at the gate.
pub(super) enum Verdict {
    Stay,
    Enter,
    Go,
}

impl Waiting {
    /// A new connection.
    pub fn new(stream: TcpStream, records: Records, address: IpAddr, now: Time) -> Waiting {
        Waiting {
            stream,
            records: Box::new(records),
            input: BytesMut::new(),
            origin: origin(address),
            until: now + SHAKE_WITHIN,
            begun: false,
            leaving: false,
            last_words: Bytes::new(),
            silent: false,
        }
    }

    pub fn wants_to_write(&self) -> bool {
        self.records.wants_to_write() || !self.last_words.is_empty()
    }

    /// Reads and writes what can be.
    pub fn go_on(
        &mut self,
        scratch: &mut [u8],
        server: &Server,
        tally: &Tally,
        manners: &Manners,
    ) -> Verdict {
        let read = match self.stream.read(scratch) {
            Ok(length @ 1..) => &scratch[..length],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => &[],
            // It has gone away, with a farewell or without.
            _ => {
                if !self.leaving {
                    count(&tally.failed);
                }
                return Verdict::Go;
            }
        };
        if !read.is_empty() && !self.leaving {
            self.take(read, server, tally, manners);
        }
        if self.write().is_err() {
            return Verdict::Go;
        }
        if self.leaving && !self.wants_to_write() && !self.silent {
            // The connection is closed by the other side, or later: what it still sends must not
            // make its host throw away our last words.
            self.silent = true;
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        if !self.leaving && self.records.is_open() { Verdict::Enter } else { Verdict::Stay }
    }

    fn take(&mut self, read: &[u8], server: &Server, tally: &Tally, manners: &Manners) {
        if !self.begun && read[0] != TLS {
            count(&tally.plaintext);
            self.last_words = (manners.farewell)(
                "this node takes TLS only: give the client the cluster's authority and a certificate \
                 (`steadfast init --client NAME` makes one; `--tls DIR` or Client::builder use it)",
            );
            return self.leave();
        }
        self.begun = true;
        let input = &mut self.input;
        if let Err(error) = self.records.receive(read, |plain| input.extend_from_slice(plain)) {
            count(&tally.failed);
            tracing::debug!(peer = ?self.stream.peer_addr().ok(), %error, "a TLS handshake failed");
            // The bytes that wait to be written report it to the other side.
            return self.leave();
        }
        if self.records.is_open()
            && let Visitor::Refused(why) = server.admit(&self.records)
        {
            count(&tally.refused);
            tracing::info!(peer = ?self.stream.peer_addr().ok(), why, "a connection is refused");
            let words = (manners.farewell)(&why);
            self.records.seal(&[io::IoSlice::new(&words)]);
            self.records.say_goodbye();
            self.leave();
        }
    }

    fn leave(&mut self) {
        self.leaving = true;
        self.until = monotonic() + LINGER;
    }

    fn write(&mut self) -> io::Result<()> {
        let result = self.write_some();
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            result => result,
        }
    }

    fn write_some(&mut self) -> io::Result<()> {
        while !self.last_words.is_empty() {
            let written = self.stream.write(&self.last_words)?;
            let _ = self.last_words.split_to(written);
        }
        while self.records.wants_to_write() {
            self.records.write(&mut self.stream)?;
        }
        Ok(())
    }
}

/// The origin of an address: a host with one IPv6 address has the other 2^64 of its network too
/// (RFC 6177).
fn origin(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits() >> 64 << 64,
    }
}
