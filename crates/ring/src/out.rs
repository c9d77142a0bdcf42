//! The one ordered queue of outputs, and the only place that makes datagrams.

use alloc::collections::VecDeque;

use bytes::Bytes;
use wire::ring::{Data, Datagram, Message};
use wire::{ClusterId, Member, NodeId};

use crate::{Event, Output};

pub(crate) struct Out {
    pub cluster: ClusterId,
    pub me: Member,
    pub queue: VecDeque<Output>,
}

impl Out {
    pub fn new(cluster: ClusterId, me: Member) -> Self {
        Out { cluster, me, queue: VecDeque::new() }
    }

    pub fn push(&mut self, output: Output) {
        self.queue.push_back(output);
    }

    pub fn event(&mut self, event: Event) {
        self.push(Output::Event(event));
    }

    pub fn encode(&self, message: Message) -> Bytes {
        Datagram { cluster: self.cluster, sender: self.me, message }.encode()
    }

    /// The bytes of `data` as `sender` sent them first: a retransmission is not signed by whoever
    /// happens to send it, because its receivers put parts together by sender.
    pub fn encode_as(&self, sender: Member, data: Data) -> Bytes {
        Datagram { cluster: self.cluster, sender, message: Message::Data(data) }.encode()
    }

    pub fn send_bytes(&mut self, to: NodeId, datagram: Bytes) {
        assert!(to != self.me.node, "a node does not send to itself");
        self.push(Output::Send { to, datagram });
    }

    pub fn send(&mut self, to: NodeId, message: Message) {
        let datagram = self.encode(message);
        self.send_bytes(to, datagram);
    }

    /// The same bytes to every one of `members` but this node.
    pub fn fan(&mut self, members: &[Member], datagram: &Bytes) {
        for member in members {
            if member.node != self.me.node {
                self.send_bytes(member.node, datagram.clone());
            }
        }
    }
}
