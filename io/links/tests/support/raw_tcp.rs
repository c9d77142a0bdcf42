//! A peer that speaks bare TCP by hand.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use steadfast_links::Class;

use super::{DEADLINE, greeting};

pub fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// The four connections of a link, with their greetings sent.
pub fn dial(to: SocketAddr, token: u8) -> [TcpStream; 4] {
    Class::ALL.map(|class| {
        let mut stream = connect(to);
        stream.write_all(&greeting(token, class)).unwrap();
        stream
    })
}

/// Reads one byte: an answer.
pub fn answer(stream: &mut TcpStream) -> u8 {
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    byte[0]
}

/// The other side ends the connection, whatever it says before.
pub fn assert_ends(stream: &mut TcpStream) {
    // A reset is an end, too.
    let mut rest = Vec::new();
    if let Err(error) = stream.read_to_end(&mut rest) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}
