//! The one ordered queue of outputs, and the only place that makes datagrams.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::{BufMut, Bytes, BytesMut};
use wire::ring::{DATA_OVERHEAD, Data, Datagram, Message, ORIGIN_OVERHEAD};
use wire::{Arena, ClusterId, Member, NodeId, NodeList, NodeSet};

use crate::{Config, Event, Output, Route};

pub(crate) struct Out {
    pub cluster: ClusterId,
    /// The version of the ring that was called last.
    pub version: u8,
    pub me: Member,
    /// The nodes that this one knows.
    pub nodes: NodeList,
    pub queue: VecDeque<Output>,
    /// Where datagrams are written: what is sent is what the window keeps.
    pub arena: Arena,
}

/// Datagrams lie one after the other in pieces of this many bytes.
const PIECE: usize = 1 << 16;

impl Out {
    pub fn new(config: &Config) -> Self {
        Out {
            cluster: config.cluster,
            version: config.speaks.ring.least,
            me: config.me,
            nodes: NodeList::new(&config.nodes),
            queue: VecDeque::new(),
            arena: Arena::new(PIECE),
        }
    }

    pub fn push(&mut self, output: Output) {
        self.queue.push_back(output);
    }

    pub fn event(&mut self, event: Event) {
        self.push(Output::Event(event));
    }

    pub fn encode(&mut self, message: Message) -> Bytes {
        self.encode_of(self.me, message)
    }

    /// A recovered body, behind room for what comes first in its datagram.
    pub fn draft(&mut self, body: &[u8]) -> BytesMut {
        let draft = self.arena.room(DATA_OVERHEAD + ORIGIN_OVERHEAD + body.len());
        draft.put_bytes(0, DATA_OVERHEAD + ORIGIN_OVERHEAD);
        draft.put_slice(body);
        self.arena.draft()
    }

    /// The bytes of `data` as `sender` sent them first: a retransmission bears the name of its
    /// first sender, because its receivers put parts together by sender.
    pub fn encode_as(&mut self, sender: Member, data: Data) -> Bytes {
        self.encode_of(sender, Message::Data(data))
    }

    fn encode_of(&mut self, sender: Member, message: Message) -> Bytes {
        let datagram = Datagram::new(self.cluster, self.version, sender, message);
        datagram.encode_in(&mut self.arena)
    }

    pub fn send_bytes(&mut self, to: NodeId, datagram: Bytes, route: Route) {
        self.send_all([to], datagram, route);
    }

    /// Sends ahead of the last `overtaken` datagrams that wait to leave.
    pub fn send_ahead(&mut self, to: NodeId, datagram: Bytes, overtaken: usize) {
        let to = self.places([to]);
        let sends = self.queue.iter().enumerate().rev();
        let sends = sends.filter(|(_, output)| matches!(output, Output::Send { .. }));
        let at = sends.take(overtaken).last().map_or(self.queue.len(), |(at, _)| at);
        self.queue.insert(at, Output::Send { to, datagram, route: Route::Best });
    }

    pub fn send(&mut self, to: NodeId, message: Message, route: Route) {
        let datagram = self.encode(message);
        self.send_bytes(to, datagram, route);
    }

    /// The same bytes to every one of `members` but this node.
    pub fn fan(&mut self, members: &[Member], datagram: Bytes, route: Route) {
        let me = self.me.node;
        let others = members.iter().map(|member| member.node).filter(|node| *node != me);
        self.send_all(others, datagram, route);
    }

    /// The same bytes to every node but this one, and those that `but` names.
    pub fn send_to_configured(&mut self, datagram: Bytes, but: &[Member]) {
        let mut to = NodeSet::EMPTY;
        for (place, node) in self.nodes.iter() {
            let inside = but.binary_search_by_key(&node, |member| member.node).is_ok();
            if node != self.me.node && !inside {
                to.insert(place);
            }
        }
        if !to.is_empty() {
            self.push(Output::Send { to, datagram, route: Route::Every });
        }
    }

    /// The same bytes to each of `nodes`, before all that waits already.
    pub fn send_first(
        &mut self,
        nodes: impl IntoIterator<Item = NodeId>,
        datagram: Bytes,
        route: Route,
    ) {
        let to = self.places(nodes);
        if !to.is_empty() {
            self.queue.push_front(Output::Send { to, datagram, route });
        }
    }

    /// The same bytes to each of these nodes.
    pub fn send_to(&mut self, nodes: Vec<NodeId>, datagram: Bytes, route: Route) {
        self.send_all(nodes, datagram, route);
    }

    /// To a node that may have gone: it still has its place.
    pub fn send_seat(&mut self, node: NodeId, datagram: Bytes, route: Route) {
        if let Some(place) = self.nodes.seat(node).filter(|_| node != self.me.node) {
            self.push(Output::Send { to: NodeSet::one(place), datagram, route });
        }
    }

    fn send_all(&mut self, nodes: impl IntoIterator<Item = NodeId>, datagram: Bytes, route: Route) {
        let to = self.places(nodes);
        if !to.is_empty() {
            self.push(Output::Send { to, datagram, route });
        }
    }

    fn places(&self, nodes: impl IntoIterator<Item = NodeId>) -> NodeSet {
        let mut to = NodeSet::EMPTY;
        for node in nodes {
            assert!(node != self.me.node, "a node does not send to itself");
            // A member that has just gone from the list gets nothing.
            self.nodes.place(node).into_iter().for_each(|place| to.insert(place));
        }
        to
    }
}
