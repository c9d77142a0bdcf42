//! Connections between clients and nodes: reliable and in order while both ends live.

use std::collections::VecDeque;

use bytes::Bytes;
use client::Link;
use wire::{Incarnation, Time};

/// A piece of the data on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// An encoded frame.
    Frame(Bytes),
    /// The sender has closed.
    End,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client to the node.
    Up,
    /// From the node to the client.
    Down,
}

/// One connection, from its dial on.
#[derive(Debug)]
pub struct Stream {
    /// The client's place.
    pub client: usize,
    /// The client's name for it.
    pub link: Link,
    /// The node's place.
    pub node: usize,
    /// When it was dialled.
    pub dialled: Time,
    /// The life of the node that took it.
    pub life: Option<Incarnation>,
    /// The client knows of it and has not closed it.
    pub client_open: bool,
    /// The node knows of it and has not closed it.
    pub node_open: bool,
    pipes: [Pipe; 2],
}

#[derive(Debug, Default)]
struct Pipe {
    pieces: VecDeque<Piece>,
    last: Time,
}

impl Stream {
    /// A connection that is being dialled.
    pub fn dial(client: usize, link: Link, node: usize, dialled: Time) -> Self {
        Stream {
            client,
            link,
            node,
            dialled,
            life: None,
            client_open: true,
            node_open: false,
            pipes: Default::default(),
        }
    }

    /// Puts a piece in, which would arrive at `at` alone; tells when it does behind the others.
    pub fn put(&mut self, way: Way, piece: Piece, at: Time) -> Time {
        let pipe = &mut self.pipes[way as usize];
        pipe.pieces.push_back(piece);
        pipe.last = pipe.last.max(at);
        pipe.last
    }

    /// Takes out the piece that arrives.
    pub fn take(&mut self, way: Way) -> Option<Piece> {
        self.pipes[way as usize].pieces.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_order_whatever_their_way_takes() {
        let mut stream = Stream::dial(0, Link(1), 2, Time(5));
        let frame = |byte| Piece::Frame(Bytes::from(vec![byte]));
        assert_eq!(stream.put(Way::Up, frame(1), Time(90)), Time(90));
        assert_eq!(stream.put(Way::Up, frame(2), Time(40)), Time(90), "not before the first");
        assert_eq!(stream.put(Way::Down, Piece::End, Time(7)), Time(7), "ways are apart");
        assert_eq!(stream.take(Way::Up), Some(frame(1)));
        assert_eq!(stream.take(Way::Up), Some(frame(2)));
        assert_eq!((stream.take(Way::Up), stream.take(Way::Down)), (None, Some(Piece::End)));
    }
}
