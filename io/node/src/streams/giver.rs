//! Gives a state to a node that asks for it.

use std::io;
use std::net::TcpStream;
use std::sync::mpsc::sync_channel;

use super::plane::ToPlane;
use super::secure::{SILENT, Security};
use super::words::{ASK, asked, write_state};
use crate::order::Order;

/// Answers one request, as the data plane says.
pub fn give(
    stream: TcpStream,
    security: &Security,
    plane: &ToPlane,
    goes_on: impl Fn() -> bool,
) -> io::Result<()> {
    let mut stream = security.accept(stream)?;
    let mut request = [0; ASK];
    stream.read_exact(&mut request)?;
    let transfer = asked(&request)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it asks for no state"))?;
    let (reply, state) = sync_channel(1);
    plane.send(Order::StateWanted { transfer, reply })?;
    let state = state.recv_timeout(SILENT).map_err(io::Error::other)?;
    write_state(state.as_ref(), &mut stream, goes_on)
}
