//! Gives a state to a node that asks for it.

use std::io;
use std::net::TcpStream;
use std::sync::mpsc::sync_channel;

use super::words::{ASK, asked, write_state};
use super::{SILENT, Security, Stream, ToPlane, admit, limit};
use crate::order::Order;

/// Answers one request, as the data plane says.
pub fn give(stream: TcpStream, security: &Security, plane: &ToPlane) -> io::Result<()> {
    limit(&stream)?;
    match security {
        Security::None => answer(stream, plane),
        Security::Tls(_, server) => answer(admit(stream, server)?, plane),
        Security::Missing => {
            let why = "the ring is sealed, and this node has no certificate ([security])";
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
    }
}

fn answer(mut stream: impl Stream, plane: &ToPlane) -> io::Result<()> {
    let mut request = [0; ASK];
    stream.read_exact(&mut request)?;
    let transfer = asked(&request);
    let transfer = transfer
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it asks for no state"))?;
    let (reply, state) = sync_channel(1);
    plane.send(Order::StateWanted { transfer, reply })?;
    let state = state.recv_timeout(SILENT).map_err(io::Error::other)?;
    write_state(state.as_ref(), &mut stream)
}
